"""A small provider of OpenID Connect on this machine: real RSA keys, a real key set, codes that work once, PKCE.

It signs in at once whoever is set as its ``user``. Its faults are set by tests, one at a time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT, SECRET = "dialometer-tests", "the secret of the tests"


def new_key() -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class OwnProvider:
    """The provider; ``faults`` change claims, headers and answers."""

    issuer: str = ""
    key: Any = field(default_factory=new_key)
    key_id: str = "k1"
    user: dict[str, Any] = field(
        default_factory=lambda: {"sub": "subject-1", "email": "ada@example.org", "email_verified": True}
    )
    claims: dict[str, Any] = field(default_factory=dict)
    """Claims of the next ID tokens that are not as they should be; None removes one."""
    about: dict[str, Any] = field(default_factory=dict)
    sign: Any = None
    """Makes another token of the claims than a signed one."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    n_tokens: int = 0

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self.configuration),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
                Route("/keys", self.keys),
            ]
        )

    async def configuration(self, _request: Request) -> Response:
        about = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/end",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
        return JSONResponse(about | self.about)

    async def authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}", 302)

    async def token(self, request: Request) -> Response:
        form = await request.form()
        expected = base64.b64encode(f"{CLIENT.replace(' ', '%20')}:{SECRET}".encode()).decode()
        asked = self.codes.pop(str(form["code"]), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        is_right = (
            asked is not None
            and request.headers.get("authorization") == f"Basic {expected}"
            and form["redirect_uri"] == asked["redirect_uri"]
            and challenge.rstrip(b"=").decode() == asked["code_challenge"]
        )
        if asked is None or not is_right:
            return JSONResponse({"error": "invalid_grant"}, 400)
        self.n_tokens += 1
        return JSONResponse(
            {"token_type": "Bearer", "access_token": "opaque", "id_token": self.id_token(asked["nonce"])}
        )

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.user}
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        if self.sign is not None:
            return self.sign(claims)
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": self.key_id})

    async def keys(self, _request: Request) -> Response:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return JSONResponse({"keys": [public | {"kid": self.key_id, "use": "sig", "alg": "RS256"}]})

    def public_pem(self) -> bytes:
        return self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
