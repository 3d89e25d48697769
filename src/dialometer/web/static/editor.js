// Line numbers beside a file, and the line that a problem names: it is selected and scrolled to.
for (const text of document.querySelectorAll("textarea[data-lines]")) {
  const editor = document.createElement("div");
  const gutter = document.createElement("pre");
  editor.className = "editor";
  gutter.className = "gutter";
  gutter.setAttribute("aria-hidden", "true");
  text.before(editor);
  editor.append(gutter, text);
  let nLines = 0;

  const number = () => {
    const n = text.value.split("\n").length;
    if (n !== nLines) gutter.textContent = Array.from({ length: n }, (_, i) => i + 1).join("\n") + "\n\n";
    nLines = n;
    gutter.scrollTop = text.scrollTop;
  };
  text.addEventListener("input", number);
  text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
  number();

  const wanted = Number(text.dataset.go);
  if (wanted) {
    const lines = text.value.split("\n");
    const start = lines.slice(0, wanted - 1).join("\n").length + (wanted > 1 ? 1 : 0);
    const go = () => {
      text.focus({ preventScroll: true });
      text.setSelectionRange(start, start + (lines[wanted - 1] ?? "").length);
      text.scrollTop = (wanted - 4) * Number.parseFloat(getComputedStyle(text).lineHeight);
      editor.scrollIntoView({ block: "center" });
    };
    go();
    // Where the address names a place of the page, browsers go there once it is loaded and take the focus away.
    addEventListener("load", () => requestAnimationFrame(() => setTimeout(go)));
  }
}

// Who else edits this file, and who saved it meanwhile. Asked every ten seconds; a page in the background asks nothing.
const EVERY_MS = 10_000;
const filled = (sentence, ...values) => values.reduce((text, value) => text.replace("…", () => value), sentence);

for (const form of document.querySelectorAll("form[data-editing]")) {
  const told = form.querySelector("[data-others]");
  const ask = async () => {
    if (document.hidden) return;
    const body = new URLSearchParams({ csrf: form.elements.csrf.value, base: form.elements.base.value });
    const answer = await fetch(form.dataset.editing, { method: "POST", body }).catch(() => null);
    if (!answer?.ok) return;
    const { others, saved_by: savedBy } = await answer.json();
    const parts = [];
    const words = told.dataset;
    if (others.length === 1) parts.push(filled(words.oneEdits, others[0]));
    if (others.length > 1) parts.push(filled(words.someEdit, filled(words.and, others.slice(0, -1).join(", "), others.at(-1))));
    if (savedBy) parts.push(filled(words.savedSince, savedBy));
    if (told.textContent !== parts.join(" ")) told.textContent = parts.join(" ");
  };
  setInterval(ask, EVERY_MS);
  ask();
}
