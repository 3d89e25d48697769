"""The settings of a server, which its processes can pass to each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, TypeVar

from dialometer.agents.access import AgentAccess
from dialometer.web.server.provider_settings import ProviderSettings

T = TypeVar("T")


def known_fields(kind: type[T], raw: Mapping[str, Any]) -> T:
    """A dataclass from what another version of this program wrote: fields that are not known here are left out."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in raw.items() if name in names})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about serving that is not part of the study. Limits of 0 are no limits."""

    root_path: str = ""
    """Path under which a proxy shows the study, such as ``/films``."""
    api_key: str = ""
    """What a program must show to open sessions; without one, programs cannot."""
    wizard_key: str = ""
    """What a person must show to answer in place of an agent."""
    frame_ancestors: tuple[str, ...] = ()
    """Origins of platforms that may show the pages inside their own."""
    max_body_bytes: int = 256 * 1024
    arrivals_per_minute: int = 60
    """New sessions from one address; clients on this machine are not counted."""
    starts_per_minute: int = 300
    """New sessions of people in one study, from all addresses and over all processes; a study may set less."""
    screens_per_minute: int = 240
    """Screens and drafts of one person."""
    messages_per_minute: int = 40
    """Chat messages of one person."""
    pending_s: float = 25.0
    """How long one request waits for a wizard before the page asks again."""
    agents: AgentAccess | None = None
    """What agents may use of this machine; by default what the environment says, little where studies can be edited."""
    provider: ProviderSettings | None = None
    """Where experimenters may sign in beside the dashboard's own accounts."""
    is_among_studies: bool = False
    """Whether the server has several studies; what it counts over all of them is then at its own ``/metrics`` only."""
    runtime_folder: str = ""
    """Where the processes of one server share their counters; empty for a single process."""

    def as_json(self) -> str:
        """The settings as text for :meth:`from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The settings that :meth:`as_json` wrote."""
        raw = json.loads(text)
        agents = raw["agents"] and AgentAccess(**{k: v if v is None else tuple(v) for k, v in raw["agents"].items()})
        provider = ProviderSettings.from_json(raw["provider"]) if raw.get("provider") else None
        raw |= {"provider": provider}
        return known_fields(cls, {**raw, "frame_ancestors": tuple(raw["frame_ancestors"]), "agents": agents})
