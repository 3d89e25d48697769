// The end: what the browser kept for the session goes, and its codes can be copied by a button.
try {
  for (const storage of [localStorage, sessionStorage]) {
    for (const key of Object.keys(storage)) if (key.startsWith("dialometer:")) storage.removeItem(key);
  }
} catch { /* storage is forbidden, so nothing was kept */ }
for (const code of navigator.clipboard ? document.querySelectorAll(".code-value") : []) { // else it can be selected
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
