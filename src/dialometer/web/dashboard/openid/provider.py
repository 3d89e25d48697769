"""A client of OpenID Connect: the address to sign in at, and who came back from there, proven by a signed ID token.

Follows OpenID Connect Core 1.0 (authorization code flow, section 3.1; the checks of ID tokens, section 3.1.3.7), Discovery 1.0
and RFC 7636 (PKCE with S256). Signatures are checked by PyJWT.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from dialometer.errors import DialometerError
from dialometer.web.server.provider_settings import ProviderSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key. Never ``none``, and never a shared secret."""
SCOPES = "openid email profile"
FRESH_S, LEAST_S = 3600.0, 60.0
"""How long what the provider says about itself is used, and how soon its keys are fetched again for one that is not known."""
TIMEOUT_S = 10.0
LEEWAY_S = 60
MAX_BYTES = 256 * 1024
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderError(DialometerError):
    """Signing in at the provider did not work; the message is for the person who tried."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody whom the provider has proven: the subject never changes, the address may."""

    issuer: str
    subject: str
    address: str


def new_verifier() -> str:
    """A secret for one sign-in, of which the provider first sees only the hash."""
    return secrets.token_urlsafe(48)


def challenge_of(verifier: str) -> str:
    """The hash of a verifier (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class Provider:
    """One provider. Safe to use from many threads."""

    def __init__(self, settings: ProviderSettings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._clock = clock
        self._client = httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=True)
        self._lock = threading.Lock()
        self._about: Mapping[str, Any] = {}
        self._about_until = 0.0
        self._keys: Any = None
        self._keys_at = 0.0

    @property
    def label(self) -> str:
        """How it is called on pages."""
        return self.settings.label or urlsplit(self.settings.issuer).hostname or self.settings.issuer

    def sign_in_address(self, state: str, nonce: str, verifier: str, back: str) -> str:
        """Where to send the browser."""
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": back,
            "scope": SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        address = str(self.about()["authorization_endpoint"])
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    def sign_out_address(self) -> str:
        """Where somebody can sign out at the provider too; empty where it does not say, or does not answer."""
        try:
            address = str(self.about().get("end_session_endpoint", ""))
        except ProviderError:
            return ""
        return f"{address}?{urlencode({'client_id': self.settings.client_id})}" if self._is_safe(address) else ""

    def identity(self, code: str, verifier: str, nonce: str, back: str) -> Identity:
        """Who came back with a code; raises :class:`ProviderError` where anything about it is not proven."""
        claims = self.claims(self._id_token(code, verifier, back), nonce)
        if claims.get("email_verified") is not True:
            raise ProviderError(f"{self.label} has not verified your e-mail address", remedy="verify it there first")
        return Identity(self.settings.issuer, str(claims["sub"]), str(claims.get("email", "")).strip().lower())

    def about(self) -> Mapping[str, Any]:
        """What the provider says about itself (Discovery 1.0, section 4)."""
        with self._lock:
            if self._clock() < self._about_until:
                return self._about
        address = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        found = self._object(self._ask("GET", address))
        if found.get("issuer") != self.settings.issuer:
            raise ProviderError(
                f"{self.label} does not use the name that is configured", remedy="correct --oidc-issuer"
            )
        for name in ENDPOINTS:
            if not self._is_safe(str(found.get(name, ""))):
                raise ProviderError(f"{self.label} names no safe {name.replace('_', ' ')}", remedy="tell an owner")
        with self._lock:
            self._about, self._about_until = found, self._clock() + FRESH_S
        return found

    def claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        """What an ID token says, once signature, issuer, audience, times and nonce are right."""
        import jwt  # noqa: PLC0415 - only servers with a provider need it

        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in ALGORITHMS:
                raise ProviderError("the ID token is not signed with a key of the provider")
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(str(header.get("kid", "")), algorithm),
                algorithms=[algorithm],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise ProviderError(
                f"the ID token is not valid ({type(error).__name__})", remedy="sign in again"
            ) from error
        given = claims.get("nonce")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
            raise ProviderError("the ID token belongs to another sign-in", remedy="sign in again")
        audiences = claims["aud"]
        is_for_others = isinstance(audiences, list) and len(audiences) > 1
        if (is_for_others or "azp" in claims) and claims.get("azp") != self.settings.client_id:
            raise ProviderError("the ID token was given to another site", remedy="sign in again")
        return claims

    def _id_token(self, code: str, verifier: str, back: str) -> str:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        secret, basic = self.settings.secret, None
        offered = self.about().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret and "client_secret_basic" in offered:
            basic = httpx.BasicAuth(self.settings.client_id, secret)
        else:
            form["client_id"] = self.settings.client_id
            if secret:
                form["client_secret"] = secret
        answer = self._object(self._ask("POST", str(self.about()["token_endpoint"]), form, basic))
        token = answer.get("id_token")
        if not isinstance(token, str) or len(token) > MAX_BYTES:
            raise ProviderError(f"{self.label} sent no ID token", remedy="sign in again")
        return token

    def _key(self, name: str, algorithm: str) -> Any:
        """The key that a token names, among the provider's published ones; the only one where it names none."""
        import jwt  # noqa: PLC0415

        for is_second in (False, True):
            with self._lock:
                is_old = self._clock() - self._keys_at > (LEAST_S if is_second else FRESH_S)
            if self._keys is None or is_old:
                fetched = jwt.PyJWKSet.from_dict(self._object(self._ask("GET", str(self.about()["jwks_uri"]))))
                with self._lock:
                    self._keys, self._keys_at = fetched, self._clock()
            usable = [key for key in self._keys.keys if key.public_key_use in (None, "sig")]
            named = [key for key in usable if key.key_id == name] if name else usable
            fitting = [key for key in named if _fits(key, algorithm)]
            if len(fitting) == 1:
                return fitting[0].key
        raise ProviderError("the ID token is signed with a key that the provider does not publish")

    def _ask(
        self, method: str, address: str, form: Mapping[str, str] | None = None, basic: httpx.BasicAuth | None = None
    ) -> httpx.Response:
        try:
            auth = basic if basic is not None else httpx.USE_CLIENT_DEFAULT
            response = self._client.request(
                method, address, data=dict(form) if form else None, auth=auth, headers={"accept": "application/json"}
            )
        except httpx.HTTPError as error:
            raise ProviderError(f"{self.label} does not answer", remedy="try again later") from error
        if response.status_code != 200 or len(response.content) > MAX_BYTES:
            raise ProviderError(f"{self.label} refused the sign-in ({response.status_code})", remedy="sign in again")
        return response

    def _object(self, response: httpx.Response) -> dict[str, Any]:
        try:
            content = response.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise ProviderError(f"{self.label} sent what cannot be read", remedy="try again later")
        return content

    def _is_safe(self, address: str) -> bool:
        """Only https; a provider on this machine may use http too."""
        scheme = urlsplit(address).scheme
        return scheme == "https" or (scheme == "http" and self.settings.issuer.startswith("http://"))

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()


def _fits(key: Any, algorithm: str) -> bool:
    """Whether a key is of the kind that an algorithm uses, so that no key is used for what it was not made for."""
    kinds = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
    declared = key._jwk_data.get("alg")
    return key.key_type == kinds[algorithm[:2]] and declared in (None, algorithm)
