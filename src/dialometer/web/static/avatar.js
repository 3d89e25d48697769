// Talks to the avatar without loading the page again, and changes its threshold while one talks.
const csrf = document.body.dataset.csrf;
const log = document.getElementById("log");
const view = document.getElementById("log-view");
const begin = document.getElementById("begin");
const say = document.getElementById("say");
const message = document.getElementById("message");
const typing = document.getElementById("typing");
const state = document.getElementById("chat-state");
const percent = (share) => `${Math.round(100 * share)}%`;
let isBusy = false;

view.scrollTop = view.scrollHeight;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) { made.textContent = text; made.dir = "auto"; }
  return made;
}

function bubble(side, name, text) {
  const line = element("li", `turn${side}`);
  line.append(element("p", "speaker", name), element("p", "said", text));
  log.append(line);
  begin.hidden = true;
  view.scrollTop = view.scrollHeight;
  return line;
}

function found(best) {
  const details = element("details", "others");
  details.append(element("summary", "", "What it found"));
  const list = document.createElement("ol");
  for (const one of best) {
    const item = document.createElement("li");
    item.append(element("span", "", one.text), " ", element("span", "small", one.score.toFixed(3)));
    list.append(item);
  }
  details.append(list);
  return details;
}

const atOnce = document.getElementById("at-once");
const AT_ONCE = "dialometer-avatar-plays";
if (atOnce) {
  document.getElementById("at-once-label").hidden = false;
  atOnce.checked = localStorage.getItem(AT_ONCE) !== "off";
  atOnce.addEventListener("change", () => localStorage.setItem(AT_ONCE, atOnce.checked ? "on" : "off"));
}

// Browsers let a page play sound only after the visitor did something; where one refuses, the player's own button is left.
function play(recording, line) {
  const player = document.createElement(recording.is_video ? "video" : "audio");
  player.className = "recording";
  player.controls = true;
  player.preload = "metadata";
  player.playsInline = true;
  player.src = recording.source;
  player.setAttribute("aria-label", "Recording of this answer");
  if (recording.captions) {
    const track = document.createElement("track");
    track.kind = "captions";
    track.src = recording.captions;
    track.label = "Captions";
    track.default = true;
    player.append(track);
  }
  line.querySelector(".said").before(player);
  for (const other of log.querySelectorAll("video, audio")) if (other !== player) other.pause();
  player.addEventListener("loadedmetadata", () => { view.scrollTop = view.scrollHeight; }, { once: true });
  if (atOnce?.checked) player.play().catch(() => {});
}

function reply(answer) {
  const line = bubble(answer.has_declined ? " declined" : "", "Avatar", answer.reply);
  if (answer.recording) play(answer.recording, line);
  if (answer.confidence !== null) {
    const sure = element("p", "sure");
    const meter = document.createElement("meter");
    meter.max = 1;
    meter.value = answer.confidence;
    sure.append(meter, ` ${percent(answer.confidence)} sure${answer.has_declined ? ", so it did not answer" : ""}`);
    line.append(sure);
  }
  if (answer.best.length) line.append(found(answer.best));
  view.scrollTop = view.scrollHeight;
}

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

async function ask(text) {
  if (!text || isBusy) return;
  isBusy = true;
  const line = bubble(" end", "You", text);
  message.value = "";
  state.textContent = "";
  typing.hidden = false;
  try {
    reply(await send("/say", { text }));
  } catch (error) {
    line.remove();
    begin.hidden = log.children.length > 0;
    message.value = [text, message.value].filter((words) => words.trim()).join("\n"); // with what was typed meanwhile
    state.textContent = error instanceof TypeError ? "The message could not be sent. Try again." : error.message;
  }
  typing.hidden = true;
  isBusy = false;
  message.focus();
}

say.addEventListener("submit", (event) => { event.preventDefault(); ask(message.value.trim()); });
message.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(message.value.trim()); }
});
document.getElementById("suggested").addEventListener("submit", (event) => {
  event.preventDefault();
  ask(event.submitter.value);
});
document.getElementById("again").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await send("/again", {});
    log.replaceChildren();
    begin.hidden = false;
    state.textContent = "";
  } catch (error) {
    state.textContent = error.message;
  }
  message.focus();
});

const slider = document.getElementById("threshold");
if (slider) {
  document.getElementById("take").hidden = true;
  slider.addEventListener("input", () => { document.getElementById("shown").textContent = percent(slider.value); });
  slider.addEventListener("change", async () => {
    try {
      await send("/threshold", { threshold: Number(slider.value) });
    } catch (error) {
      state.textContent = error.message;
    }
  });
}
