"""The wizard console: a page, and the JSON it asks for again and again."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dialometer.agents.wizard import Wizard
from dialometer.errors import DialometerError
from dialometer.flow.chat import MAX_MESSAGE_LENGTH
from dialometer.model.study import Study
from dialometer.storage.conversations import ChatTurn
from dialometer.web.rater.wizard_queue import OpenChat, WizardDesk
from dialometer.web.server.requests import Unreadable, read_json
from dialometer.web.server.security import WIZARD_COOKIE, check_csrf, cookie, csrf_for, is_same_secret, set_cookie
from dialometer.web.server.service import Service

MAX_NAME_LENGTH = 40
KEPT_S = 24 * 3600


class NoWizard(DialometerError):
    """Somebody at the console who has not shown the key."""


def has_wizard(study: Study) -> bool:
    """Whether some system of the study is answered by a person."""
    return any(system.agent is not None and system.agent.type == "wizard" for system in study.spec.systems)


class WizardPages:
    """The routes of the console."""

    def __init__(self, service: Service, desk: WizardDesk) -> None:
        self.service = service
        self.desk = desk
        self.root = service.settings.root_path

    def routes(self) -> list[Route]:
        """All routes; none where no system is answered by a person."""
        if not has_wizard(self.service.study):
            return []
        chat = "/wizard/chats/{chat}"
        return [
            Route("/wizard", self.console, methods=["GET"]),
            Route("/wizard/name", self.rename, methods=["POST"]),
            Route("/wizard/chats", self.chats, methods=["GET"]),
            Route(f"{chat}/take", self.take, methods=["POST"]),
            Route(f"{chat}/release", self.release, methods=["POST"]),
            Route(f"{chat}/reply", self.reply, methods=["POST"]),
            Route(f"{chat}/suggestions", self.suggestions, methods=["GET"]),
        ]

    async def console(self, request: Request) -> Response:
        """The page; a link with the key opens it and then keeps the key out of the address."""
        key = request.query_params.get("key", "")
        if key and is_same_secret(key, self.service.settings.wizard_key):
            response: Response = RedirectResponse(f"{self.root}/wizard", 303)
            secret = self.desk.sign_in()
            path = f"{self.root}/wizard"
            set_cookie(request, response, WIZARD_COOKIE, secret, path=path, is_embedded=False, max_age_s=KEPT_S)
            return response
        secret = cookie(request, WIZARD_COOKIE)
        if not self.desk.name_of(secret):
            page = self.service.pages.render_wizard(csrf="", root_path=self.root, is_locked=True)
            return HTMLResponse(page, 403)
        return HTMLResponse(self.service.pages.render_wizard(csrf=csrf_for(secret), root_path=self.root))

    async def rename(self, request: Request) -> Response:
        """The wizard's own name."""
        secret, _ = self._wizard(request)
        name = (await read_json(request)).get("name")
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise Unreadable(f"a name has 1 to {MAX_NAME_LENGTH} characters")
        return JSONResponse({"wizard": self.desk.rename(secret, name.strip())})

    async def chats(self, request: Request) -> Response:
        """All conversations with what was said in them."""
        _, wizard = self._wizard(request)
        shown = [await self._as_json(chat, wizard) for chat in self.desk.chats_open()]
        canned = [text for agent in self._agents() for text in agent.canned]
        content = {"now_ms": self.service.flow.clock(), "wizard": wizard, "canned": list(dict.fromkeys(canned))}
        return JSONResponse({**content, "chats": shown})

    async def take(self, request: Request) -> Response:
        """Takes a conversation."""
        _, wizard = self._wizard(request)
        self.desk.take(request.path_params["chat"], wizard)
        return Response(status_code=204)

    async def release(self, request: Request) -> Response:
        """Leaves a conversation to others."""
        _, wizard = self._wizard(request)
        self.desk.release(request.path_params["chat"], wizard)
        return Response(status_code=204)

    async def reply(self, request: Request) -> Response:
        """Answers the rater."""
        _, wizard = self._wizard(request)
        content = await read_json(request)
        text, n = content.get("text"), content.get("n")
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_MESSAGE_LENGTH or not isinstance(n, int):
            raise Unreadable(f"a reply has 1 to {MAX_MESSAGE_LENGTH} characters", remedy='send {"text": …, "n": …}')
        await self.desk.reply(request.path_params["chat"], wizard, text, n)
        return Response(status_code=204)

    async def suggestions(self, request: Request) -> Response:
        """What the study's suggesting agents would say now."""
        self._wizard(request)
        chat = self.desk.chat(request.path_params["chat"])
        agent = self.service.chats.agent(chat.item.system)
        assert isinstance(agent, Wizard)

        def ask() -> list[str]:
            history = self.service.chats.history(chat.session, chat.item.id)
            return agent.suggestions(history, seed=chat.session.ordinal)

        return JSONResponse({"suggestions": await self.service.in_thread(ask)})

    def _agents(self) -> list[Wizard]:
        systems = [system.name for system in self.service.study.spec.systems if system.agent is not None]
        agents = [self.service.chats.agent(name) for name in systems]
        return [agent for agent in agents if isinstance(agent, Wizard)]

    def _wizard(self, request: Request) -> tuple[str, str]:
        secret = cookie(request, WIZARD_COOKIE)
        name = self.desk.name_of(secret)
        if not name:
            raise NoWizard("the console is locked", remedy="open the link that the server printed")
        if request.method != "GET":
            check_csrf(request, secret, request.headers.get("x-csrf-token", ""))
        return secret, name

    async def _as_json(self, chat: OpenChat, wizard: str) -> dict[str, object]:
        def look() -> tuple[list[ChatTurn], bool]:
            turns = self.service.store.chat_turns(chat.session.id, chat.item.id)
            return turns, self.desk.is_over(chat)

        turns, is_over = await self.service.in_thread(look)
        is_waiting = bool(turns) and turns[-1].role == "user"
        opening = [{"role": "agent", "text": chat.item.opening, "at_ms": None}] if chat.item.opening else []
        said = [{"role": turn.role, "text": turn.text, "at_ms": turn.at_ms} for turn in turns]
        return {
            "id": chat.id,
            "number": chat.session.ordinal,
            "scenario": chat.item.scenario,
            "turns": opening + said,
            "n": len(turns),
            "waiting_since_ms": turns[-1].at_ms if is_waiting else None,
            "holder": chat.holder or None,
            "is_mine": chat.holder == wizard,
            "is_over": is_over,
            "n_said": sum(turn.role == "user" for turn in turns),
            "min_turns": chat.item.min_turns,
            "max_turns": chat.item.max_turns,
        }
