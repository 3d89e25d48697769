// The wizard console: asks the server every moment which raters wait, draws the conversations and sends replies.
const words = document.getElementById("console").dataset;
const at = (id) => document.getElementById(id);
const plural = new Intl.PluralRules(document.documentElement.lang);
const ASK_EVERY_MS = 1500;
const drafts = new Map();
let chats = [];
let nowMs = 0;
let openId = null;
let suggestedFor = "";
let isSending = false;

async function call(path, body) {
  const response = await fetch(`${words.address}${path}`, body === undefined ? { headers: { Accept: "application/json" } } : {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRF-Token": words.csrf },
    body: JSON.stringify(body),
  });
  const content = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(content.error?.message ?? content.error ?? String(response.status));
  return content;
}

function tell(text, isTrouble = false) {
  const status = at("console-status");
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("trouble", isTrouble);
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) { element.textContent = text; element.dir = "auto"; }
  return element;
}

function since(ms) {
  const seconds = Math.max(0, Math.round((nowMs - ms) / 1000));
  return seconds < 90 ? words.seconds.replace("{n}", seconds) : words.minutes.replace("{n}", Math.round(seconds / 60));
}

function stateOf(chat) {
  if (chat.is_over) return words.over;
  if (chat.holder && !chat.is_mine) return words.taken.replace("{holder}", chat.holder);
  if (chat.waiting_since_ms !== null) return words.waiting.replace("{duration}", since(chat.waiting_since_ms));
  return chat.n ? words.answered : words.quiet;
}

const isForMe = (chat) => !chat.is_over && chat.waiting_since_ms !== null && (!chat.holder || chat.is_mine);

// Buttons stay the same elements, so that the focus is not lost every time the server is asked.
function drawList() {
  const list = at("console-chats");
  const known = new Map([...list.children].map((line) => [line.dataset.id, line]));
  const order = [...chats].sort((a, b) => Number(a.is_over) - Number(b.is_over) || (a.waiting_since_ms ?? Infinity) - (b.waiting_since_ms ?? Infinity));
  for (const chat of order) {
    let line = known.get(chat.id);
    known.delete(chat.id);
    if (!line) {
      line = make("li");
      line.dataset.id = chat.id;
      const button = make("button", "console-open");
      button.type = "button";
      button.append(make("b", "", words.chat.replace("{name}", chat.number)), make("span", "state", ""), make("span", "last", ""));
      button.addEventListener("click", () => open(chat.id));
      line.append(button);
    }
    const button = line.firstChild;
    button.classList.toggle("waits", isForMe(chat));
    button.setAttribute("aria-current", String(chat.id === openId));
    button.children[1].textContent = stateOf(chat);
    button.children[2].textContent = chat.turns.at(-1)?.text ?? "";
    if (list.children[order.indexOf(chat)] !== line) list.insertBefore(line, list.children[order.indexOf(chat)] ?? null);
  }
  for (const line of known.values()) line.remove();
  at("console-none").hidden = chats.length > 0;
  const n = chats.filter(isForMe).length;
  document.title = n ? `(${n}) ${words.title}` : words.title;
  if (!at("console-status").classList.contains("trouble")) {
    const forms = JSON.parse(words.new);
    tell(n ? (forms[plural.select(n)] ?? forms.other).replace("{n}", n) : "");
  }
}

// What the rater sees; the server has cleaned the HTML of Markdown.
function said(turn) {
  if (!turn.html) return make("p", "said", turn.text);
  const shown = make("div", "said rich");
  shown.innerHTML = turn.html;
  return shown;
}

function drawChat() {
  const chat = chats.find((one) => one.id === openId);
  at("console-chat").hidden = !chat;
  at("console-empty").hidden = Boolean(chat);
  if (!chat) return;
  at("console-chat-title").textContent = words.chat.replace("{name}", chat.number);
  at("console-turn").textContent = `${words.turn.replace("{n_said}", chat.n_said).replace("{min_turns}", chat.min_turns)} · ${stateOf(chat)}`;
  at("console-release").hidden = !chat.is_mine;
  at("console-instructions").hidden = !chat.instructions;
  at("console-instructions").textContent = chat.instructions;
  const canned = at("console-canned");
  if (canned.dataset.of !== JSON.stringify(chat.canned)) offer(canned, chat.canned);
  canned.dataset.of = JSON.stringify(chat.canned);
  at("console-canned-part").hidden = !chat.canned.length;
  at("console-scenario").hidden = !chat.scenario;
  at("console-scenario").querySelector("p").textContent = chat.scenario;
  const log = at("console-log");
  if (log.dataset.shown !== `${chat.id}/${chat.turns.length}`) {
    log.dataset.shown = `${chat.id}/${chat.turns.length}`;
    log.replaceChildren(...chat.turns.map((turn) => {
      const line = make("li", `turn ${turn.role === "user" ? "start" : "end"}`);
      line.append(make("p", "speaker", turn.role === "user" ? words.rater : words.agent), said(turn));
      return line;
    }));
    at("console-view").scrollTop = at("console-view").scrollHeight;
  }
  const mayReply = isForMe(chat);
  at("console-reply").querySelector("button").setAttribute("aria-disabled", String(!mayReply || isSending));
  at("console-ready").hidden = !mayReply;
  if (mayReply) suggest(chat);
}

function offer(place, texts) {
  place.replaceChildren(...texts.map((text) => {
    const button = make("button", "button", text);
    button.type = "button";
    button.addEventListener("click", () => {
      at("console-text").value = text;
      drafts.set(openId, text);
      at("console-text").focus();
    });
    return button;
  }));
}

async function suggest(chat) {
  const wanted = `${chat.id}/${chat.n}`;
  if (suggestedFor === wanted) return;
  suggestedFor = wanted;
  const place = at("console-suggestions");
  place.replaceChildren();
  let found = [];
  try { found = (await call(`/chats/${chat.id}/suggestions`)).suggestions; } catch { /* none then */ }
  if (suggestedFor !== wanted) return;
  offer(place, found);
  if (!found.length) place.append(make("p", "small", words.noneSuggested));
}

function open(id) {
  openId = id;
  at("console-text").value = drafts.get(id) ?? "";
  drawList();
  drawChat();
  at("console-chat-title").focus();
}

async function look() {
  try {
    const seen = await call("/chats");
    chats = seen.chats;
    nowMs = seen.now_ms;
    if (at("wizard-name") !== document.activeElement) at("wizard-name").value = seen.wizard;
    at("console-status").classList.remove("trouble");
    drawList();
    drawChat();
  } catch {
    tell(words.offline, true);
  }
}

async function keepLooking() {
  await look();
  setTimeout(keepLooking, ASK_EVERY_MS);
}

async function attempt(doing) {
  try {
    await doing();
    await look();
  } catch (error) {
    tell(words.failed.replace("{reason}", error.message), true);
  }
}

at("console-reply").addEventListener("submit", (event) => {
  event.preventDefault();
  const chat = chats.find((one) => one.id === openId);
  const text = at("console-text").value.trim();
  if (!chat || !text || isSending || !isForMe(chat)) return;
  isSending = true;
  attempt(async () => {
    await call(`/chats/${chat.id}/reply`, { text, n: chat.n });
    // Another text that was begun while this one was on its way stays.
    if ((drafts.get(chat.id) ?? text).trim() === text) drafts.delete(chat.id);
    if (openId === chat.id) at("console-text").value = drafts.get(chat.id) ?? "";
  }).finally(() => { isSending = false; drawChat(); });
});
at("console-text").addEventListener("input", () => drafts.set(openId, at("console-text").value));
at("console-text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); at("console-reply").requestSubmit(); }
});
at("console-release").addEventListener("click", () => attempt(() => call(`/chats/${openId}/release`, {})));
at("naming").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(() => call("/name", { name: at("wizard-name").value.trim() }));
  at("console-text").focus();
});
keepLooking();
