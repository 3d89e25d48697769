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
    text.focus({ preventScroll: true });
    text.setSelectionRange(start, start + (lines[wanted - 1] ?? "").length);
    text.scrollTop = (wanted - 4) * Number.parseFloat(getComputedStyle(text).lineHeight);
    editor.scrollIntoView({ block: "center" });
  }
}
