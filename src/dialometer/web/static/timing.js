// When the screen was shown and first touched, how often the page lost the focus, and on what kind of device.
// All times are on the server's clock: the page carries the moment it was made, and only differences are measured here.
const form = document.getElementById("answers");
const own = (name) => form.elements.namedItem(name);
const loadedAt = Date.now();
const madeAt = Number(own("shown_at_ms").value);
const serverNow = () => Math.round(madeAt + (Date.now() - loadedAt));

// A reload does not start the screen anew: the first moment it was shown is kept as long as the screen is current.
const prefix = `dialometer:shown:${form.dataset.session}:`;
const key = prefix + form.dataset.screen;
let shownAt = madeAt;
try {
  for (const other of Object.keys(sessionStorage)) {
    if (other.startsWith(prefix) && other !== key) sessionStorage.removeItem(other);
  }
  shownAt = Number(sessionStorage.getItem(key)) || madeAt;
  sessionStorage.setItem(key, String(shownAt));
} catch { /* storage may be forbidden; then a reload counts as shown again */ }
own("shown_at_ms").value = String(shownAt);
form.dataset.elapsedMs = String(madeAt - shownAt);

function touched() {
  if (!own("first_input_at_ms").value) own("first_input_at_ms").value = String(serverNow());
}
form.addEventListener("input", touched);
form.addEventListener("click", (event) => { if (event.target.closest("button")) touched(); });

let lostAt = 0;
function lose() {
  if (lostAt) return;
  lostAt = Date.now();
  own("focus_lost_n").value = String(Number(own("focus_lost_n").value) + 1);
}
function regain() {
  if (!lostAt) return;
  const seconds = Number(own("focus_lost_s").value) + (Date.now() - lostAt) / 1000;
  own("focus_lost_s").value = seconds.toFixed(2);
  lostAt = 0;
}
addEventListener("blur", lose);
addEventListener("focus", regain);
document.addEventListener("visibilitychange", () => (document.hidden ? lose() : regain()));

const isTouch = matchMedia("(pointer: coarse)").matches;
const isSmall = Math.min(screen.width, screen.height) < 600;
own("device").value = isTouch ? (isSmall ? "phone" : "tablet") : "desktop";
