// A button that copies the completion code; without a clipboard the code can still be selected.
const code = document.getElementById("code");
if (code && navigator.clipboard) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = code.dataset.copy;
  const told = document.createElement("span");
  told.setAttribute("role", "status");
  told.className = "small copied";
  code.after(button, told);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    told.textContent = code.dataset.copied;
  });
}
