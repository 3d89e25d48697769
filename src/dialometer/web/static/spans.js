// Words that are marked: by clicking or tapping the first and the last one, by dragging with the mouse, or with the arrow keys.
// All marks are kept as JSON in one hidden field; offsets count characters (code points), as the server does.
const WORD = /[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+/gu;

for (const field of document.querySelectorAll("[data-spans]")) enhance(field);

function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  if (tag === "button") made.type = "button";
  return made;
}

function enhance(field) {
  const texts = field.dataset;
  const categories = JSON.parse(texts.categories);
  const severities = JSON.parse(texts.severities);
  const hidden = field.querySelector("[data-marks]");
  const none = field.querySelector(".span-none input");
  const passages = new Map();
  let marks = [];
  let chosen = null; // {turn, first, last}: numbers of words
  let changing = -1;
  let isDragging = false;

  field.querySelector("[id$=-hint]").textContent = texts.hint;
  for (const item of field.querySelectorAll("[data-passage]")) cut(item);
  marks = written();
  field.querySelector(".span-rows").remove();

  const panel = makePanel();
  const list = make("ol", "mark-list");
  const told = make("p", "small");
  told.setAttribute("role", "status");
  field.querySelector(".passages").after(panel.box, told, list);

  // The text of a passage as words that can be chosen; what is between them stays as it is.
  function cut(item) {
    const holder = item.querySelector(".passage-text");
    const text = holder.textContent;
    const turn = Number(item.dataset.passage);
    const words = [];
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(WORD)) {
      if (match.index > at) parts.push(document.createTextNode(text.slice(at, match.index)));
      const span = make("span", "word", match[0]);
      span.dataset.n = words.length;
      span.dataset.turn = turn;
      span.tabIndex = words.length ? -1 : 0;
      span.setAttribute("role", "button");
      words.push({ span, start: match.index, end: match.index + match[0].length });
      parts.push(span);
      at = match.index + match[0].length;
    }
    parts.push(document.createTextNode(text.slice(at)));
    holder.replaceChildren(...parts);
    passages.set(turn, { text, words, holder });
  }

  const points = (text, at) => [...text.slice(0, at)].length; // from JavaScript's units to characters
  const units = (text, n) => [...text].slice(0, n).join("").length;

  // What the rows of the plain form hold: marks that were sent before.
  function written() {
    const found = [];
    for (const row of field.querySelectorAll("[data-row]")) {
      const value = (part) => row.querySelector(`[name$=".${part}"]`)?.value ?? "";
      const quote = value("quote");
      if (!quote) continue;
      let turn = value("turn") === "" ? null : Number(value("turn"));
      if (turn === null && passages.size === 1) turn = [...passages.keys()][0];
      const text = passages.get(turn)?.text ?? "";
      if (turn === null || !text.includes(quote)) continue;
      const { start: from, end: to } = row.dataset;
      const start = from ? Number(from) : points(text, text.indexOf(quote));
      const end = to ? Number(to) : start + [...quote].length;
      found.push({ turn, start, end, text: quote, category: value("category"), severity: value("severity"), comment: value("comment") });
    }
    return found;
  }

  function makePanel() {
    const box = make("div", "mark-panel");
    box.hidden = true;
    box.setAttribute("role", "group");
    const quote = make("p", "mark-quote");
    quote.dir = "auto";
    const kinds = group(texts.category, categories, "category");
    const grades = group(texts.severity, severities, "severity");
    const comment = make("input");
    comment.type = "text";
    comment.dir = "auto";
    comment.maxLength = 1000;
    comment.setAttribute("data-own-words", "");
    const label = make("label", "mark-comment", texts.comment + " ");
    label.append(comment);
    label.hidden = texts.comments === "none";
    const add = make("button", "button main", texts.add);
    const whole = make("button", "button", texts.whole);
    const cancel = make("button", "button quiet", texts.cancel);
    const wrong = make("p", "error");
    wrong.setAttribute("role", "alert");
    wrong.hidden = true;
    const row = make("div", "mark-buttons");
    row.append(add, whole, cancel);
    box.append(quote, kinds.box, grades.box, label, wrong, row);
    add.addEventListener("click", keep);
    cancel.addEventListener("click", close);
    whole.addEventListener("click", () => { const { turn } = chosen; choose(turn, 0, passages.get(turn).words.length - 1); });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.preventDefault(); close(); }
      if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); event.stopPropagation(); keep(); }
    });
    return { box, quote, kinds, grades, comment, add, wrong };
  }

  // Buttons of which one is pressed; they are no controls of the form, so that nothing but the marks is sent.
  function group(title, options, name) {
    const box = make("div", "mark-choice");
    box.setAttribute("role", "radiogroup");
    box.setAttribute("aria-label", title);
    box.append(make("span", "mark-title", title));
    const buttons = Object.entries(options).map(([value, words]) => {
      const button = make("button", `mark-option ${name}`, words);
      button.dataset.value = value;
      button.setAttribute("role", "radio");
      button.addEventListener("click", () => set(value));
      box.append(button);
      return button;
    });
    box.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const here = Math.max(0, buttons.indexOf(document.activeElement));
      const next = buttons[(here + by + buttons.length) % buttons.length];
      set(next.dataset.value);
      next.focus();
    });
    let value = "";
    function set(wanted) {
      value = wanted;
      const first = buttons.find((button) => button.dataset.value === wanted) ?? buttons[0];
      for (const button of buttons) {
        button.setAttribute("aria-checked", String(button.dataset.value === wanted));
        button.tabIndex = button === first ? 0 : -1;
      }
    }
    return { box, set, get: () => value, focus: () => buttons.find((button) => button.tabIndex === 0).focus() };
  }

  function choose(turn, first, last) {
    const { text, words, holder } = passages.get(turn);
    chosen = { turn, first: Math.min(first, last), last: Math.max(first, last), from: first };
    panel.quote.textContent = texts.selected.replace("{words}", text.slice(words[chosen.first].start, words[chosen.last].end));
    if (panel.box.hidden) {
      panel.kinds.set("");
      panel.grades.set("");
      panel.comment.value = "";
      panel.add.textContent = texts.add;
      changing = -1;
    }
    panel.box.hidden = false;
    panel.wrong.hidden = true;
    holder.after(panel.box);
    paint();
  }

  function close() {
    const back = chosen && passages.get(chosen.turn).words[chosen.first].span;
    chosen = null;
    changing = -1;
    panel.box.hidden = true;
    paint();
    back?.focus();
  }

  function keep() {
    const category = panel.kinds.get();
    const severity = panel.grades.get();
    const comment = panel.comment.value.trim();
    if (!category || !severity || (texts.comments === "required" && !comment)) {
      panel.wrong.textContent = texts.incomplete;
      panel.wrong.hidden = false;
      return;
    }
    const { text, words } = passages.get(chosen.turn);
    const [from, to] = [words[chosen.first].start, words[chosen.last].end];
    const mark = { turn: chosen.turn, start: points(text, from), end: points(text, to), text: text.slice(from, to), category, severity, comment };
    const isSame = (other, n) => n !== changing && other.turn === mark.turn && other.start === mark.start && other.end === mark.end && other.category === category;
    if (changing >= 0) marks[changing] = mark;
    else if (!marks.some(isSame)) marks.push(mark); // how many there may be, the server says
    none.checked = false;
    close();
    changed();
    told.textContent = texts.added.replace("{words}", mark.text);
  }

  function changed() {
    marks.sort((a, b) => a.turn - b.turn || a.start - b.start || a.end - b.end);
    note();
    show();
    hidden.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function note() { hidden.value = marks.length ? JSON.stringify(marks) : ""; } // nothing is no answer

  function show() {
    list.replaceChildren(...marks.map(line));
    none.disabled = marks.length > 0;
    field.classList.toggle("is-set", marks.length > 0 || none.checked);
    told.textContent = marks.length ? texts.count.replace("{n}", marks.length) : "";
    paint();
  }

  function line(mark, n) {
    const item = make("li", `mark-line severity-${Object.keys(severities).indexOf(mark.severity)}`);
    const words = make("span", "mark-words", `“${mark.text}”`);
    words.dir = "auto";
    const said = make("span", "mark-said", [categories[mark.category], severities[mark.severity], mark.comment].filter(Boolean).join(" · "));
    said.dir = "auto";
    const edit = make("button", "mark-edit", "✎");
    edit.setAttribute("aria-label", texts.edit.replace("{words}", mark.text));
    edit.addEventListener("click", () => change(n));
    const remove = make("button", "mark-remove", "×");
    remove.setAttribute("aria-label", texts.remove.replace("{words}", mark.text));
    remove.addEventListener("click", () => {
      marks.splice(n, 1);
      close();
      changed();
      told.textContent = texts.removed.replace("{words}", mark.text);
      (list.querySelector(".mark-remove") ?? none).focus();
    });
    item.append(words, said, edit, remove);
    return item;
  }

  function change(n) {
    const mark = marks[n];
    const { text, words } = passages.get(mark.turn);
    const [from, to] = [units(text, mark.start), units(text, mark.end)];
    const inside = words.map((word, k) => (word.end > from && word.start < to ? k : -1)).filter((k) => k >= 0);
    choose(mark.turn, inside[0], inside.at(-1));
    changing = n;
    panel.kinds.set(mark.category);
    panel.grades.set(mark.severity);
    panel.comment.value = mark.comment ?? "";
    panel.add.textContent = texts.save;
    panel.kinds.focus();
  }

  function paint() {
    const grades = Object.keys(severities);
    for (const [turn, { text, words }] of passages) {
      const own = marks.filter((mark) => mark.turn === turn).map((mark) => ({ from: units(text, mark.start), to: units(text, mark.end), grade: grades.indexOf(mark.severity) }));
      words.forEach((word, k) => {
        const grade = Math.max(-1, ...own.filter((mark) => word.end > mark.from && word.start < mark.to).map((mark) => mark.grade));
        const isChosen = chosen?.turn === turn && k >= chosen.first && k <= chosen.last;
        word.span.className = `word${grade >= 0 ? ` marked grade-${Math.min(grade, 2)}` : ""}${isChosen ? " chosen" : ""}`;
        word.span.setAttribute("aria-pressed", String(isChosen));
      });
    }
  }

  // Mouse: press, drag, release. Finger: tap the first word, then the last one; dragging scrolls the page.
  field.addEventListener("pointerdown", (event) => {
    const span = event.target.closest(".word");
    if (!span || event.button !== 0) return;
    const [turn, n] = [Number(span.dataset.turn), Number(span.dataset.n)];
    const extends_ = chosen && chosen.turn === turn && chosen.first === chosen.last && (event.pointerType !== "mouse" || event.shiftKey || n !== chosen.first);
    if (event.pointerType === "mouse") {
      event.preventDefault();
      isDragging = true;
      choose(turn, extends_ ? chosen.from : n, n);
    } else {
      span.dataset.tapped = extends_ ? "last" : "first";
    }
  });
  field.addEventListener("pointerover", (event) => {
    const span = event.target.closest(".word");
    if (isDragging && span && Number(span.dataset.turn) === chosen?.turn) choose(chosen.turn, chosen.from, Number(span.dataset.n));
  });
  addEventListener("pointerup", () => {
    if (isDragging && chosen) passages.get(chosen.turn).words[chosen.first].span.focus({ preventScroll: true });
    isDragging = false;
  });
  field.addEventListener("click", (event) => {
    const span = event.target.closest(".word[data-tapped]");
    if (!span) return;
    const [turn, n] = [Number(span.dataset.turn), Number(span.dataset.n)];
    choose(turn, span.dataset.tapped === "last" ? chosen.from : n, n);
    delete span.dataset.tapped;
  });
  field.addEventListener("keydown", (event) => {
    const span = event.target.closest(".word");
    if (!span) return;
    const turn = Number(span.dataset.turn);
    const { words, holder } = passages.get(turn);
    const isBack = getComputedStyle(holder).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
    const by = { ArrowUp: -8, ArrowDown: 8, ArrowLeft: isBack === "ArrowLeft" ? -1 : 1, ArrowRight: isBack === "ArrowLeft" ? 1 : -1, Home: -1e6, End: 1e6 }[event.key];
    const n = Number(span.dataset.n);
    if (by) {
      event.preventDefault();
      const next = Math.min(words.length - 1, Math.max(0, n + by));
      span.tabIndex = -1;
      words[next].span.tabIndex = 0;
      words[next].span.focus();
      if (event.shiftKey) choose(turn, chosen?.turn === turn ? chosen.from : n, next);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      event.stopPropagation();
      if (!(chosen?.turn === turn && n >= chosen.first && n <= chosen.last)) choose(turn, n, n);
      panel.kinds.focus();
    } else if (event.key === "Escape" && chosen) {
      event.preventDefault();
      close();
    }
  });
  none.addEventListener("input", () => { note(); show(); });

  // The browser's copy of a form that was not sent.
  function restored() {
    try {
      marks = JSON.parse(hidden.value).filter((mark) => passages.has(mark.turn));
    } catch { /* what was written in the rows stays */ }
    note();
    show();
  }
  field.form?.addEventListener("restored", restored);
  restored();
}
