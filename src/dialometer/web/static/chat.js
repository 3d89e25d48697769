// A live conversation without loading the page again. Every message is on the server before the partner hears it; when
// the partner fails, the message stays and can be asked for again.
const chat = document.getElementById("chat");
const log = document.getElementById("log");
const view = document.getElementById("log-view");
const say = document.getElementById("say");
const retry = document.getElementById("retry");
const message = document.getElementById("message");
const typing = document.getElementById("typing");
const state = document.getElementById("chat-state");
const count = document.getElementById("chat-count");
const end = document.getElementById("end-chat");
const plural = new Intl.PluralRules(document.documentElement.lang);
const words = (forms, n) => (forms[plural.select(n)] ?? forms.other).replace("{n}", n);
const TIME_LIMIT_MS = 180_000;
const keptKey = `dialometer:chat:${document.getElementById("answers").dataset.session}`;
let nSaid = Number(chat.dataset.said);
let isBusy = false;

document.getElementById("say-hint").hidden = false;
view.scrollTop = view.scrollHeight;

// A keyboard on the screen covers the end of the page, in some browsers without the page getting any shorter.
const seen = window.visualViewport;
function fit() {
  const covered = Math.max(0, window.innerHeight - seen.height - seen.offsetTop);
  chat.style.setProperty("--seen", `${seen.height}px`);
  chat.style.setProperty("--covered", `${covered}px`);
  view.scrollTop = view.scrollHeight;
}
// The newest message and the field belong on the screen together.
function showEnd() {
  if (!seen) return;
  if (matchMedia("(max-width: 34rem)").matches) fit();
  const below = chat.getBoundingClientRect().bottom - seen.offsetTop - seen.height;
  if (below > 0) scrollBy(0, below);
}
if (seen) {
  seen.addEventListener("resize", () => { fit(); if (document.activeElement === message) showEnd(); });
  seen.addEventListener("scroll", fit);
  fit();
}
message.addEventListener("focus", showEnd);
try {
  const kept = sessionStorage.getItem(keptKey) ?? "";
  const lastSaid = [...log.querySelectorAll(".turn.end .said")].at(-1)?.textContent;
  message.value ||= kept.trim() === lastSaid?.trim() ? "" : kept;
} catch { /* nothing kept */ }
if (!retry.hidden) again(); // a reload while the partner was writing waits on

function keep(text) { try { sessionStorage.setItem(keptKey, text); } catch { /* not kept */ } }

function bubble(side, name, text, html = "") {
  const line = document.createElement("li");
  line.className = `turn ${side}`;
  const speaker = document.createElement("p");
  speaker.className = "speaker";
  speaker.dir = "auto";
  speaker.textContent = name;
  line.append(speaker, spoken(text, html));
  log.append(line);
  view.scrollTop = view.scrollHeight;
  return line;
}

// The server has cleaned the HTML of a reply in Markdown: nothing in it runs or loads anything.
function spoken(text, html) {
  const said = document.createElement(html ? "div" : "p");
  said.className = html ? "said rich" : "said";
  if (!html) said.dir = "auto";
  if (html) said.innerHTML = html;
  else said.textContent = text;
  return said;
}

// Follows the end of the conversation, unless the rater has scrolled up to read.
function growing(change) {
  const isAtEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 60;
  change();
  if (!isAtEnd) return;
  view.scrollTop = view.scrollHeight;
  showEnd();
}

function showCount() {
  const min = Number(chat.dataset.min);
  const max = Number(chat.dataset.max);
  const missing = Math.max(0, min - nSaid);
  const isFull = nSaid >= max;
  const rest = isFull ? chat.dataset.full : missing ? words(JSON.parse(chat.dataset.nMissing), missing) : chat.dataset.enough;
  count.children[0].textContent = words(JSON.parse(chat.dataset.nSaid), nSaid);
  count.children[1].textContent = rest;
  end.classList.toggle("main", !missing);
  say.hidden = isFull;
  if (isFull) end.focus();
}

async function ask(address, body) {
  const cancel = new AbortController();
  const limit = setTimeout(() => cancel.abort(), TIME_LIMIT_MS);
  try {
    const response = await fetch(address, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "Accept": "application/x-ndjson, application/json",
        "X-CSRF-Token": chat.dataset.csrf,
      },
      body: JSON.stringify({ csrf: chat.dataset.csrf, ...body }),
      signal: cancel.signal,
    });
    const isLive = response.headers.get("Content-Type")?.startsWith("application/x-ndjson");
    return isLive ? await follow(response) : await response.json();
  } finally {
    clearTimeout(limit);
  }
}

// A reply that comes word by word: a line of JSON for each piece, the outcome in the last. Words of a reply that breaks off
// go away again; the message can be asked for again.
async function follow(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let line = null;
  let outcome = null;
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const one of lines) {
        const told = JSON.parse(one);
        if (told.text === undefined) { outcome = told; continue; }
        line ??= begin();
        growing(() => grow(line, told));
      }
    }
    if (outcome === null) throw new Error("the response broke off");
    return { ...outcome, line };
  } finally {
    view.removeAttribute("aria-busy");
    if (outcome?.reply === undefined) line?.remove();
  }
}

// Plain text, or blocks of Markdown that are whole and, behind them, the text of the one that is being written.
function grow(line, { text, html }) {
  let tail = line.querySelector(".tail") ?? line.querySelector(".said");
  if (html === undefined) { tail.textContent += text; return; }
  if (!tail.matches(".tail")) {
    const rich = spoken("", html);
    tail.replaceWith(rich);
    tail = document.createElement("p");
    tail.className = "tail";
    tail.dir = "auto";
    rich.append(tail);
  } else {
    tail.insertAdjacentHTML("beforebegin", html);
  }
  tail.textContent = text;
}

function begin() {
  typing.hidden = true;
  view.setAttribute("aria-busy", "true"); // read out when it is whole
  return bubble("start", chat.dataset.partner, "");
}

function busy(is) {
  isBusy = is;
  typing.hidden = !is;
  say.querySelector("button").setAttribute("aria-disabled", String(is));
  if (is) { state.textContent = ""; retry.hidden = true; view.scrollTop = view.scrollHeight; }
}

// True when the message was not taken and goes back into the field.
async function take(answer) {
  while (answer.is_pending) {
    if (answer.n_said !== undefined) nSaid = answer.n_said;
    answer = await ask(`${chat.dataset.chat}/retry`, {});
  }
  if (answer.n_said !== undefined) nSaid = answer.n_said;
  if (answer.error !== undefined) {
    state.textContent = answer.may_retry ? chat.dataset.failed : chat.dataset.refused;
    retry.hidden = !answer.may_retry;
    return !answer.may_retry;
  }
  if (answer.line) growing(() => answer.line.querySelector(".said").replaceWith(spoken(answer.reply, answer.html)));
  else bubble("start", chat.dataset.partner, answer.reply, answer.html);
  return false;
}

async function send() {
  const text = message.value.trim();
  if (!text || isBusy) return;
  const line = bubble("end", chat.dataset.you, text);
  message.value = "";
  busy(true);
  showEnd();
  let isRefused = false;
  try {
    // The number of messages known here makes a message harmless that arrives twice.
    isRefused = await take(await ask(chat.dataset.chat, { text, n_said: nSaid }));
  } catch {
    isRefused = true;
    state.textContent = chat.dataset.unsent;
  }
  if (isRefused) {
    line.remove();
    message.value = [text, message.value].filter((words) => words.trim()).join("\n"); // with what was typed meanwhile
  }
  keep(message.value);
  rest();
}

async function again() {
  if (isBusy) return;
  busy(true);
  try {
    await take(await ask(`${chat.dataset.chat}/retry`, {}));
  } catch {
    state.textContent = chat.dataset.failed;
    retry.hidden = false;
  }
  rest();
}

function rest() {
  busy(false);
  showCount();
  if (!say.hidden) message.focus({ preventScroll: true });
  showEnd();
}

say.addEventListener("submit", (event) => { event.preventDefault(); send(); });
retry.addEventListener("submit", (event) => { event.preventDefault(); again(); });
message.addEventListener("input", () => keep(message.value));
message.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
});
