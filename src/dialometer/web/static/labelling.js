// Marks answers without loading the page again, searches while one types, and adds the keys.
const { csrf, question, n } = document.body.dataset;
const by = (id) => document.getElementById(id);
const answers = by("answers");
const words = by("words");
const status = by("status");
const useKeys = by("use-keys");
const KEYS = "dialometer-label-keys";
let waiting = Promise.resolve();
let nSearches = 0;

async function send(address, body) {
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Accept": "application/json", "X-CSRF-Token": csrf },
    body: JSON.stringify(body),
  });
  const content = await response.json();
  if (!response.ok) throw new Error(content.error);
  return content;
}

// One after the other, so that marks are stored in the order they were made.
function after(work) {
  waiting = waiting.then(work).catch((error) => {
    status.textContent = error instanceof TypeError ? "Not stored: the server does not answer. Is it still running?" : `Not stored: ${error.message}`;
  });
  return waiting;
}

function row(entry) {
  const line = document.createElement("li");
  const button = document.createElement("button");
  button.type = "submit";
  button.name = "toggle";
  button.value = entry.answer;
  button.className = "option answer";
  button.setAttribute("aria-pressed", entry.fits);
  const key = document.createElement("span");
  key.className = "key";
  key.setAttribute("aria-hidden", "true");
  const text = document.createElement("span");
  text.className = "answer-text";
  text.dir = "auto";
  text.textContent = entry.text;
  button.append(key, text);
  line.append(button);
  return line;
}

const shown = () => [...answers.querySelectorAll(".answer")].filter((button) => button.offsetParent !== null);
const listed = () => [...(by("results").hidden ? by("suggested") : by("found")).querySelectorAll(".answer")].slice(0, 10);

function number() {
  for (const button of answers.querySelectorAll(".answer")) {
    button.querySelector(".key").textContent = "";
    button.removeAttribute("aria-keyshortcuts");
  }
  if (!useKeys.checked) return;
  listed().forEach((button, place) => {
    const key = String((place + 1) % 10);
    button.querySelector(".key").textContent = key;
    button.setAttribute("aria-keyshortcuts", key);
  });
}

function toggle(button) {
  after(async () => {
    const answer = Number(button.value);
    const fits = button.getAttribute("aria-pressed") !== "true";
    const now = await send("/mark", { question, toggle: answer, fits });
    const text = button.querySelector(".answer-text").textContent;
    const known = by("suggested").querySelector(`[value="${answer}"]`) || by("others").querySelector(`[value="${answer}"]`);
    if (!known) by("others").append(row({ answer, text, fits: now.fits }));
    for (const same of answers.querySelectorAll(`[value="${answer}"]`)) same.setAttribute("aria-pressed", now.fits);
    by("also").hidden = !by("others").children.length;
    by("finish").textContent = now.n_right ? "Done, next question" : "None fits, next question";
    status.textContent = `${now.fits ? "Marked" : "Unmarked"}: ${text.length > 60 ? `${text.slice(0, 59)}…` : text} (${now.n_right} marked, stored)`;
  });
}

const go = (address) => after(async () => {
  const next = (await send(address, { question })).question;
  location.assign(`/q/${next}`);
});

async function search() {
  const own = ++nSearches;
  const asked = words.value.trim();
  if (!asked) {
    by("results").hidden = true;
    number();
    return;
  }
  const response = await fetch(`/search?${new URLSearchParams({ question, search: asked })}`, { headers: { Accept: "application/json" } });
  if (!response.ok) return;
  const found = await response.json();
  if (own !== nSearches) return; // only the newest search is shown: an earlier one would take the focus away
  by("results").hidden = false;
  by("results-title").textContent = found.n > found.answers.length ? `${found.n} found, the first ${found.answers.length}` : `${found.n} found`;
  by("found").replaceChildren(...found.answers.map(row));
  number();
}

let pause;
words.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(search, 150); });
by("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  search().then(() => listed()[0]?.focus());
});
answers.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter) toggle(event.submitter);
});
by("done").addEventListener("submit", (event) => { event.preventDefault(); go("/done"); });
by("undo").addEventListener("submit", (event) => { event.preventDefault(); go("/undo"); });

function move(step) {
  const all = shown();
  const place = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, place + step))]?.focus();
}

const ACTIONS = {
  j: () => move(1),
  k: () => move(-1),
  u: () => go("/undo"),
  n: () => by("after")?.click(),
  p: () => by("before")?.click(),
  "/": () => { words.focus(); words.select(); },
};

document.addEventListener("keydown", (event) => {
  if (event.target === words && event.key === "Escape") {
    words.value = "";
    search();
    words.blur();
    return;
  }
  const isTyping = event.target === words;
  if (isTyping || !useKeys.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Enter") {
    // On a link, another button or a fold, Enter does what it does everywhere.
    if (event.target.closest("a, summary, button:not(.answer), input")) return;
    event.preventDefault();
    go("/done");
  } else if (/^[0-9]$/.test(event.key)) {
    const button = listed()[(Number(event.key) + 9) % 10];
    if (button) { event.preventDefault(); toggle(button); }
  } else if (ACTIONS[event.key]) {
    event.preventDefault();
    ACTIONS[event.key]();
  }
});

const earlier = by("earlier");
if (earlier) earlier.scrollTop = earlier.scrollHeight;
useKeys.checked = localStorage.getItem(KEYS) !== "off";
useKeys.addEventListener("change", () => {
  localStorage.setItem(KEYS, useKeys.checked ? "on" : "off");
  number();
});
number();
