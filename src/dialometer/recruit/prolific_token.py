"""Prolific's signed links: the token (a JWT) that Prolific adds to a secured study address.

Checked as https://docs.prolific.com/api-reference/well-known-endpoints/get-study-jwks asks: the signature with the public
key that the token names, the time limit (``exp``), that it is for this address (``aud``), and that its ``prolific`` part
says the same as the parameters of the link. Keys are fetched once a day, and when a token names one that is not known.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from dialometer.recruit.platform import PlatformError

TOKEN = "prolific_token"
"""The parameter that holds the token."""
KEYS_PATH = "/.well-known/study/jwks.json"
DAY_S, LEAST_S = 24 * 3600.0, 60.0
"""How old known keys may be, and how long to wait before they are fetched again for a key that is not among them."""
MAX_LENGTH = 8_000
_SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
"""How RFC 8017 (section 9.2, note 1) writes that what follows is a SHA-256 hash."""

Key = tuple[int, int]
"""Modulus and exponent of an RSA key."""


class BadToken(Exception):
    """A token that proves nothing; the message says why."""


def is_rs256(message: bytes, signature: bytes, key: Key) -> bool:
    """Whether this is an RSASSA-PKCS1-v1_5 signature with SHA-256 (RFC 8017, section 8.2.2).

    The whole encoded message is made anew and compared, so that no part of it is left to whoever signed. Checked against
    signatures of OpenSSL.
    """
    modulus, exponent = key
    n_bytes = (modulus.bit_length() + 7) // 8
    number = int.from_bytes(signature, "big")
    info = _SHA256_INFO + hashlib.sha256(message).digest()
    if len(signature) != n_bytes or number >= modulus or n_bytes < len(info) + 11:
        return False
    expected = b"\x00\x01" + b"\xff" * (n_bytes - len(info) - 3) + b"\x00" + info
    return pow(number, exponent, modulus).to_bytes(n_bytes, "big") == expected


def token_problem(
    token: str,
    query: Mapping[str, str],
    names: Sequence[str],
    host: str,
    now_s: float,
    keys: Keys,
    *,
    of_study: str = "",
) -> str:
    """What is wrong with a token; empty where it proves that Prolific made this link for the rater.

    ``names`` are the parameters of the link that the token must say too, the rater's first; ``of_study`` is the study on
    Prolific that it must be of, where that is known.
    """
    try:
        claims = _claims(token, keys)
    except BadToken as bad:
        return str(bad)
    expires = claims.get("exp")
    if not isinstance(expires, int | float) or now_s >= expires:
        return "Prolific's token has expired"
    audiences = claims.get("aud")
    hosts = {_host(str(audience)) for audience in (audiences if isinstance(audiences, list) else [audiences])}
    if host.lower() not in hosts:
        return "Prolific's token is for another address"
    prolific = claims.get("prolific")
    if not isinstance(prolific, dict) or any(str(prolific.get(name, "")) != query.get(name, "") for name in names):
        return "Prolific's token is for another rater or study"
    if of_study and str(prolific.get("STUDY_ID", "")) != of_study:
        return "Prolific's token is for another study"
    return ""


def _claims(token: str, keys: Keys) -> dict[str, Any]:
    """What a token says, once its signature is right."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_LENGTH:
        raise BadToken("Prolific's token cannot be read")
    header, claims = (_json(part) for part in parts[:2])
    if header.get("alg") != "RS256":
        raise BadToken("Prolific's token is signed in another way")
    key = keys.get(str(header.get("kid", "")))
    if key is None or not is_rs256(f"{parts[0]}.{parts[1]}".encode(), _bytes(parts[2]), key):
        raise BadToken("Prolific's token has a wrong signature")
    return claims


def _json(part: str) -> dict[str, Any]:
    try:
        content = json.loads(_bytes(part))
    except (ValueError, RecursionError) as error:
        raise BadToken("Prolific's token cannot be read") from error
    if not isinstance(content, dict):
        raise BadToken("Prolific's token cannot be read")
    return content


def _bytes(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError) as error:
        raise BadToken("Prolific's token cannot be read") from error


def _host(audience: str) -> str:
    """The host of an address, or of a bare domain."""
    parts = urlsplit(audience if "//" in audience else f"//{audience}")
    return (parts.hostname or "").lower()


class Keys:
    """Prolific's public keys by name, remembered by each process."""

    def __init__(
        self, fetch: Callable[[], Mapping[str, Key]] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch or fetch_keys
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Mapping[str, Key] = {}
        self._fetched_at: float | None = None

    def get(self, name: str) -> Key | None:
        """The key of that name; None where Prolific has none. Old keys serve while Prolific does not answer."""
        with self._lock:
            age_s = None if self._fetched_at is None else self._clock() - self._fetched_at
            if age_s is None or age_s > DAY_S or (name not in self._keys and age_s > LEAST_S):
                try:
                    self._keys = self._fetch()
                    self._fetched_at = self._clock()
                except PlatformError:
                    if not self._keys:
                        raise
                    self._fetched_at = self._clock() - DAY_S + LEAST_S
            return self._keys.get(name)


def fetch_keys() -> dict[str, Key]:
    """The keys as Prolific publishes them."""
    import httpx  # noqa: PLC0415 - only where links are signed by Prolific

    api = urlsplit(os.environ.get("PROLIFIC_API", "").strip() or "https://api.prolific.com")
    address = f"{api.scheme}://{api.netloc}{KEYS_PATH}"
    try:
        response = httpx.get(address, timeout=10, follow_redirects=False)
        response.raise_for_status()
        entries = response.json()["keys"]
        return {
            str(entry["kid"]): (int.from_bytes(_bytes(entry["n"]), "big"), int.from_bytes(_bytes(entry["e"]), "big"))
            for entry in entries
            if entry.get("kty") == "RSA" and entry.get("alg", "RS256") == "RS256"
        }
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError, BadToken) as error:
        raise PlatformError(
            "Prolific's keys for signed links cannot be read",
            where=address,
            remedy="check that the server can reach it",
        ) from error


KEYS = Keys()
"""Of this process."""
