// The form of a study: the preview beside it at the width and in the condition that were chosen; files that are dropped are sent;
// entries that the address names are opened; leaving with unsaved changes asks first.
for (const chooser of document.querySelectorAll("form[data-preview]")) {
  const frame = document.querySelector(".maker-frame iframe");
  const box = frame.parentElement;
  const fit = () => {
    const width = Number(chooser.elements.width.value);
    const scale = Math.min(1, box.clientWidth / width);
    frame.style.inlineSize = `${width}px`;
    frame.style.blockSize = `${box.clientHeight / scale}px`;
    frame.style.transform = `scale(${scale})`;
  };
  chooser.addEventListener("change", (event) => {
    if (event.target.name === "cell") frame.src = `${chooser.dataset.preview}${event.target.value}/${frame.dataset.screen}/s`;
    fit();
  });
  new ResizeObserver(fit).observe(box);
  fit();
}

// A file that is dropped or chosen is sent at once.
for (const form of document.querySelectorAll("form[data-drop]")) {
  const chosen = form.querySelector("input[type=file]");
  const over = (is) => (event) => { event.preventDefault(); form.toggleAttribute("data-over", is); };
  form.addEventListener("dragover", over(true));
  form.addEventListener("dragleave", over(false));
  form.addEventListener("drop", (event) => {
    over(false)(event);
    if (!event.dataTransfer.files.length) return;
    chosen.files = event.dataTransfer.files;
    form.requestSubmit();
  });
  chosen.addEventListener("change", () => { if (chosen.files.length) form.requestSubmit(); });
}

// What was typed so far is looked at as soon as the typing pauses; text that was the same as its control follows it.
const PAUSE_MS = 300;
for (const form of document.querySelectorAll("form[data-look]")) {
  const place = document.querySelector("[data-looked-content]");
  let waiting = 0;
  let asked = 0;
  const look = async () => {
    const number = ++asked;
    const answer = await fetch(form.dataset.look, { method: "POST", body: new FormData(form) }).catch(() => null);
    if (answer?.ok && number === asked) place.innerHTML = await answer.text();
  };
  for (const text of form.querySelectorAll("[data-follows]")) {
    const control = form.elements[text.dataset.follows];
    let before = control.value;
    control.addEventListener("input", () => {
      if (text.value === before) text.value = control.value;
      before = control.value;
    });
  }
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, PAUSE_MS); });
}

const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
if (named) {
  for (let part = named; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  // The browser goes to the named place itself when everything is loaded, and takes the focus away.
  addEventListener("load", () => setTimeout(() => {
    named.scrollIntoView({ block: "center" });
    named.querySelector("input:not([type=hidden]), textarea, select")?.focus({ preventScroll: true });
  }));
}

for (const form of document.querySelectorAll("form[data-form]")) {
  let isChanged = false;
  form.addEventListener("input", () => { isChanged = true; });
  form.addEventListener("submit", () => { isChanged = false; });
  addEventListener("beforeunload", (event) => { if (isChanged) event.preventDefault(); });
}
