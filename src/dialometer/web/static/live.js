// Pages of the dashboard that renew themselves: asks for the page again and exchanges the parts marked data-live.
// Times are shown in the reader's zone, filters work as soon as something is chosen.

const EVERY_MS = 4000;
let mark = "";
let failures = 0;

function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.textContent = at.toLocaleString(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
      time.title = at.toISOString();
    }
  }
}

function isBusy(part) {
  const active = document.activeElement;
  return active && part.contains(active) && active.matches("input, textarea, select");
}

function exchange(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    if (!other || isBusy(part)) continue;
    localise(other);
    if (other.innerHTML === part.innerHTML) continue;
    const open = [...part.querySelectorAll("details[open]")].map((one) => one.querySelector("summary")?.textContent);
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const scrolled = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    part.innerHTML = other.innerHTML;
    for (const one of part.querySelectorAll("details")) one.open = open.includes(one.querySelector("summary")?.textContent);
    part.querySelectorAll(".scroll").forEach((one, i) => { one.scrollLeft = scrolled[i] || 0; });
    if (focused) part.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
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
for (const form of document.querySelectorAll("form[data-auto]")) {
  form.addEventListener("change", (event) => { if (event.target.matches("select")) form.requestSubmit(); });
}
for (const code of document.querySelectorAll("[data-link]")) {
  code.textContent = new URL(code.dataset.link, location.href).href;
}
if (document.querySelector("[data-live]")) setTimeout(renew, EVERY_MS);
