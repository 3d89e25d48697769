"""Prolific's API, as documented at https://docs.prolific.com/api-reference: studies, submissions, bonuses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dialometer.errors import DialometerError
from dialometer.recruit.calling import Calls, PlatformError

API = "https://api.prolific.com/api/v1"
TOKEN_VARIABLE = "PROLIFIC_TOKEN"
API_VARIABLE = "PROLIFIC_API"
N_PER_PAGE = 100
N_PER_APPROVAL = 100
N_PER_BONUS = 200
"""The most participants of one bulk payment."""
Action = Literal["PUBLISH", "PAUSE", "START", "STOP"]


@dataclass(frozen=True, slots=True)
class Submission:
    """One rater's place in the study, as Prolific sees it; ``code`` is the completion code that was entered."""

    id: str
    participant: str
    status: str
    code: str = ""
    started_at: str = ""
    time_taken_s: float | None = None

    @property
    def awaits_review(self) -> bool:
        """Whether Prolific waits for us to approve it."""
        return self.status.upper().replace(" ", "_") == "AWAITING_REVIEW"


@dataclass(frozen=True, slots=True)
class BonusPayment:
    """Bonuses that are set up and not yet paid; amounts in hundredths of the currency, fees included in the total."""

    id: str
    amount_cents: float
    fees_cents: float
    total_cents: float


def token_from_environment() -> str:
    """The researcher's token. It is never an option or part of a study, so that no shell history or file holds it."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise DialometerError(
            f"the environment has no {TOKEN_VARIABLE}",
            remedy=f"make a token in Prolific's settings and set {TOKEN_VARIABLE} to it",
        )
    return token


def api_from_environment() -> str:
    """Where the API is; another address serves rehearsals."""
    return os.environ.get(API_VARIABLE, "").strip() or API


class Prolific:
    """The part of the API that a study needs."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def create_draft(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """A draft, which nobody sees until it is published."""
        return _object(self._calls.post("/studies/", payload))

    def study(self, study_id: str) -> dict[str, Any]:
        """The study as Prolific has it."""
        return _object(self._calls.get(f"/studies/{study_id}/"))

    def transition(self, study_id: str, action: Action) -> dict[str, Any]:
        """Publishes, pauses, starts again or stops a study."""
        content = self._calls.post(f"/studies/{study_id}/transition/", {"action": action}, safety="repeatable")
        return _object(content)

    def submissions(self, study_id: str) -> Iterator[Submission]:
        """All submissions of a study, page by page."""
        n_read = 0
        while True:
            page = _object(self._calls.get(f"/studies/{study_id}/submissions/", limit=N_PER_PAGE, offset=n_read))
            results = page.get("results")
            if not isinstance(results, list):
                raise PlatformError("a list of submissions came without results", where=f"/studies/{study_id}")
            yield from (_submission(one) for one in results)
            n_read += len(results)
            count = (page.get("meta") or {}).get("count")
            if not results or (count is not None and n_read >= int(count)) or len(results) < N_PER_PAGE:
                return

    def approve(self, submission_ids: Sequence[str]) -> None:
        """Approves submissions, which pays them; one that is approved already stays so."""
        for at in range(0, len(submission_ids), N_PER_APPROVAL):
            part = list(submission_ids[at : at + N_PER_APPROVAL])
            self._calls.post("/submissions/bulk-approve/", {"submission_ids": part}, safety="repeatable")

    def request_return(self, submission_id: str, reasons: Sequence[str]) -> None:
        """Asks a rater to give the place back, with reasons that they read."""
        body = {"request_return_reasons": list(reasons)}
        self._calls.post(f"/submissions/{submission_id}/request-return/", body, safety="repeatable")

    def set_up_bonuses(self, study_id: str, amounts: Mapping[str, str]) -> BonusPayment:
        """Prepares bonuses, by submission or participant; nothing is paid yet. Amounts are decimals of the currency."""
        lines = "".join(f"{who},{amount}\n" for who, amount in amounts.items())
        content = _object(
            self._calls.post("/submissions/bonus-payments/", {"study_id": study_id, "csv_bonuses": lines})
        )
        return BonusPayment(
            str(content["id"]),
            float(content.get("amount") or 0),
            float(content.get("fees") or 0),
            float(content.get("total_amount") or 0),
        )

    def pay_bonuses(self, payment_id: str) -> None:
        """Pays bonuses that were set up. Prolific pays again when it is asked again, so this is never repeated."""
        self._calls.post(f"/bulk-bonus-payments/{payment_id}/pay/", {}, safety="once")


def _object(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise PlatformError("the platform answered with something that is no object", remedy="try again later")
    return content


def _submission(content: Any) -> Submission:
    taken = content.get("time_taken")
    return Submission(
        id=str(content["id"]),
        participant=str(content.get("participant_id") or content.get("participant") or ""),
        status=str(content.get("status", "")),
        code=str(content.get("study_code") or ""),
        started_at=str(content.get("started_at") or ""),
        time_taken_s=float(taken) if isinstance(taken, int | float) else None,
    )
