// The time left to answer, told aloud at ten seconds and at the end. Nothing is sent by itself: a late answer is kept.
const line = document.querySelector("[data-countdown]");
const time = line.querySelector(".countdown-time");
const aloud = line.querySelector("[role=status]");
const form = document.getElementById("answers");
const plural = new Intl.PluralRules(document.documentElement.lang);
const words = (forms, n) => (forms[plural.select(n)] ?? forms.other).replace("{n}", n);
const seconds = JSON.parse(line.dataset.seconds);
const soon = JSON.parse(line.dataset.soon);
const SOON_S = 10;

const endsAt = Date.now() - Number(form.dataset.elapsedMs ?? 0) + Number(line.dataset.countdown) * 1000;
line.querySelector(".countdown-label").hidden = false;

function tick() {
  const left = Math.ceil((endsAt - Date.now()) / 1000);
  if (left <= 0) {
    line.classList.add("over");
    line.querySelector(".countdown-label").hidden = true;
    time.textContent = line.dataset.over;
    aloud.textContent = line.dataset.over;
    return;
  }
  time.textContent = words(seconds, left);
  if (left <= SOON_S && !line.classList.contains("soon")) {
    line.classList.add("soon");
    aloud.textContent = words(soon, left);
  }
  setTimeout(tick, (endsAt - Date.now()) % 1000 || 1000);
}
tick();
