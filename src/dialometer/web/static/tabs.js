// Two tabs of one session: the tab left behind says so, instead of letting its answers go to nowhere.
const form = document.getElementById("answers");
const notices = document.querySelector("[data-notices]");

function tell() {
  if (form.dataset.isSending) return;
  const told = document.createElement("p");
  const link = document.createElement("a");
  link.href = `${document.body.dataset.root}/s`;
  link.textContent = notices.dataset.reload;
  told.append(notices.dataset.moved, " ", link);
  notices.replaceChildren(told);
  notices.scrollIntoView({ block: "center" });
}

form.addEventListener("moved", tell); // the server has refused a draft of this screen
if ("BroadcastChannel" in window) {
  const channel = new BroadcastChannel(`dialometer:${form.dataset.session}`);
  channel.postMessage(form.dataset.screen);
  channel.addEventListener("message", (event) => { if (event.data !== form.dataset.screen) tell(); });
}
