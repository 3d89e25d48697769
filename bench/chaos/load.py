"""Raters who send screens without pause through every fault, and write down what was acknowledged to them.

They do what a browser does: a screen that got no answer is sent again with the same token, until the server says that it is
stored. Only then does it count as acknowledged.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from dataclasses import dataclass

import httpx

from dialometer.model.study import Study
from dialometer.simulate.answering import answer_screen
from dialometer.simulate.rater import Habits, draw_rater
from dialometer.simulate.screen_view import with_own_names
from dialometer.simulate.server_client import view_from
from dialometer.simulate.truth import draw_truth

PAUSE_S = 0.1
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One screen that the server said is stored, by its key in the stored data."""

    session: str
    screen: str
    token: str


class Load:
    """Raters in threads of their own. Use it as ``with load:``; they go on until it ends."""

    def __init__(self, study: Study, url: str, key: str, n_raters: int) -> None:
        self.study, self.url, self.key = study, url, key
        self.acknowledged: list[Acknowledged] = []
        self.outcomes: Counter[str] = Counter()
        self._truth = draw_truth(study, 1)
        self._stop = threading.Event()
        self._raters = [threading.Thread(target=self._rate, args=(n,), daemon=True) for n in range(n_raters)]

    def __enter__(self) -> Load:
        for rater in self._raters:
            rater.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for rater in self._raters:
            rater.join(TIMEOUT_S + 10)

    def wait_for(self, n_more: int, at_most_s: float) -> int:
        """Until so many more screens were acknowledged; gives how many it were."""
        before, until = len(self.acknowledged), time.monotonic() + at_most_s
        while len(self.acknowledged) - before < n_more and time.monotonic() < until:
            time.sleep(0.02)
        return len(self.acknowledged) - before

    def _rate(self, number: int) -> None:
        with httpx.Client(base_url=f"{self.url}api/v1", timeout=TIMEOUT_S) as client:
            n_sessions = 0
            while not self._stop.is_set():
                n_sessions += 1
                self._take_part(
                    client, f"chaos-{number}-{n_sessions}-{secrets.token_hex(4)}", number * 1000 + n_sessions
                )

    def _take_part(self, client: httpx.Client, external_id: str, number: int) -> None:
        """One session from its first screen to its last, however often the server goes away in between."""
        rater = draw_rater(number, 1, Habits(careless_share=0))
        body = {"platform": "chaos", "external_id": external_id, "source": "simulated"}
        opened = self._call(client, "POST", "/sessions", self.key, body)
        if opened is None or opened.status_code != 201:
            return
        session, token = opened.json()["session_id"], opened.json()["session_token"]
        while True:
            shown = self._call(client, "GET", "/session/screen", token)
            if shown is None or shown.status_code != 200 or shown.json()["kind"] == "done":
                return
            view = with_own_names(self.study, view_from(shown.json()))
            sent = {
                "screen": shown.json()["screen"],
                "token": secrets.token_urlsafe(18),
                "answers": answer_screen(self.study, self._truth, rater, view),
                "shown_at_ms": time.time_ns() // 1_000_000,
            }
            answer = self._call(client, "POST", "/session/submissions", token, sent)
            if answer is None:
                return
            outcome = answer.json().get("outcome", "") if answer.status_code == 200 else f"status {answer.status_code}"
            self.outcomes[outcome] += 1
            if outcome in ("stored", "repeated"):
                self.acknowledged.append(Acknowledged(session, view.key, sent["token"]))
            elif answer.status_code == 401:  # the session is gone: an older state was restored
                return

    def _call(
        self, client: httpx.Client, method: str, path: str, token: str, body: dict[str, object] | None = None
    ) -> httpx.Response | None:
        """The answer, after as many tries as it takes; None when the load ends first."""
        while not self._stop.is_set():
            try:
                answer = client.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})
            except httpx.TransportError:
                self.outcomes["no answer"] += 1
            else:
                if answer.status_code < 429:
                    return answer
                self.outcomes[f"status {answer.status_code}"] += 1
            self._stop.wait(PAUSE_S)
        return None
