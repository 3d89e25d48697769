// Two live conversations side by side. A message is on the server before either system hears it; replies are read line by
// line as they come, so that a slow side does not hold up the other. What fails can be asked for again.
const arena = document.getElementById("arena");
const sides = new Map([...arena.querySelectorAll("[data-side]")].map((side) => [Number(side.dataset.side), side]));
const forms = [...arena.querySelectorAll("form[data-say]")];
const count = document.getElementById("chat-count");
const end = document.getElementById("end-chat");
const scenario = document.querySelector(".scenario");
const tabs = arena.querySelector(".arena-tabs");
const plural = new Intl.PluralRules(document.documentElement.lang);
const words = (texts, n) => (texts[plural.select(n)] ?? texts.other).replace("{n}", n);
const mark = document.getElementById("answers").dataset.session;
let said = JSON.parse(arena.dataset.said);
const busy = new Set();
const drafts = new Map(); // the bubble that a reply is being written into, by side

document.getElementById("say-hint").hidden = false;

// parts of a side

const part = (place, selector) => sides.get(place).querySelector(selector);

// The newest message goes to the top of the page, so that both responses below it can be read from their beginning.
const slides = !matchMedia("(prefers-reduced-motion: reduce)").matches;
function showMessage(line) { line.scrollIntoView({ block: "start", behavior: slides ? "smooth" : "auto" }); }

function bubble(place, side, name, text) {
  const line = document.createElement("li");
  line.className = `turn ${side}`;
  const speaker = document.createElement("p");
  speaker.className = "speaker";
  speaker.dir = "auto";
  speaker.textContent = name;
  const words = document.createElement("p");
  words.className = "said";
  words.dir = "auto";
  words.textContent = text;
  line.append(speaker, words);
  part(place, "ol").append(line);
  return line;
}

function setBusy(place, is) {
  if (is) busy.add(place); else busy.delete(place);
  part(place, ".typing").hidden = !is;
  if (is) {
    part(place, ".chat-state").textContent = "";
    part(place, ".arena-retry").hidden = true;
  }
  for (const form of forms) {
    const waits = form.dataset.say ? busy.has(Number(form.dataset.say)) : busy.size > 0;
    form.querySelector("button").setAttribute("aria-disabled", String(waits));
  }
}

function failed(place, text, mayRetry) {
  drafts.get(place)?.remove();
  drafts.delete(place);
  part(place, ".chat-state").textContent = text;
  part(place, ".arena-retry").hidden = !mayRetry;
}

// tabs on narrow screens: one side is seen, the other says when something new has come

const narrow = matchMedia("(max-width: 48rem)");
let current = 1;
function showSide(place) {
  current = place;
  for (const [number, side] of sides) side.classList.toggle("away", narrow.matches && number !== place);
  for (const tab of tabs.children) {
    const isThis = Number(tab.dataset.tab) === place;
    tab.setAttribute("aria-pressed", String(isThis));
    if (isThis) tab.querySelector(".arena-new").hidden = true;
  }
}
function layOut() { tabs.hidden = !narrow.matches; showSide(current); }
narrow.addEventListener("change", layOut);
tabs.addEventListener("click", (event) => {
  const tab = event.target.closest("[data-tab]");
  if (tab) showSide(Number(tab.dataset.tab));
});
function news(place) {
  if (narrow.matches && place !== current) tabs.querySelector(`[data-tab="${place}"] .arena-new`).hidden = false;
}

// what comes from the server

// The server has cleaned the HTML of a reply in Markdown: nothing in it runs or loads anything.
function show(said, { reply, html }) {
  if (!html) { said.textContent = reply; return; }
  const rich = document.createElement("div");
  rich.className = "said rich";
  rich.innerHTML = html;
  said.replaceWith(rich);
}

function take(event) {
  const { place } = event;
  if (place === undefined) {
    if (event.n_said) said = event.n_said;
    return;
  }
  if (event.text !== undefined) {
    if (!drafts.has(place)) drafts.set(place, bubble(place, "start", sides.get(place).dataset.name, ""));
    drafts.get(place).querySelector(".said").append(event.text);
  } else if (event.reply !== undefined) {
    const line = drafts.get(place) ?? bubble(place, "start", sides.get(place).dataset.name, "");
    show(line.querySelector(".said"), event); // as it is stored
    drafts.delete(place);
    part(place, ".typing").hidden = true;
    news(place);
  } else if (event.error !== undefined) {
    part(place, ".typing").hidden = true;
    failed(place, arena.dataset.failed, event.may_retry);
    news(place);
  }
}

// False where the message was refused and nothing of it is stored. Once the server answers, the message is stored: a side
// whose reply does not come then, since the connection breaks, can be asked for again. Sides are busy until the end of the
// answer, which says how many messages there are: a message sent before would be taken for the last one once more, or refused.
async function ask(address, body) {
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Accept": "application/x-ndjson, application/json", "X-CSRF-Token": arena.dataset.csrf },
    body: JSON.stringify({ csrf: arena.dataset.csrf, ...body }),
  });
  if (!response.ok) return false;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  const waiting = new Set(body.places);
  try {
    for (let isDone = false; !isDone;) {
      const { value, done } = await reader.read();
      rest += value ?? "";
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line) continue;
        const event = JSON.parse(line);
        take(event);
        if (event.reply !== undefined || event.error !== undefined) waiting.delete(event.place);
      }
      isDone = done;
    }
  } catch { /* the connection broke */ }
  for (const place of waiting) failed(place, arena.dataset.failed, true);
  return true;
}

const placesOf = (form) => (form.dataset.say ? [Number(form.dataset.say)] : [...sides.keys()]);
const keyOf = (form) => `dialometer:arena:${mark}:${form.dataset.say}`;
function keep(form) { try { sessionStorage.setItem(keyOf(form), form.elements.text.value); } catch { /* not kept */ } }

async function send(form) {
  const text = form.elements.text.value.trim();
  const places = placesOf(form);
  if (!text || places.some((place) => busy.has(place))) return;
  const own = places.map((place) => bubble(place, "end", arena.dataset.you, text));
  form.elements.text.value = "";
  for (const place of places) setBusy(place, true);
  if (narrow.matches) scenario?.removeAttribute("open");
  showMessage(own[places.indexOf(current)] ?? own[0]);
  const nSaid = Math.min(...places.map((place) => said[place - 1]));
  const body = { text, n_said: nSaid, places, ...(form.dataset.say && { place: places[0] }) };
  let isTaken = false;
  let reason = arena.dataset.refused;
  try {
    isTaken = await ask(arena.dataset.arena, body);
  } catch {
    reason = arena.dataset.unsent; // the message may be stored: sending it again is harmless
  }
  if (isTaken) {
    for (const place of places) said[place - 1] = Math.max(said[place - 1], nSaid + 1);
  } else {
    for (const line of own) line.remove();
    form.elements.text.value = [text, form.elements.text.value].filter((words) => words.trim()).join("\n"); // with what came since
    for (const place of places) failed(place, reason, false);
  }
  for (const place of places) setBusy(place, false);
  keep(form);
  rest(form);
}

async function again() {
  const waiting = [...sides.keys()].filter((place) => !part(place, ".arena-retry").hidden);
  if (busy.size) return;
  for (const place of waiting) setBusy(place, true);
  try {
    if (!(await ask(`${arena.dataset.arena}/retry`, { places: waiting }))) throw new Error("refused");
  } catch {
    for (const place of waiting) failed(place, arena.dataset.failed, true);
  }
  for (const place of waiting) setBusy(place, false);
  rest(forms[0]);
}

function rest(form) {
  const least = Math.min(...said);
  const missing = Math.max(0, Number(arena.dataset.min) - least);
  const isFull = least >= Number(arena.dataset.max);
  count.children[0].textContent = words(JSON.parse(arena.dataset.nSaid), least);
  count.children[1].textContent = isFull ? arena.dataset.full
    : missing ? words(JSON.parse(arena.dataset.nMissing), missing) : arena.dataset.enough;
  end.classList.toggle("main", !missing);
  for (const each of forms) each.hidden = placesOf(each).some((place) => said[place - 1] >= Number(arena.dataset.max));
  if (isFull) end.focus();
  else if (!form.hidden) form.elements.text.focus({ preventScroll: true });
}

for (const form of forms) {
  const field = form.elements.text;
  form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
  field.addEventListener("input", () => keep(form));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(form); }
  });
  try {
    const kept = sessionStorage.getItem(keyOf(form)) ?? "";
    const last = [...sides.get(placesOf(form)[0]).querySelectorAll(".turn.end .said")].at(-1)?.textContent.trim();
    field.value ||= kept.trim() === last ? "" : kept;
  } catch { /* nothing kept */ }
}
for (const place of sides.keys()) {
  part(place, ".arena-retry").addEventListener("submit", (event) => { event.preventDefault(); again(); });
}

// A keyboard on the screen covers the end of the page, in some browsers without the page getting any shorter.
const seen = window.visualViewport;
function fit() {
  arena.style.setProperty("--seen", `${seen.height}px`);
  arena.style.setProperty("--covered", `${Math.max(0, window.innerHeight - seen.height - seen.offsetTop)}px`);
}
if (seen) {
  seen.addEventListener("resize", fit);
  seen.addEventListener("scroll", fit);
  fit();
}
layOut();
if ([...sides.keys()].some((place) => !part(place, ".arena-retry").hidden)) again(); // a reload while replies were written
