"""Where experimenters may sign in beside the dashboard's own accounts: a provider of OpenID Connect, and who of it may."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dialometer.errors import DialometerError
from dialometer.storage.access.accounts import ROLES, Role

SECRET_VARIABLE = "DIALOMETER_OIDC_SECRET"
"""The environment variable with the client's secret; it is never an option, so that no list of processes shows it."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """A provider and who may sign in with it."""

    issuer: str
    client_id: str
    allowed: tuple[str, ...]
    """Addresses (``ada@example.org``) and whole domains (``@example.org``)."""
    role: Role = "guest"
    """What a new account may do; a guest sees nothing before an owner gives it a study."""
    label: str = ""
    """Name of the provider on the login page; its host by default."""

    @classmethod
    def checked(cls, issuer: str, client_id: str, allowed: Sequence[str], role: str, label: str) -> Self | None:
        """The settings, None where no provider is named; half of them are an error."""
        if not issuer and not client_id and not allowed:
            return None
        if not issuer or not client_id:
            raise DialometerError(
                "a provider of sign-ins needs its address and a client id",
                remedy="give --oidc-issuer and --oidc-client",
            )
        if not issuer.startswith("https://") and not _is_loopback(issuer):
            raise DialometerError(f"'{issuer}' is not reached by https", where="--oidc-issuer", remedy="use https://")
        clean = tuple(entry.strip().lower() for line in allowed for entry in line.split(",") if entry.strip())
        wrong = [entry for entry in clean if "@" not in entry or entry.endswith("@") or " " in entry]
        if wrong or not clean:
            raise DialometerError(
                f"'{wrong[0]}' is neither an address nor a domain" if wrong else "nobody may sign in with the provider",
                where="--oidc-allow",
                remedy="such as ada@example.org, or @example.org for everybody there",
            )
        known = next((one for one in ROLES if one == role), None)
        if known is None:
            raise DialometerError(
                f"there is no role '{role}'", where="--oidc-role", remedy=f"one of {', '.join(ROLES)}"
            )
        return cls(issuer, client_id, clean, known, label)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """What another process of the server was started with."""
        return cls(**{**raw, "allowed": tuple(raw["allowed"])})

    @property
    def secret(self) -> str:
        """The client's secret; empty for a public client."""
        return os.environ.get(SECRET_VARIABLE, "").strip()

    def allows(self, address: str) -> bool:
        """Whether somebody with this e-mail address may come in."""
        clean = address.strip().lower()
        name, at, domain = clean.partition("@")
        return clean in self.allowed or (bool(name and at) and f"@{domain}" in self.allowed)


def _is_loopback(address: str) -> bool:
    """A provider on this machine, for rehearsals."""
    return address.startswith(("http://127.0.0.1:", "http://localhost:", "http://[::1]:"))
