"""The avatar maker's labelling page: one question at a time, the retriever's suggestions, a search over all answers.

Made for one person on their own machine: one set of labels, every mark on disk before the page shows it as stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from dialometer.retrieval.labels.labelling import AnswerFinder, MakerLabels
from dialometer.web.server.requests import Unreadable, last_value, read_form, read_json
from dialometer.web.server.security import check_csrf, cookie, csrf_for, set_cookie
from dialometer.web.server.standalone import is_script, standalone_app
from dialometer.web.server.static_files import STATIC, Assets

COOKIE = "dialometer_labels"
KEPT_S = 30 * 24 * 3600
N_TURNS_BEFORE = 4
FIELDS = ("csrf", "question", "toggle", "search")


def create_labelling_app(labels: MakerLabels, finder: AnswerFinder) -> ASGIApp:
    """The application that marks answers in one set of labels."""
    return standalone_app(_Pages(labels, finder).routes())


class _Pages:
    def __init__(self, labels: MakerLabels, finder: AnswerFinder) -> None:
        self.labels = labels
        self.finder = finder
        env = Environment(loader=PackageLoader("dialometer.web"), autoescape=True, undefined=StrictUndefined)
        self._template = env.get_template("labelling.html")

    def routes(self) -> list[BaseRoute]:
        """All routes."""
        return [
            Route("/", self.begin, methods=["GET"]),
            Route("/q/{number:number}", self.page, methods=["GET"]),
            Route("/search", self.search, methods=["GET"]),
            Route("/mark", self.mark, methods=["POST"]),
            Route("/done", self.done, methods=["POST"]),
            Route("/undo", self.undo, methods=["POST"]),
            Route("/labels.jsonl", self.download, methods=["GET"]),
            Mount("/static", Assets(directory=STATIC)),
        ]

    async def begin(self, _request: Request) -> Response:
        """To the first question that is not labelled yet."""
        first = self.labels.next_open(-1)
        return self._to(0 if first is None else first)

    async def page(self, request: Request) -> Response:
        """One question."""
        number = self._number(request.path_params["number"])
        secret = cookie(request, COOKIE) or secrets.token_urlsafe(24)
        search = request.query_params.get("search", "")[:200]
        content = await run_in_threadpool(self._render, secret, number, search)
        response = HTMLResponse(content)
        set_cookie(request, response, COOKIE, secret, path="/", is_embedded=False, max_age_s=KEPT_S)
        return response

    async def search(self, request: Request) -> Response:
        """Answers that hold the words."""
        number = self._number(request.query_params.get("question", ""))
        found, n_found = self.finder.search(request.query_params.get("search", "")[:200])
        return JSONResponse({"n": n_found, "answers": self._rows(number, found)})

    async def mark(self, request: Request) -> Response:
        """Marks an answer, or takes its mark away."""
        content = await self._read(request)
        number, answer = self._number(content.get("question")), self._answer(content.get("toggle"))
        fits = content.get("fits", answer not in self.labels.right[number])
        if not isinstance(fits, bool):
            raise Unreadable("'fits' is true or false")
        await run_in_threadpool(self.labels.mark, number, answer, fits=fits)
        if is_script(request):
            return JSONResponse({"fits": answer in self.labels.right[number], **self._state(number)})
        return self._to(number, search=str(content.get("search") or ""))

    async def done(self, request: Request) -> Response:
        """Finishes a question and goes to the next one that is not labelled."""
        content = await self._read(request)
        number = self._number(content.get("question"))
        await run_in_threadpool(self.labels.finish, number)
        following = self.labels.next_open(number)
        return self._go(request, number if following is None else following)

    async def undo(self, request: Request) -> Response:
        """Takes the last mark back and shows its question."""
        content = await self._read(request)
        number = await run_in_threadpool(self.labels.undo)
        return self._go(request, self._number(content.get("question")) if number is None else number)

    async def download(self, _request: Request) -> Response:
        """The labelled dialogues so far."""
        path = await run_in_threadpool(self.labels.write)
        headers = {"content-disposition": 'attachment; filename="labels.jsonl"'}
        return Response(path.read_bytes(), media_type="application/jsonl", headers=headers)

    async def _read(self, request: Request) -> dict[str, Any]:
        """A form or a JSON body, once it is known to come from our page."""
        content: dict[str, Any]
        if is_script(request):
            content, token = await read_json(request), request.headers.get("x-csrf-token", "")
        else:
            form = await read_form(request)
            content = {name: last_value(form, name) for name in FIELDS}
            token = content["csrf"]
        check_csrf(request, cookie(request, COOKIE), token)
        return content

    def _number(self, value: object) -> int:
        """A question by its place, counted from 1 as the address does."""
        try:
            number = int(str(value)) - 1
        except ValueError:
            number = -1
        if not 0 <= number < len(self.labels):
            raise HTTPException(404, "there is no such question")
        return number

    def _answer(self, value: object) -> int:
        try:
            number = int(str(value))
        except ValueError:
            number = -1
        if not 0 <= number < len(self.labels.kb.answers):
            raise Unreadable("there is no such answer")
        return number

    def _to(self, number: int, search: str = "") -> Response:
        rest = f"?{urlencode({'search': search})}" if search else ""
        return RedirectResponse(f"/q/{number + 1}{rest}", 303)

    def _go(self, request: Request, number: int) -> Response:
        return JSONResponse({"question": number + 1}) if is_script(request) else self._to(number)

    def _rows(self, number: int, answers: Sequence[int]) -> list[dict[str, Any]]:
        right = self.labels.right[number]
        return [{"answer": a, "text": self.labels.kb.answers[a].text, "fits": a in right} for a in answers]

    def _state(self, number: int) -> dict[str, Any]:
        return {"n_right": len(self.labels.right[number]), "n_done": self.labels.n_done}

    def _render(self, secret: str, number: int, search: str) -> str:
        labels, query = self.labels, self.labels.queries[number]
        suggested = self.finder.suggested(query)
        found, n_found = self.finder.search(search) if search.strip() else ((), 0)
        return self._template.render(
            title="Which answers fit?",
            csrf=csrf_for(secret),
            number=number + 1,
            n=len(labels),
            query=query,
            before=query.context[-N_TURNS_BEFORE:],
            reply=labels.replies[number],
            label=self.finder.fitted.options.label,
            suggested=self._rows(number, suggested),
            others=self._rows(number, sorted(labels.right[number] - set(suggested))),
            is_done=labels.is_done[number],
            search=search,
            found=self._rows(number, found),
            n_found=n_found,
            n_answers=len(labels.kb.answers),
            file=labels.out.name,
            **self._state(number),
        )
