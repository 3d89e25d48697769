// A complaint goes as soon as the field it is about is answered; the list at the top gets shorter with it.
const form = document.getElementById("answers");
const summary = document.querySelector(".summary");
const plural = new Intl.PluralRules(document.documentElement.lang);

form.addEventListener("input", (event) => {
  const field = event.target.closest(".field.has-error");
  if (field && isAnswered(field)) clear(field);
});
form.addEventListener("click", (event) => { // a ranking can be answered by a button alone
  const field = event.target.closest(".field.has-error");
  if (field?.matches(".ranking") && event.target.closest("button")) setTimeout(() => { if (isAnswered(field)) clear(field); });
});

function isAnswered(field) {
  if (field.matches(".spans")) return field.matches(".is-set");
  const inputs = [...field.querySelectorAll("input, select, textarea")];
  const names = new Set(inputs.filter((input) => input.type === "radio").map((input) => input.name));
  const chosen = [...names].map((name) => inputs.find((input) => input.name === name && input.checked)?.value);
  if (chosen.some((value) => value === undefined)) return false;
  if (field.matches(".best-worst") && new Set(chosen).size < chosen.length) return false;
  const boxes = inputs.filter((input) => input.type === "checkbox");
  if (boxes.length && !boxes.some((box) => box.checked)) return false;
  if (field.matches(".ranking")) return field.matches(".is-set") || inputs.every((input) => input.value.trim());
  const texts = inputs.filter((input) => !["radio", "checkbox", "hidden"].includes(input.type) && !input.hasAttribute("data-own-words"));
  return texts.every((input) => input.value.trim());
}

function clear(field) {
  const message = field.querySelector(".error");
  if (!message) return;
  const id = message.id.replace(/-error$/, "");
  field.classList.remove("has-error");
  for (const element of [field, ...field.querySelectorAll("[aria-invalid], [aria-describedby]")]) {
    element.removeAttribute("aria-invalid");
    const described = (element.getAttribute("aria-describedby") ?? "").split(" ").filter((name) => name && name !== message.id);
    if (described.length) element.setAttribute("aria-describedby", described.join(" "));
    else element.removeAttribute("aria-describedby");
  }
  message.remove();
  summary?.querySelector(`a[href^="#${id}-"]`)?.closest("li").remove();
  const n = summary?.querySelectorAll("li").length ?? 0;
  if (!n) { summary?.remove(); return; }
  const titles = JSON.parse(summary.dataset.titles);
  summary.querySelector("h2").textContent = (titles[plural.select(n)] ?? titles.other).replace("{n}", n);
}
