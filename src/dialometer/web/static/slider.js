// A line to set instead of a number to type. There is no handle until the rater sets one, so no value is suggested.
for (const field of document.querySelectorAll("[data-slider]")) enhance(field);

function enhance(field) {
  const number = field.querySelector("input.number");
  const { low, high, step, unset, unsetShort } = field.dataset;
  const range = document.createElement("input");
  Object.assign(range, { type: "range", min: low, max: high, step, id: number.id });
  range.value = String((Number(low) + Number(high)) / 2); // where the arrow keys begin; nothing is shown there
  for (const name of ["aria-describedby", "aria-invalid"]) {
    if (number.hasAttribute(name)) range.setAttribute(name, number.getAttribute(name));
    number.removeAttribute(name);
  }
  const value = document.createElement("p");
  value.className = "slider-value";
  number.removeAttribute("id");
  number.type = "hidden";
  field.querySelector("[data-plain]").remove();
  field.querySelector(".slider-ends").after(range, value);

  function show() {
    const isSet = number.value !== "" && !Number.isNaN(Number(number.value));
    field.classList.toggle("unset", !isSet);
    if (isSet) range.value = number.value;
    value.textContent = isSet ? range.value : unset;
    if (isSet) range.removeAttribute("aria-valuetext");
    else range.setAttribute("aria-valuetext", unsetShort);
  }
  function set() {
    if (number.value === range.value) return;
    number.value = range.value;
    show();
    number.dispatchEvent(new Event("input", { bubbles: true }));
  }
  range.addEventListener("input", (event) => { event.stopPropagation(); set(); });
  range.addEventListener("pointerup", set); // a click on the very middle changes nothing for the browser
  range.addEventListener("keyup", (event) => { if (/^(Arrow|Home|End|Page| )/.test(event.key)) set(); });
  number.form.addEventListener("restored", show);
  show();
}
