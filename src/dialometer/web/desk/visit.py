"""One request of somebody who is signed in: what a page of the desk works with."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams, UploadFile

from dialometer.storage.accounts import Account, Role
from dialometer.web.security import csrf_for

if TYPE_CHECKING:
    from dialometer.web.desk.held import Running

RANKS: Mapping[Role, int] = {"viewer": 0, "editor": 1, "owner": 2}


def is_allowed(role: Role, needed: Role) -> bool:
    """Whether a role may do what another is needed for."""
    return RANKS[role] >= RANKS[needed]


@dataclass(frozen=True)
class Visit:
    """Who asks for what. ``fields`` are what a form sent, each with all its values; empty for pages only looked at."""

    account: Account
    secret: str
    root: str
    path: str
    query: QueryParams
    params: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    at_ms: int = 0
    running: Running | None = None
    is_script: bool = False
    """Whether a script of a page asks, and not the browser for a page."""

    @property
    def csrf(self) -> str:
        """The mark for forms on the page."""
        return csrf_for(self.secret)

    @property
    def form(self) -> dict[str, str]:
        """The last value of each field."""
        return {name: values[-1] for name, values in self.fields.items()}

    @property
    def study(self) -> str:
        """The name of the study that the address names."""
        return self.params.get("study", "")

    def mark_of(self, text: str) -> str:
        """A mark that only this sign-in can put under a text."""
        return hmac.new(self.secret.encode(), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:16]

    @property
    def told(self) -> str:
        """What the page before wanted to say."""
        text = self.query.get("told", "")
        mark = self.query.get("mark", "").encode("utf-8", "replace")
        return text if text and hmac.compare_digest(self.mark_of(text).encode(), mark) else ""

    def may(self, needed: Role) -> bool:
        """Whether this account may do what ``needed`` is needed for."""
        return is_allowed(self.account.role, needed)

    def number(self, name: str) -> int | None:
        """A whole number from 0 on in the form; None where the field is empty or something else."""
        text = self.form.get(name, "").strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


async def read_upload(upload: UploadFile) -> tuple[str, bytes]:
    """The name and content of a file that was sent."""
    return upload.filename or "", await upload.read()
