// Long texts that are cut until the rater opens them: notes every opening, and takes the button away where nothing is cut.
// Without this script the button works all the same, and what is open when the screen is sent is noted.
const cuttings = [...document.querySelectorAll(".cutting")];

function measure() {
  for (const cutting of cuttings) {
    const box = cutting.querySelector(".cut");
    const button = cutting.querySelector(".cut-switch");
    if (!button.checked) cutting.classList.toggle("is-whole", false);
    if (!button.checked && box.scrollHeight <= box.clientHeight + 2) cutting.classList.add("is-whole");
  }
}

for (const cutting of cuttings) {
  const button = cutting.querySelector(".cut-switch");
  button.addEventListener("input", (event) => event.stopPropagation()); // opening a text is no answer
  button.addEventListener("change", () => {
    if (!button.checked) { cutting.scrollIntoView({ block: "nearest" }); return; }
    if (cutting.querySelector("input[type=hidden]")) return;
    // Closing it again does not undo that it was read.
    const noted = document.createElement("input");
    noted.type = "hidden";
    noted.name = button.name;
    noted.value = button.value;
    noted.dataset.own = "";
    cutting.append(noted);
  });
  // Whoever tabs to a table or code below the cut sees it.
  cutting.querySelector(".cut").addEventListener("focusin", () => { if (!button.checked && !cutting.classList.contains("is-whole")) button.click(); });
}
measure();
addEventListener("resize", measure);
addEventListener("load", measure);
