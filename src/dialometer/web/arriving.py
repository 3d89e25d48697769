"""Where a rater comes from and where a rater goes back to: the parameters of links, and the way back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from dialometer.errors import DialometerError
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.quality.block_list import BlockList
from dialometer.storage.sessions import Person
from dialometer.storage.store import Store

INVITATION = "invite"
INVITATIONS_FILE = "invitations.txt"
PROLIFIC = {"rater": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"}
PROLIFIC_END = "https://app.prolific.com/submissions/complete?cc={code}"
_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.\-]+)\}")
_MAX_LENGTH = 200


class NotInvited(DialometerError):
    """The study is open only to raters with an invitation, or sent by a platform."""


@dataclass(frozen=True, slots=True)
class Arriving:
    """Who arrives. ``external_id`` is what the rater is called where they come from, empty for an open link."""

    platform: str
    external_id: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


def read_arrival(study: Study, query: Mapping[str, str]) -> Arriving | None:
    """The rater that a link names; None where an open link names nobody. Raises :class:`NotInvited` where it must."""
    recruitment = study.spec.recruitment
    names = _parameter_names(study)
    rater = query.get(names.get("rater", ""), "").strip()
    if recruitment.platform == "link" and not rater:
        return None
    is_listed = recruitment.platform != "invite" or rater in (invitations(study) or {rater})
    if not is_listed or not rater or len(rater) > _MAX_LENGTH or not rater.isprintable():
        raise NotInvited("this address names no rater", remedy="open the link exactly as you received it")
    kept = {*names.values(), *_PLACEHOLDER.findall(recruitment.return_url)} - {names.get("rater", "")}
    params = {
        name: query[name][:_MAX_LENGTH] for name in sorted(kept) if query.get(name, "").isprintable() and name in query
    }
    return Arriving(recruitment.platform, rater, params)


def invitations(study: Study) -> set[str]:
    """The invitations that count, one a line in ``invitations.txt`` beside the study; read anew, so it may grow."""
    file = study.folder / INVITATIONS_FILE if study.folder else None
    if file is None or not file.is_file():
        return set()
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line.split("#", 1)[0].strip() for line in lines} - {""}


def _parameter_names(study: Study) -> dict[str, str]:
    recruitment = study.spec.recruitment
    usual = {"prolific": PROLIFIC, "invite": {"rater": INVITATION}, "redirect": {"rater": "rater"}}
    return {**usual.get(recruitment.platform, {}), **recruitment.parameters}


def refusal(study: Study, store: Store, external_id: str) -> str:
    """Why there was no place, as the name of a page: blocked, paused or full."""
    for rule in study.spec.quality:
        if isinstance(rule, BlockList) and rule.blocks(external_id, study.texts.get(rule.file, "").splitlines()):
            return "blocked"
    return "paused" if store.controls().state == "paused" else "full"


def way_back(study: Study, session: Session, person: Person | None) -> tuple[str, str]:
    """The address to which a finished rater is sent and the code that shows it is finished; empty where there is none."""
    recruitment = study.spec.recruitment
    codes = {"completed": recruitment.completion_code, "screened_out": recruitment.screen_out_code}
    if session.state not in codes:
        return "", ""
    code = codes[session.state]
    address = recruitment.return_url
    if not address and recruitment.platform == "prolific" and code:
        address = PROLIFIC_END
    known = {name: str(value) for name, value in (person.params if person else {}).items()}
    if person is not None:
        known[_parameter_names(study).get("rater", "rater")] = person.external_id
    known["code"] = code
    return _PLACEHOLDER.sub(lambda match: quote(known.get(match[1], ""), safe=""), address), code
