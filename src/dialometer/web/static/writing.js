// Free text: how many characters are left near the limit; own words choose the "other" they belong to.
const plural = new Intl.PluralRules(document.documentElement.lang);
const words = (forms, n) => (forms[plural.select(n)] ?? forms.other).replace("{n}", n);
const NEAR = 0.8;

for (const control of document.querySelectorAll("[data-limit]")) {
  const counter = control.parentElement.querySelector(".counter");
  const limit = Number(control.dataset.limit);
  const show = () => {
    const n = [...control.value.trim()].length;
    counter.hidden = n < limit * NEAR;
    counter.classList.toggle("over", n > limit);
    counter.textContent = n > limit
      ? words(JSON.parse(counter.dataset.over), n - limit)
      : words(JSON.parse(counter.dataset.left), limit - n);
  };
  control.addEventListener("input", show);
  show();
}

for (const own of document.querySelectorAll("[data-own-words]")) {
  const holder = own.closest(".field");
  const choice = holder.querySelector("select") ?? own.parentElement.querySelector("input[type=radio]");
  own.addEventListener("input", () => {
    if (!own.value) return;
    if (choice.type === "radio") choice.checked = true;
    else choice.value = "__other__";
  });
  holder.addEventListener("change", (event) => {
    if (event.target === choice && (choice.checked || choice.value === "__other__") && choice.type !== "radio") own.focus();
  });
}
