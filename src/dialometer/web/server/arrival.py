"""Where a rater comes from and where a rater goes back to: the parameters of links, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from dialometer.errors import DialometerError
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.quality.block_list import BlockList
from dialometer.recruit.invitations import read_invitations
from dialometer.recruit.sites import PLACEHOLDER, kept_parameters, site_of
from dialometer.storage.sessions import Person
from dialometer.storage.store import Store

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
    name = site_of(recruitment).parameters.get("rater", "")
    rater = query.get(name, "").strip()
    if recruitment.platform == "link" and not rater:
        return None
    listed = read_invitations(study.folder) if recruitment.platform == "invite" and study.folder else set()
    is_listed = not listed or rater in listed
    if not is_listed or not rater or len(rater) > _MAX_LENGTH or not rater.isprintable():
        raise NotInvited("this address names no rater", remedy="open the link exactly as you received it")
    params = {
        name: query[name][:_MAX_LENGTH]
        for name in sorted(kept_parameters(recruitment))
        if query.get(name, "").isprintable() and name in query
    }
    return Arriving(recruitment.platform, rater, params)


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
    site = site_of(recruitment)
    address = site.return_url
    if session.state == "screened_out" and recruitment.screen_out_url:
        address = recruitment.screen_out_url
    elif recruitment.platform == "prolific" and not recruitment.return_url and not code:
        address = ""
    known = {name: str(value) for name, value in (person.params if person else {}).items()}
    if person is not None:
        known[site.parameters.get("rater", "rater")] = person.external_id
    known["code"] = code
    return PLACEHOLDER.sub(lambda match: quote(known.get(match[1], ""), safe=""), address), code
