"""The busiest route, where a program submits a screen: a plain ASGI application, without the cost of the framework."""

from __future__ import annotations

import json
import time

from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from dialometer.web.api.models import SubmissionRequest
from dialometer.web.rater.service import Service
from dialometer.web.server.failures import TooLarge, as_invalid, as_json
from dialometer.web.server.logs import log_request
from dialometer.web.server.metrics import RequestCounter
from dialometer.web.server.security import bearer
from dialometer.web.server.submissions import NoSession, SentScreen, SubmissionResult

_HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
_ROUTE = "api_submit"


class FastLane:
    """``POST /api/v1/session/submissions``."""

    def __init__(self, service: Service, counter: RequestCounter) -> None:
        self.service = service
        self.counter = counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        try:
            body = SubmissionRequest.model_validate_json(await self._read(receive))
            result = await self.service.submit(_sent_screen(scope, body))
        except Exception as error:
            refused = as_invalid(error) if isinstance(error, ValidationError) else as_json(error)
            refused.headers["x-content-type-options"] = "nosniff"
            await refused(scope, receive, send)
            status = refused.status_code
        else:
            status = 200 if result.receipt.outcome in ("stored", "repeated") else 409
            content = _receipt_json(result)
            headers = [*_HEADERS, (b"content-length", b"%d" % len(content))]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": content})
        duration_s = time.perf_counter() - began
        self.counter.count(_ROUTE, status, duration_s)
        log_request("POST", _ROUTE, status, duration_s)

    async def _read(self, receive: Receive) -> bytes:
        limit = self.service.settings.max_body_bytes
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body") and len(body) <= limit:
            message = await receive()
            body += message.get("body", b"")
        if len(body) > limit:
            raise TooLarge("the body is too large", remedy=f"send at most {limit} bytes")
        return body


def _sent_screen(scope: Scope, body: SubmissionRequest) -> SentScreen:
    token = bearer(scope["headers"])
    if not token:
        raise NoSession("there is no token", remedy="send Authorization: Bearer <session_token>")
    return SentScreen(
        token=token,
        screen=body.screen,
        submission=body.token,
        answers=body.answers,
        shown_at_ms=body.shown_at_ms,
        first_input_at_ms=body.first_input_at_ms,
        submitted_at_ms=body.submitted_at_ms,
        focus_lost_n=body.focus_lost_n,
        focus_lost_s=body.focus_lost_s,
        device=body.device,
        opened=tuple(body.opened),
    )


def _receipt_json(result: SubmissionResult) -> bytes:
    receipt = result.receipt
    return json.dumps(
        {
            "token": receipt.token,
            "outcome": receipt.outcome,
            "step": receipt.step,
            "state": receipt.state,
            "n_judgments": result.n_judgments,
        },
    ).encode()
