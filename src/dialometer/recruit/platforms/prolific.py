"""Prolific: its links and completion address, drafts made from a study file, and its API."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from dialometer.errors import Problem, StudyError
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Study
from dialometer.recruit.platform import (
    BonusPayment,
    Platform,
    PlatformApi,
    PlatformError,
    PlatformSubmission,
    Transition,
)
from dialometer.recruit.platforms import PLATFORMS
from dialometer.recruit.prolific_filters import FILTERS, filters_in_numbers, filters_in_words
from dialometer.recruit.prolific_token import KEYS, TOKEN, token_problem

N_PER_PAGE = 100
N_PER_APPROVAL = 100
TIMES_THE_MINUTES = 3
"""Prolific lets a rater take this many times the estimated minutes; at least half an hour."""


class ProlificApi(PlatformApi):
    """The part of the API that a study needs, as documented at https://docs.prolific.com/api-reference."""

    address = "https://api.prolific.com/api/v1"
    address_variable = "PROLIFIC_API"
    token_variable = "PROLIFIC_TOKEN"

    def create_draft(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return _object(self.client.post("/studies/", payload))

    def study(self, study_id: str) -> dict[str, Any]:
        """The study as Prolific has it."""
        return _object(self.client.get(f"/studies/{study_id}/"))

    def filters(self) -> dict[str, dict[str, Any]]:
        """Every filter that a study may use, by its id."""
        known: dict[str, dict[str, Any]] = {}
        n_read = 0
        while True:
            page = _object(self.client.get("/filters/", limit=N_PER_PAGE, offset=n_read))
            results = page.get("results")
            if not isinstance(results, list):
                raise PlatformError("a list of filters came without results", where="/filters/")
            known |= {str(entry["filter_id"]): entry for entry in results if "filter_id" in entry}
            n_read += len(results)
            if not results or n_read >= int((page.get("meta") or {}).get("count") or n_read):
                return known

    def transition(self, study_id: str, action: Transition) -> dict[str, Any]:
        content = self.client.post(f"/studies/{study_id}/transition/", {"action": action}, safety="repeatable")
        return _object(content)

    def submissions(self, study_id: str) -> Iterator[PlatformSubmission]:
        n_read = 0
        while True:
            page = _object(self.client.get(f"/studies/{study_id}/submissions/", limit=N_PER_PAGE, offset=n_read))
            results = page.get("results")
            if not isinstance(results, list):
                raise PlatformError("a list of submissions came without results", where=f"/studies/{study_id}")
            yield from map(_submission, results)
            n_read += len(results)
            count = (page.get("meta") or {}).get("count")
            if not results or (count is not None and n_read >= int(count)) or len(results) < N_PER_PAGE:
                return

    def approve(self, submission_ids: Sequence[str]) -> None:
        for at in range(0, len(submission_ids), N_PER_APPROVAL):
            part = list(submission_ids[at : at + N_PER_APPROVAL])
            self.client.post("/submissions/bulk-approve/", {"submission_ids": part}, safety="repeatable")

    def request_return(self, submission_id: str, reasons: Sequence[str]) -> None:
        body = {"request_return_reasons": list(reasons)}
        self.client.post(f"/submissions/{submission_id}/request-return/", body, safety="repeatable")

    def set_up_bonuses(self, study_id: str, amounts: Mapping[str, str]) -> BonusPayment:
        lines = "".join(f"{participant},{amount}\n" for participant, amount in amounts.items())
        content = _object(
            self.client.post("/submissions/bonus-payments/", {"study_id": study_id, "csv_bonuses": lines})
        )
        return BonusPayment(str(content["id"]), float(content.get("total_amount") or 0))

    def pay_bonuses(self, payment_id: str) -> None:
        # Prolific pays again when it is asked again.
        self.client.post(f"/bulk-bonus-payments/{payment_id}/pay/", {}, safety="once")


def _object(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise PlatformError("the platform answered with something that is not an object", remedy="try again later")
    return content


def _submission(content: Any) -> PlatformSubmission:
    return PlatformSubmission(
        id=str(content["id"]),
        participant=str(content.get("participant_id") or content.get("participant") or ""),
        status=str(content.get("status", "")),
        code=str(content.get("study_code") or ""),
    )


def _noted_study(folder: Path | None) -> str:
    """The number of this study on Prolific, as ``dialometer recruit`` noted it; empty where it was not made by it."""
    try:
        noted = json.loads((folder / "prolific.json").read_text(encoding="utf-8-sig")) if folder else {}
    except (OSError, ValueError, RecursionError):
        return ""
    return str(noted.get("study_id") or "") if isinstance(noted, dict) else ""


@PLATFORMS.register("prolific")
class Prolific(Platform):
    """Raters of Prolific."""

    label = "Prolific"
    arrival: ClassVar[Mapping[str, str]] = {"rater": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"}
    completion = "https://app.prolific.com/submissions/complete?cc={code}"
    link = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    api = ProlificApi
    qualifications: ClassVar[Mapping[str, str]] = FILTERS

    def is_identifier(self, text: str) -> bool:
        return re.fullmatch(r"[0-9a-f]{24}", text) is not None

    @property
    def link_parameters(self) -> set[str]:
        return super().link_parameters | {TOKEN}

    def signature_problem(
        self, query: Mapping[str, str], *, key: bytes, host: str, now_s: float, folder: Path | None = None
    ) -> str:
        if not query.get(TOKEN):
            return super().signature_problem(query, key=key, host=host, now_s=now_s)
        rater = self.parameters["rater"]
        names = [rater, *(name for name in self.parameters.values() if name != rater and name in query)]
        # Anybody can publish a study on Prolific that leads here; its tokens are signed just as well.
        return token_problem(query[TOKEN], query, names, host, now_s, KEYS, of_study=_noted_study(folder))

    def with_filter_numbers(self, payload: Mapping[str, Any], api: PlatformApi) -> dict[str, Any]:
        if not payload["filters"]:
            return dict(payload)
        assert isinstance(api, ProlificApi)
        return {**payload, "filters": filters_in_numbers(payload["filters"], api.filters())}

    def problems(self, study: Study) -> Iterable[Problem]:
        if not self.recruitment.completion_code and not self.recruitment.return_url:
            yield Problem(
                "finished raters have no code to go back with",
                "give a completion_code of your own",
                field="completion_code",
                severity="warning",
            )

    def draft_of(
        self,
        study: Study,
        address: str,
        *,
        minutes: float,
        n_places: int | None = None,
        devices: Sequence[str] = ("desktop", "tablet", "mobile"),
    ) -> dict[str, Any]:
        places = n_places or self.recruitment.quota
        problems = _problems(study, address, places)
        if problems:
            raise StudyError(problems)
        estimate = math.ceil(minutes)
        return {
            "name": study.spec.title,
            "internal_name": study.spec.name,
            "description": _description(study),
            "external_study_url": f"{address.rstrip('/')}/{self.link}",
            "prolific_id_option": "url_parameters",
            "completion_codes": _codes(study, places or 0),
            "total_available_places": places,
            "estimated_completion_time": estimate,
            "maximum_allowed_time": max(30, TIMES_THE_MINUTES * estimate),
            "reward": self.recruitment.pay_cents,
            "device_compatibility": list(devices),
            "filters": filters_in_words(self.recruitment.qualifications, study.folder),
            "submissions_config": {"max_submissions_per_participant": 1},
            **({"is_external_study_url_secure": True} if self.recruitment.signed else {}),
        }


def _codes(study: Study, n_places: int) -> list[dict[str, Any]]:
    """Finished raters are reviewed by us; screened-out ones get their share, or are asked to return the place."""
    recruitment = study.spec.recruitment
    codes: list[dict[str, Any]] = [
        {
            "code": recruitment.completion_code,
            "code_type": "COMPLETED",
            "actor": "participant",
            "actions": [{"action": "MANUALLY_REVIEW"}],
        }
    ]
    if not recruitment.screen_out_code:
        return codes
    action: dict[str, Any]
    if recruitment.screen_out_pay_cents:
        action = {
            "action": "FIXED_SCREEN_OUT_PAYMENT",
            "fixed_screen_out_reward": recruitment.screen_out_pay_cents,
            "slots": n_places,
        }
        kind = "FIXED_SCREENOUT"
    else:
        action = {"action": "REQUEST_RETURN", "return_reason": "You don't match this study's requirements."}
        kind = "OTHER"
    codes.append({"code": recruitment.screen_out_code, "code_type": kind, "actor": "participant", "actions": [action]})
    return codes


def _description(study: Study) -> str:
    """What raters read. The study's own description is for a methods section and may give its checks away."""
    description = study.spec.recruitment.description.strip() or study.spec.title
    contact = f"\n\nQuestions: {study.spec.contact}" if study.spec.contact else ""
    return description + contact


def _problems(study: Study, address: str, places: int | None) -> list[Problem]:
    recruitment = study.spec.recruitment
    problems = []

    def lacks(message: str, remedy: str, field: str) -> None:
        problems.append(Problem(message, remedy, STUDY_FILE, field=f"recruitment.{field}"))

    if recruitment.platform != "prolific":
        lacks(f"the study recruits by '{recruitment.platform}'", "set platform: prolific", "platform")
    if not recruitment.completion_code:
        lacks("finished raters have no code to go back with", "give a completion_code of your own", "completion_code")
    if not recruitment.pay_cents:
        lacks("raters are paid nothing", "give pay_cents", "pay_cents")
    if not places:
        lacks("nobody says how many raters are wanted", "give a quota, or --places", "quota")
    can_screen_out = bool(study.spec.screening) or any(
        getattr(rule, "action", "") == "screen_out" for rule in study.spec.quality
    )
    if can_screen_out and not recruitment.screen_out_code:
        lacks("raters can be screened out, but have no code for it", "give a screen_out_code", "screen_out_code")
    if recruitment.screen_out_code and recruitment.screen_out_code == recruitment.completion_code:
        lacks("finished and screened-out raters have the same code", "give two codes", "screen_out_code")
    if recruitment.screen_out_pay_cents and recruitment.screen_out_pay_cents >= recruitment.pay_cents:
        lacks("being screened out pays as much as finishing", "give less", "screen_out_pay_cents")
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.netloc or parts.query:
        problems.append(
            Problem(
                f"'{address}' is not an address that raters of Prolific can open",
                "give the address under which the study is served, such as --url https://study.example.org",
                "--url",
            )
        )
    return problems
