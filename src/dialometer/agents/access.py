"""What the agents of a study may use of the machine they run on: environment variables, addresses and folders.

A study that its administrator starts by name may use everything: file and environment have the same owner. A study that
can be edited in the browser may use what the server's administrator has listed, and nothing else; its editor would
otherwise read the server's passwords and reach what only the server can reach.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from dialometer.errors import AgentError

VARIABLES, ADDRESSES, FOLDERS = (
    "DIALOMETER_AGENT_VARIABLES",
    "DIALOMETER_AGENT_ADDRESSES",
    "DIALOMETER_AGENT_FOLDERS",
)
"""Environment variables that hold the lists, entries separated by spaces (folders as in PATH)."""
_OWN = re.compile(r"PG[A-Z]|DIALOMETER_|PROLIFIC_")
"""Secrets of dialometer itself, which no agent needs: sent only where they are listed by name."""
_ANSWERED_BY_IPV4 = ipaddress.ip_network("64:ff9b::/96")
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class AgentAccess:
    """Lists of what is allowed; None allows everything.

    A variable is ``NAME``, or ``NAME@host`` to send it to that host alone. An address is a host, an IP address or a network
    such as ``10.0.0.0/8``, with ``:port`` to allow that port alone. It is needed for addresses that are not public.
    """

    variables: tuple[str, ...] | None = None
    addresses: tuple[str, ...] | None = None
    folders: tuple[str, ...] | None = None

    @classmethod
    def of_environment(cls, *, is_editable: bool = False) -> AgentAccess:
        """The lists of the environment; one that is not there allows everything, or nothing where studies are edited."""
        missing: tuple[str, ...] | None = () if is_editable else None

        def listed(name: str, separator: str | None) -> tuple[str, ...] | None:
            text = os.environ.get(name)
            return missing if text is None else tuple(part for part in text.split(separator) if part)

        return cls(listed(VARIABLES, None), listed(ADDRESSES, None), listed(FOLDERS, os.pathsep))

    def may_read(self, name: str, host: str) -> bool:
        """Whether the value of an environment variable may be sent to a host."""
        if self.variables is None:
            return not _OWN.match(name)
        return name in self.variables or f"{name}@{host}".lower() in map(str.lower, self.variables)

    def variable(self, name: str, host: str) -> str:
        """The value of an environment variable, for this host; raises :class:`AgentError`."""
        if not self.may_read(name, host):
            raise AgentError(f"agents may not read the variable {name}", remedy=variable_remedy(name, host))
        if name not in os.environ:
            raise AgentError(f"the environment has no {name}", remedy=f"set {name} before serving")
        return os.environ[name]

    def ip_for(self, url: str) -> str:
        """The IP address to connect to, looked up and checked once; empty where every address is allowed.

        The connection must go to this very address: a name could point elsewhere when it is looked up again.
        """
        if self.addresses is None:
            return ""
        parsed = httpx.URL(url)
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
        try:
            addresses = socket.getaddrinfo(parsed.host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"{parsed.host} is not known") from error
        for *_, place in addresses:
            if self._may_reach(parsed.host, str(place[0]), port):
                return str(place[0])
        raise AgentError(refusal(parsed.host), remedy=address_remedy(parsed.host, port))

    def may_reach_literally(self, url: str) -> bool:
        """Whether an address is allowed as far as it can be told without looking up names."""
        parsed = httpx.URL(url)
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
        ip = "127.0.0.1" if parsed.host == "localhost" else parsed.host
        return self.addresses is None or _ip(ip) is None or self._may_reach(parsed.host, ip, port)

    def _may_reach(self, host: str, ip: str, port: int) -> bool:
        parsed = _ip(ip)
        if parsed is None:
            return False
        return _is_public(parsed) or any(_fits(entry, host, parsed, port) for entry in self.addresses or ())

    def may_load(self, path: Path, folder: Path | None) -> bool:
        """Whether a trained model may be loaded from a path: in the study's folder or a listed one, links followed."""
        if self.folders is None:
            return True
        allowed = [*([folder] if folder else []), *map(Path, self.folders)]
        return any(path.resolve().is_relative_to(place.resolve()) for place in allowed)


def check_loadable(path: Path, name: str, context: Mapping[str, Any]) -> None:
    """Raises where the validation context of a study's agent does not allow this path of a trained model."""
    access = context.get("access")
    if access is not None and not access.may_load(path, context.get("folder")):
        raise ValueError(
            f"'{name}' is outside the study's folder; the server's administrator can allow it: serve … --agent-folder"
        )


def refusal(host: str) -> str:
    """What is wrong with an address that is not public."""
    return f"agents may not call {host}: it is not a public address"


def variable_remedy(name: str, host: str) -> str:
    """How the administrator allows it."""
    return f"the server's administrator can allow it: serve … --agent-variable {name}@{host}"


def address_remedy(host: str, port: int) -> str:
    """How the administrator allows it."""
    return f"the server's administrator can allow it: serve … --agent-address {host}:{port}"


def _ip(text: str) -> _Ip | None:
    """The IP address, taken out of the IPv6 forms that stand for one of IPv4; None where it is none."""
    try:
        parsed = ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _ANSWERED_BY_IPV4:
            return ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        return parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo[1] if parsed.teredo else parsed)
    return parsed


def _is_public(ip: _Ip) -> bool:
    is_site_local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not is_site_local


def _fits(entry: str, host: str, ip: _Ip, port: int) -> bool:
    """Whether an entry of the list allows a host with this address and port."""
    name, colon, own_port = entry.rpartition(":")
    has_port = bool(colon) and own_port.isdigit() and (":" not in name or name.endswith("]"))
    place = (name if has_port else entry).strip("[]")
    if has_port and int(own_port) != port:
        return False
    try:
        return ip in ipaddress.ip_network(place, strict=False)
    except ValueError:
        return place.lower() == host.lower()


def listed(entries: Iterable[str] | None) -> tuple[str, ...] | None:
    """Entries of an option, which may also be given together, separated by commas; None where there are none."""
    parts = tuple(part.strip() for entry in entries or () for part in entry.split(",") if part.strip())
    return parts or None
