// Pages of the dashboard that renew themselves: asks for the page again and exchanges the parts marked data-live.
// Times are shown in the reader's zone, filters work as soon as something is chosen.

const EVERY_MS = 4000;
let mark = "";
let failures = 0;

// One form everywhere, the server's too: 16 Nov 2026, 05:30 UTC; months in the language of the page, digits as everywhere on it.
const LOCALE = document.documentElement.lang === "en" ? "en-GB" : `${document.documentElement.lang}-u-nu-latn`;
const DAY = { day: "numeric", month: "short" };
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const FORMS = { clock: CLOCK, day: DAY, both: { ...DAY, ...CLOCK } };
const zoneOf = (at) => new Intl.DateTimeFormat(LOCALE, { timeZoneName: "short" }).formatToParts(at).find((part) => part.type === "timeZoneName").value;

function localise(root) {
  for (const text of root.querySelectorAll("text[data-time]")) {
    const at = new Date(Number(text.dataset.time));
    text.textContent = at.toLocaleString(LOCALE, FORMS[text.dataset.form]).replace(",", "");
  }
  for (const text of root.querySelectorAll("text[data-zone]")) text.textContent = zoneOf(new Date(Number(text.dataset.zone)));
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.textContent = `${at.toLocaleString(LOCALE, { ...DAY, year: "numeric", ...CLOCK })} ${zoneOf(at)}`;
      time.title = at.toISOString();
    }
  }
}

// On a phone the tabs are wider than the screen: the chosen one is shown.
document.querySelector('.tabs [aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });

function isBusy(part) {
  const active = document.activeElement;
  return active && part.contains(active) && active.matches("input, textarea, select");
}

// What has the focus keeps it when its part is exchanged: whoever uses the keyboard is not thrown back to the top.
const REACHED = "a[href], button, summary, [tabindex]";
const nameOf = (one) => `${one.tagName} ${one.getAttribute("href") ?? one.getAttribute("aria-label") ?? one.textContent}`;

function exchange(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    if (!other || isBusy(part)) continue;
    localise(other);
    if (other.innerHTML === part.innerHTML) continue;
    const open = [...part.querySelectorAll("details[open]")].map((one) => one.querySelector("summary")?.textContent);
    const focused = part.contains(document.activeElement) ? nameOf(document.activeElement) : "";
    const scrolled = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    part.innerHTML = other.innerHTML;
    for (const one of part.querySelectorAll("details")) one.open = open.includes(one.querySelector("summary")?.textContent);
    part.querySelectorAll(".scroll").forEach((one, i) => { one.scrollLeft = scrolled[i] || 0; });
    if (focused) [...part.querySelectorAll(REACHED)].find((one) => nameOf(one) === focused)?.focus({ preventScroll: true });
  }
}

async function renew() {
  if (!document.hidden) {
    try {
      const headers = { "X-Live": "1", ...(mark ? { "If-None-Match": mark } : {}) };
      const response = await fetch(location.href, { headers, cache: "no-store", redirect: "error" });
      if (response.status === 401) { location.reload(); return; }
      if (response.ok) {
        mark = response.headers.get("etag") || "";
        exchange(await response.text());
      }
      failures = 0;
    } catch {
      failures += 1;
    }
  }
  setTimeout(renew, EVERY_MS * Math.min(8, 1 + failures));
}

localise(document);
// A page that comes after a choice shows the field that was chosen in, with the focus, so that the keyboard can go on.
const CHOSEN = "chosen-field";
for (const form of document.querySelectorAll("form[data-auto]")) {
  form.addEventListener("change", ({ target }) => {
    if (!target.matches("select")) return;
    const left = target.closest(".scroll")?.scrollLeft;
    sessionStorage.setItem(CHOSEN, JSON.stringify({ path: location.pathname, name: target.name, left }));
    form.requestSubmit();
  });
}
const chosen = JSON.parse(sessionStorage.getItem(CHOSEN));
sessionStorage.removeItem(CHOSEN);
if (chosen?.path === location.pathname) {
  const field = document.querySelector(`form[data-auto] [name="${CSS.escape(chosen.name)}"]`);
  const box = field?.closest(".scroll");
  if (box) box.scrollLeft = chosen.left;
  field?.focus();
}
for (const code of document.querySelectorAll("[data-link]")) {
  code.textContent = new URL(code.dataset.link, location.href).href;
}
for (const code of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "button small", textContent: code.dataset.copy });
  code.after(" ", button);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent.trim());
    button.textContent = document.body.dataset.copied;
  });
}
if (document.querySelector("[data-live]")) setTimeout(renew, EVERY_MS);
