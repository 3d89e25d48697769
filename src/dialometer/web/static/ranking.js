// Lines that are put in order by dragging, by buttons or by the arrow keys. The order shown at first counts only when
// the rater says so or moves a line, so that an untouched list is no answer.
const ICONS = {
  grip: ["M9 5h.01", "M15 5h.01", "M9 12h.01", "M15 12h.01", "M9 19h.01", "M15 19h.01"],
  up: ["M6 15l6-6 6 6"],
  down: ["M6 9l6 6 6-6"],
};

for (const field of document.querySelectorAll("[data-ranking]")) enhance(field);

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  for (const d of ICONS[name]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

function button(className, label, picture) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = className;
  if (label) made.setAttribute("aria-label", label);
  if (picture) made.append(icon(picture));
  return made;
}

function enhance(field) {
  const texts = field.dataset;
  const list = field.querySelector(".ranks");
  const lines = () => [...list.children];
  const input = (line) => line.querySelector(".rank-number");
  const firstId = input(lines()[0]).id;
  field.querySelector("[id$=-hint]").textContent = texts.hint;

  const state = document.createElement("div");
  state.className = "rank-state";
  const told = document.createElement("span");
  told.setAttribute("role", "status");
  const keep = button("button", "");
  keep.textContent = texts.keep;
  state.append(told, keep);
  list.after(state);

  for (const line of lines()) {
    const number = input(line);
    number.type = "hidden";
    number.removeAttribute("id");
    const place = document.createElement("span");
    place.className = "rank-place";
    place.setAttribute("aria-hidden", "true");
    const grip = button("rank-grip", "", "grip");
    grip.tabIndex = -1;
    grip.setAttribute("aria-hidden", "true");
    const up = button("rank-move up", texts.up.replace("{option}", line.dataset.label), "up");
    const down = button("rank-move down", texts.down.replace("{option}", line.dataset.label), "down");
    line.prepend(grip, place);
    line.append(up, down);
    up.addEventListener("click", () => move(line, -1, up));
    down.addEventListener("click", () => move(line, +1, down));
    for (const pressed of [up, down]) {
      pressed.addEventListener("keydown", (event) => {
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (by) { event.preventDefault(); move(line, by, pressed); }
      });
    }
    drag(line, grip);
  }
  keep.addEventListener("click", () => { settle(); told.textContent = texts.set; lines()[0].querySelector("button.down").focus(); });

  function isSet() { return lines().every((line) => input(line).value !== ""); }

  function show() {
    const all = lines();
    field.classList.toggle("is-set", isSet());
    keep.hidden = isSet();
    all.forEach((line, i) => {
      line.querySelector(".rank-place").textContent = isSet() ? i + 1 : "–";
      line.querySelector(".up").setAttribute("aria-disabled", String(i === 0));
      line.querySelector(".down").setAttribute("aria-disabled", String(i === all.length - 1));
    });
    all.forEach((line) => line.querySelector(".down").removeAttribute("id"));
    all[0].querySelector(".down").id = firstId;
    told.textContent = isSet() ? texts.set : texts.unset;
  }

  function settle() {
    lines().forEach((line, i) => { input(line).value = i + 1; });
    show();
    input(lines()[0]).dispatchEvent(new Event("input", { bubbles: true }));
  }

  function tell(line) {
    const all = lines();
    told.textContent = texts.moved
      .replace("{option}", line.dataset.label).replace("{rank}", all.indexOf(line) + 1).replace("{n}", all.length);
  }

  function move(line, by, pressed) {
    const all = lines();
    const to = all.indexOf(line) + by;
    if (to < 0 || to >= all.length) return;
    if (by < 0) all[to].before(line); else all[to].after(line);
    settle();
    tell(line);
    pressed.focus();
  }

  // The window listens while a line is held: an element that changes its place in the page loses the pointer.
  function drag(line, grip) {
    grip.addEventListener("pointerdown", (down) => {
      if (down.button !== 0) return;
      down.preventDefault();
      let from = down.clientY;
      const listening = new AbortController();
      line.classList.add("lifted");
      addEventListener("pointermove", (event) => {
        if (event.pointerId === down.pointerId) from = follow(line, event.clientY, from);
      }, listening);
      for (const end of ["pointerup", "pointercancel"]) {
        addEventListener(end, (event) => {
          if (event.pointerId !== down.pointerId) return;
          listening.abort();
          line.classList.remove("lifted");
          line.style.transform = "";
          settle();
          tell(line);
        }, listening);
      }
    });
  }

  // A line changes places when it has gone more than half of the way, so it cannot swing back and forth.
  function follow(line, y, from) {
    for (let n = lines().length; n > 0; n -= 1) {
      const [before, after] = [line.previousElementSibling, line.nextElementSibling];
      const up = before ? line.offsetTop - before.offsetTop : Infinity;
      const down = after ? after.offsetTop + after.offsetHeight - line.offsetTop - line.offsetHeight : Infinity;
      if (y - from < -up / 2) { before.before(line); from -= up; }
      else if (y - from > down / 2) { after.after(line); from += down; }
      else break;
    }
    line.style.transform = `translateY(${y - from}px)`;
    return from;
  }

  function arrange() {
    if (isSet()) {
      const rank = (line) => Number(input(line).value);
      list.append(...lines().sort((a, b) => rank(a) - rank(b)));
    } else {
      lines().forEach((line) => { input(line).value = ""; });
    }
    show();
  }
  field.form?.addEventListener("restored", arrange);
  arrange();
}
