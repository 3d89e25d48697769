"""A study file as a draft study on Prolific: texts, pay, places, codes and what follows from each code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from dialometer.errors import Problem, StudyError
from dialometer.model.study import Study
from dialometer.recruit.sites import SITES

MINUTES_AT_MOST = 3
"""A rater may take so many times the promised minutes, in the platform's own eyes; at least half an hour."""


def draft_of(
    study: Study,
    address: str,
    *,
    minutes: float,
    n_places: int | None = None,
    devices: Sequence[str] = ("desktop", "tablet", "mobile"),
) -> dict[str, Any]:
    """What is sent to create the draft. Raises :class:`StudyError` with everything that the study file lacks for it."""
    recruitment = study.spec.recruitment
    places = n_places or recruitment.quota
    problems = _problems(study, address, places)
    if problems:
        raise StudyError(problems)
    estimate = math.ceil(minutes)
    return {
        "name": study.spec.title,
        "internal_name": study.spec.name,
        "description": _description(study),
        "external_study_url": f"{address.rstrip('/')}/{SITES['prolific'].link}",
        "prolific_id_option": "url_parameters",
        "completion_codes": _codes(study, places or 0),
        "total_available_places": places,
        "estimated_completion_time": estimate,
        "maximum_allowed_time": max(30, MINUTES_AT_MOST * estimate),
        "reward": recruitment.pay_cents,
        "device_compatibility": list(devices),
        "filters": [],
        "submissions_config": {"max_submissions_per_participant": 1},
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
        action = {"action": "REQUEST_RETURN", "return_reason": "The study is for raters in another situation."}
        kind = "OTHER"
    codes.append({"code": recruitment.screen_out_code, "code_type": kind, "actor": "participant", "actions": [action]})
    return codes


def _description(study: Study) -> str:
    """What raters read. The study's own description is for a methods section and may give its checks away."""
    told = study.spec.recruitment.description.strip() or study.spec.title
    contact = f"\n\nQuestions: {study.spec.contact}" if study.spec.contact else ""
    return told + contact


def _problems(study: Study, address: str, places: int | None) -> list[Problem]:
    recruitment = study.spec.recruitment
    found = []

    def lacks(message: str, remedy: str, field: str) -> None:
        found.append(Problem(message, remedy, "study.yaml", field=f"recruitment.{field}"))

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
        found.append(
            Problem(
                f"'{address}' is no address that raters of Prolific can open",
                "give the address under which the study is served, such as --url https://study.example.org",
                "--url",
            )
        )
    return found
