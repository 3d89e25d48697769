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
  const list = own.closest(".field").querySelector("select");
  const radio = own.parentElement.querySelector("input[type=radio]");
  if (list) {
    const show = () => { own.hidden = list.value !== "__other__"; };
    list.addEventListener("change", show);
    list.form.addEventListener("restored", show);
    show();
  } else {
    own.addEventListener("input", () => { if (own.value) radio.checked = true; });
  }
}
