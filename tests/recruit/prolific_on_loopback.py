"""A server on loopback that answers as Prolific's API is documented to (docs.prolific.com/api-reference).

It refuses what the documentation calls wrong: missing fields, unknown enum values, ids that took no part, tokens in another
form. ``plan`` holds answers to give before the true one, such as a 429 with Retry-After.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import Handler, serving_http

TOKEN = "token-of-the-tests"
ID_OPTIONS = {"question", "url_parameters", "not_required"}
CODE_TYPES = {
    "COMPLETED",
    "FAILED_ATTENTION_CHECK",
    "FOLLOW_UP_STUDY",
    "GIVE_BONUS",
    "INCOMPATIBLE_DEVICE",
    "NO_CONSENT",
    "OTHER",
    "FIXED_SCREENOUT",
}
ACTIONS = {
    "AUTOMATICALLY_APPROVE": set(),
    "MANUALLY_REVIEW": set(),
    "REQUEST_RETURN": {"return_reason"},
    "FIXED_SCREEN_OUT_PAYMENT": {"fixed_screen_out_reward", "slots"},
}
FILTERS = {
    "approval_rate": {"type": "range", "data_type": "integer", "min": 0, "max": 100},
    "approval_numbers": {"type": "range", "data_type": "integer", "min": 0, "max": 10000},
    "current-country-of-residence": {
        "type": "select",
        "data_type": "ChoiceID",
        "choices": {"0": "United Kingdom", "1": "United States", "2": "Ireland", "7": "Czech Republic"},
    },
    "first-language": {"type": "select", "data_type": "ChoiceID", "choices": {"19": "English", "4": "German"}},
    "fluent-languages": {"type": "select", "data_type": "ChoiceID", "choices": {"19": "English", "4": "German"}},
    "handedness": {
        "type": "select",
        "data_type": "ChoiceID",
        "choices": {"0": "Left", "1": "Right", "2": "Ambidextrous"},
    },
    "custom_allowlist": {"type": "select", "data_type": "ParticipantID"},
    "custom_blocklist": {"type": "select", "data_type": "ParticipantID"},
}
REQUIRED = {
    "name": str,
    "description": str,
    "external_study_url": str,
    "prolific_id_option": str,
    "completion_codes": list,
    "total_available_places": int,
    "estimated_completion_time": int,
    "reward": int,
}


@dataclass
class Platform:
    """What the platform knows."""

    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)
    returns: list[tuple[str, list[str]]] = field(default_factory=list)
    bonuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    n_paid: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    plan: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    n_filters_per_page: int = 5

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        for pattern, verb, act in self.routes():
            found = re.fullmatch(pattern, path)
            if found and verb == method:
                return act(*found.groups(), query=query, body=body)
        return 404, {"error": {"title": "Not Found", "detail": "The resource does not exist."}}

    def routes(self):
        return [
            ("/studies/", "POST", self.create),
            ("/filters/", "GET", self.known_filters),
            (r"/studies/([^/]+)/", "GET", self.show),
            (r"/studies/([^/]+)/transition/", "POST", self.transition),
            (r"/studies/([^/]+)/submissions/", "GET", self.listed),
            ("/submissions/bulk-approve/", "POST", self.approve),
            (r"/submissions/([^/]+)/request-return/", "POST", self.request_return),
            ("/submissions/bonus-payments/", "POST", self.set_up),
            (r"/bulk-bonus-payments/([^/]+)/pay/", "POST", self.pay),
        ]

    def create(self, *, query, body):
        wrong = {name: ["This field is required."] for name in REQUIRED if name not in body}
        wrong |= {
            name: ["Not a valid value."]
            for name, kind in REQUIRED.items()
            if name in body and (not isinstance(body[name], kind) or body[name] in ("", [], 0))
        }
        if body.get("prolific_id_option") not in ID_OPTIONS:
            wrong["prolific_id_option"] = ["Not a valid choice."]
        for code in body.get("completion_codes", []):
            if code.get("code_type") not in CODE_TYPES or not code.get("code"):
                wrong["completion_codes"] = ["Not a valid code."]
            for action in code.get("actions", [{}]):
                if set(action) - {"action"} != ACTIONS.get(action.get("action"), {"?"}):
                    wrong["completion_codes"] = [f"Not a valid action: {action}"]
        for chosen in body.get("filters", []):
            if not is_filter(chosen):
                wrong["filters"] = [f"Not a valid filter: {chosen}"]
        if wrong:
            return 400, {"error": {"status": 400, "title": "Bad Request", "detail": wrong}}
        identity = f"study{len(self.studies) + 1:04d}"
        self.studies[identity] = {**body, "id": identity, "status": "UNPUBLISHED"}
        return 201, self.studies[identity]

    def known_filters(self, *, query, body):
        offset, limit = (int(query.get(name, [default])[0]) for name, default in (("offset", 0), ("limit", 20)))
        rows = [{"filter_id": name, "title": name, **entry} for name, entry in FILTERS.items()]
        page = rows[offset : offset + min(limit, self.n_filters_per_page)]
        return 200, {"results": page, "meta": {"count": len(rows)}}

    def show(self, identity, *, query, body):
        return (
            (200, self.studies[identity]) if identity in self.studies else (404, {"error": {"detail": "no such study"}})
        )

    def transition(self, identity, *, query, body):
        moves = {"PUBLISH": "ACTIVE", "PAUSE": "PAUSED", "START": "ACTIVE", "STOP": "AWAITING REVIEW"}
        if identity not in self.studies or body.get("action") not in moves:
            return 400, {"error": {"detail": "This action is not possible."}}
        self.studies[identity]["status"] = moves[body["action"]]
        return 200, self.studies[identity]

    def listed(self, identity, *, query, body):
        of_study = [one for one in self.submissions.values() if one["study_id"] == identity]
        offset, limit = (int(query.get(name, [default])[0]) for name, default in (("offset", 0), ("limit", 20)))
        page = of_study[offset : offset + limit]
        return 200, {"results": page, "_links": {}, "meta": {"count": len(of_study)}}

    def approve(self, *, query, body):
        ids = body.get("submission_ids", [])
        unknown = [one for one in ids if one not in self.submissions]
        if not ids or unknown:
            return 400, {"error": {"detail": {"submission_ids": unknown}}}
        for one in ids:
            self.submissions[one]["status"] = "APPROVED"
        return 200, "The request to bulk approve has been made successfully."

    def request_return(self, identity, *, query, body):
        if identity not in self.submissions or not body.get("request_return_reasons"):
            return 400, {"error": {"detail": "reasons are required"}}
        self.returns.append((identity, body["request_return_reasons"]))
        return 200, {"id": identity, "status": self.submissions[identity]["status"], "return_requested": "2026-11-15"}

    def set_up(self, *, query, body):
        lines = [line.split(",") for line in body.get("csv_bonuses", "").splitlines()]
        people = {one["participant_id"] for one in self.submissions.values()} | set(self.submissions)
        wrong = [who for who, _ in lines if who not in people]
        if wrong or not lines or len(lines) > 200:
            return 400, {"error": {"detail": f"incorrect ids: {', '.join(wrong)}"}}
        cents = sum(round(float(amount) * 100) for _, amount in lines)
        identity = f"bonus{len(self.bonuses) + 1}"
        self.bonuses[identity] = {
            "id": identity,
            "study": body["study_id"],
            "amount": cents,
            "fees": cents // 3,
            "vat": 0,
            "total_amount": cents + cents // 3,
            "lines": lines,
        }
        return 201, self.bonuses[identity]

    def pay(self, identity, *, query, body):
        if identity not in self.bonuses:
            return 404, {"error": {"detail": "no such payment"}}
        self.n_paid[identity] = self.n_paid.get(identity, 0) + 1
        return 202, {}


def is_filter(chosen):
    """Whether a filter of a study is as documented: known, of its kind, with answers by number or bounds within its own."""
    entry = FILTERS.get(chosen.get("filter_id"))
    if entry is None:
        return False
    if entry["type"] == "range":
        bounds = chosen.get("selected_range", {})
        return (
            set(chosen) == {"filter_id", "selected_range"}
            and set(bounds) == {"lower", "upper"}
            and all(isinstance(value, int) for value in bounds.values())
            and entry["min"] <= bounds["lower"] <= bounds["upper"] <= entry["max"]
        )
    values = chosen.get("selected_values")
    if set(chosen) != {"filter_id", "selected_values"} or not isinstance(values, list) or not values:
        return False
    if entry["data_type"] == "ParticipantID":
        return all(re.fullmatch("[0-9a-f]{24}", value) for value in values)
    return all(value in entry["choices"] for value in values)


class Loopback:
    """The platform behind an address."""

    def __enter__(self):
        self.platform = platform = Platform()

        class Answering(Handler):
            def reply(self):
                length = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(length)
                parts = urlsplit(self.path)
                path = parts.path.removeprefix("/api/v1")
                platform.seen.append((self.command, path))
                headers = {}
                if self.headers.get("authorization") != f"Token {TOKEN}":
                    status, content = 401, {"error": {"detail": "Authentication credentials were not provided."}}
                elif platform.plan:
                    status, headers = platform.plan.pop(0)
                    content = {"error": {"detail": "later"}}
                    if status == 0:  # does it, and loses the answer on the way
                        platform.answer(self.command, path, parse_qs(parts.query), json.loads(raw or b"{}"))
                        self.close_connection = True
                        self.connection.close()
                        return
                else:
                    body = json.loads(raw or b"{}")
                    status, content = platform.answer(self.command, path, parse_qs(parts.query), body)
                self.answer(status, json.dumps(content).encode(), headers)

        self.serving = serving_http(Answering)
        self.address = f"http://127.0.0.1:{self.serving.__enter__().server_port}/api/v1"
        return self

    def __exit__(self, *_):
        self.serving.__exit__(None, None, None)
