// Keeps what is typed: on the server a moment after each change, in the browser at once, so that neither a reload nor a
// lost connection costs a word.
const form = document.getElementById("answers");
const note = form.querySelector("[data-saved-note]");
const notices = document.querySelector("[data-notices]");
const prefix = `dialometer:draft:${form.dataset.session}:`;
const key = prefix + form.dataset.screen;
const WAIT_MS = 700;
let timer = 0;
let saving = null;
let isBehind = false;
let nChanges = 0;

function answers() {
  const found = {};
  for (const [name, value] of new FormData(form)) {
    const control = form.elements.namedItem(name);
    if (control instanceof HTMLElement && control.hasAttribute("data-own")) continue;
    (found[name] ??= []).push(value);
  }
  return found;
}

function store(content, isOnServer) {
  try {
    localStorage.setItem(key, JSON.stringify({ answers: content, isOnServer }));
  } catch { /* private windows may forbid it; the server's copy remains */ }
}

// One draft is on its way at a time; what changes meanwhile follows it.
async function save() {
  if (saving) { isBehind = true; return; }
  const content = answers();
  store(content, false);
  saving = put(content);
  await saving;
  saving = null;
  if (isBehind) { isBehind = false; save(); }
}

async function put(content) {
  const nKnown = nChanges;
  try {
    const response = await fetch(form.dataset.draft, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": form.elements.namedItem("csrf").value },
      body: JSON.stringify({ screen: form.dataset.screen, answers: content }),
    });
    if (response.status === 409) { // the session is past this screen
      note.textContent = "";
      form.dispatchEvent(new Event("moved"));
      return;
    }
    if (!response.ok) throw new Error(String(response.status));
    if (nChanges === nKnown) store(content, true);
    note.textContent = form.dataset.saved;
    note.classList.remove("local");
  } catch {
    note.textContent = form.dataset.local;
    note.classList.add("local");
  }
}

function soon() {
  clearTimeout(timer);
  nChanges += 1;
  store(answers(), false);
  timer = setTimeout(save, WAIT_MS);
}

// Puts the browser's copy back where it is newer than what the server knew when it made the page.
function restore() {
  let kept = null;
  try {
    for (const other of Object.keys(localStorage)) {
      if (other.startsWith(prefix) && other !== key) localStorage.removeItem(other);
    }
    kept = JSON.parse(localStorage.getItem(key) ?? "null");
  } catch { return; }
  if (!kept || kept.isOnServer) return;
  let isChanged = false;
  for (const control of form.elements) {
    if (!control.name || control.hasAttribute("data-own") || control.type === "submit") continue;
    const values = kept.answers[control.name] ?? [];
    if (control.type === "radio" || control.type === "checkbox") {
      const isChecked = values.includes(control.value);
      isChanged ||= control.checked !== isChecked;
      control.checked = isChecked;
    } else {
      isChanged ||= control.value !== (values[0] ?? "");
      control.value = values[0] ?? "";
    }
  }
  if (isChanged) {
    const told = document.createElement("p");
    told.textContent = notices.dataset.restored;
    notices.replaceChildren(told);
    form.dispatchEvent(new Event("restored"));
    soon();
  }
}

restore();
form.addEventListener("input", soon);
// A draft that arrives after the screen itself would stand there when the rater comes back to it.
form.addEventListener("sending", (event) => {
  clearTimeout(timer);
  isBehind = false;
  event.detail.waitFor = saving;
});
addEventListener("online", () => { if (note.classList.contains("local")) save(); });
