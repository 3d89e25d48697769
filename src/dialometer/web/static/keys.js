// Keyboard: digits choose a point or a side in the focused group; Enter goes to the next field and sends at the last.
const form = document.getElementById("answers");

form.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  const group = target.closest("[data-keys]");
  if (group && target.type === "radio" && /^\d$/.test(event.key)) {
    const radio = [...group.querySelectorAll("input[type=radio]")].find((input) => input.value === event.key);
    if (radio) {
      event.preventDefault();
      radio.focus();
      if (!radio.checked) radio.click();
    }
    return;
  }
  if (event.key === "Enter" && target.matches(".cut-switch")) {
    event.preventDefault();
    target.click();
    return;
  }
  if (event.key === "Enter" && target.matches("input") && target.type !== "submit") {
    event.preventDefault();
    const stops = stopsOf(form);
    const here = stops.findIndex((stop) => stop === target || (stop.type === "radio" && stop.name === target.name));
    const next = stops[here + 1];
    if (next) {
      next.focus();
      if (next.type === "text") next.select();
    } else {
      form.requestSubmit(form.querySelector("button[type=submit]"));
    }
  }
});

// One stop for each text field and each group of buttons, as the Tab key makes them.
function stopsOf(form) {
  const stops = [];
  const groups = new Map();
  for (const control of form.elements) {
    if (!control.name || control.hasAttribute("data-own") || control.type === "hidden" || control.type === "submit" || control.offsetParent === null) continue;
    if (control.type === "radio") {
      if (groups.has(control.name)) {
        if (control.checked) stops[groups.get(control.name)] = control;
        continue;
      }
      groups.set(control.name, stops.length);
    }
    stops.push(control);
  }
  return stops;
}
