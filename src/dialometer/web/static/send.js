// Sends a form once, however often the button is pressed, and keeps the page when the connection fails.
const TIME_LIMIT_MS = 30_000;
const DRAFT_LIMIT_MS = 2_000;

for (const form of document.querySelectorAll("form[method=post]")) {
  if (form.id === "say" || form.id === "retry") continue; // the conversation has its own script
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!form.dataset.isSending) send(form, event.submitter);
  });
}

// A page that comes back from the browser's memory must not stay locked.
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const form of document.querySelectorAll("form[data-is-sending]")) unlock(form);
});

async function send(form, submitter) {
  lock(form, submitter);
  const body = new URLSearchParams(new FormData(form));
  if (submitter?.name) body.append(submitter.name, submitter.value);
  const before = { waitFor: null };
  form.dispatchEvent(new CustomEvent("sending", { detail: before }));
  await Promise.race([before.waitFor, new Promise((resolve) => { setTimeout(resolve, DRAFT_LIMIT_MS); })]);
  const cancel = new AbortController();
  const limit = setTimeout(() => cancel.abort(), TIME_LIMIT_MS);
  try {
    const response = await fetch(form.action, { method: "POST", body, redirect: "manual", signal: cancel.signal });
    if (response.type === "opaqueredirect") {
      location.replace(`${document.body.dataset.root}/s`);
    } else if (response.status === 503 && document.querySelector("[data-notices]")) {
      unlock(form); // the answers stay on the page, to be sent again
      tell(form);
    } else {
      resendPlainly(form, submitter); // not accepted: the browser shows what the server has to say
    }
  } catch {
    unlock(form);
    tell(form);
  } finally {
    clearTimeout(limit);
  }
}

function resendPlainly(form, submitter) {
  if (submitter?.name) {
    const chosen = document.createElement("input");
    Object.assign(chosen, { type: "hidden", name: submitter.name, value: submitter.value });
    form.append(chosen);
  }
  form.submit();
}

function lock(form, submitter) {
  form.dataset.isSending = "yes";
  for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-disabled", "true");
  if (submitter && form.dataset.sending) {
    submitter.dataset.words = submitter.textContent;
    submitter.textContent = form.dataset.sending;
  }
}

function unlock(form) {
  delete form.dataset.isSending;
  for (const button of form.querySelectorAll("button[type=submit]")) {
    button.removeAttribute("aria-disabled");
    if (button.dataset.words) button.textContent = button.dataset.words;
  }
}

function tell(form) {
  const notices = document.querySelector("[data-notices]");
  if (!notices) { form.submit(); return; }
  const told = document.createElement("p");
  told.textContent = navigator.onLine ? notices.dataset.sendFailed : notices.dataset.sendOffline;
  notices.replaceChildren(told);
  notices.scrollIntoView({ block: "center" });
}
