"""Simulated raters inside this process: they make the same calls as the pages."""

from __future__ import annotations

from dataclasses import replace

from dialometer.agents import Reply
from dialometer.agents.wizard import Wizard
from dialometer.errors import AssignmentError, FlowError
from dialometer.flow.arena import Arenas
from dialometer.flow.chat import Chats
from dialometer.flow.engine import Flow
from dialometer.flow.screens import Screen, step_seconds
from dialometer.flow.submissions import Timing
from dialometer.model.item import ArenaItem, ChatItem
from dialometer.model.session import Receipt, Session, Submission
from dialometer.simulate.screen_view import FieldView, ScreenView, Visit

WIZARD_MS = 10_000
"""How long a simulated wizard takes to answer."""


def view_of(screen: Screen, seconds: float = 10.0) -> ScreenView:
    """What a simulated rater sees of a screen."""
    item = screen.item
    return ScreenView(
        kind=screen.kind,
        key=screen.key,
        step=screen.step,
        n_steps=screen.n_steps,
        fields=tuple(
            FieldView(f.name, f.scale, f.target, f.alternatives, f.is_required, f.anchor, f.passages)
            for f in screen.fields
        ),
        item_id=item.id if item else "",
        option_texts=tuple("\n".join(turn.text for turn in option.turns) for option in item.options) if item else (),
        has_standard=bool(item and item.standard),
        min_turns=item.min_turns if item else 0,
        seconds=seconds,
        state=screen.state,
    )


class EngineAccess:
    """Simulated raters inside this process; screens of different sessions are stored in one commit."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.chats = Chats(flow.study, flow.store)
        self.arenas = Arenas(flow, self.chats)

    def arrive(self, external_id: str, at_ms: int, language: str = "") -> str | None:
        """The session's id, or None when the study has no place left."""
        try:
            return self.flow.arrive(
                platform="simulated", external_id=external_id, source="simulated", at_ms=at_ms, language=language
            ).session.id
        except AssignmentError:
            return None

    def arrive_to_settle(self, name: str, at_ms: int) -> str | None:
        """The session of an adjudicator, or None when nothing is waiting to be settled."""
        try:
            return self.flow.arrive_to_settle(name, source="simulated_adjudicator", at_ms=at_ms).session.id
        except AssignmentError:
            return None

    def screen(self, session: str) -> ScreenView:
        """The screen where the session stands."""
        current = self.flow.store.sessions.get(session)
        if current.state == "stale":
            current = self.flow.store.sessions.revive(session, current.last_seen_at_ms)
        screen = self.arenas.shown(current, self.flow.screen(current))
        if screen.kind == "done":
            return view_of(screen)
        path = self.flow.path(current)
        view = view_of(screen, step_seconds(self.flow.study, path, path.steps[screen.step]))
        view = replace(view, language=current.language)
        if screen.item is not None and screen.item.kind == "arena":
            said = self.arenas.roles_so_far(current, view.item_id) if screen.kind == "chat" else ()
            return replace(view, said=said, systems=self.arenas.systems(current, view.item_id))
        if screen.kind != "chat":
            return view
        return replace(view, said=tuple(turn.role for turn in self.chats.history(current, view.item_id)))

    def submit(self, visits: list[Visit]) -> tuple[int, int]:
        """Stores the screens and returns how many judgments and practice judgments were acknowledged."""
        batch: list[Submission] = []
        sessions = self.flow.store.sessions.several([visit.session for visit in visits])
        for visit in visits:
            timing = Timing(visit.shown_at_ms, visit.submitted_at_ms, visit.first_input_at_ms, device=visit.device)
            prepared = self.flow.prepare(sessions[visit.session], visit.screen, visit.answers, timing, visit.token)
            if not isinstance(prepared, Receipt):
                batch.append(prepared)
        if not batch:
            return 0, 0
        receipts = self.flow.store.submissions.record(batch, max(visit.submitted_at_ms for visit in visits))
        if any(receipt.outcome == "outdated" for receipt in receipts):
            raise FlowError(
                "a simulated rater's session moved while it was answering", remedy="run one simulation at a time"
            )
        stored = [s for s, receipt in zip(batch, receipts, strict=True) if receipt.outcome == "stored"]
        is_practice = [judgment.is_practice for submission in stored for judgment in submission.judgments]
        return len(is_practice) - sum(is_practice), sum(is_practice)

    def say(self, session: str, item_id: str, text: str, at_ms: int) -> str:
        """One message in a chat; the reply is stored before it is returned. A simulated wizard sends the first suggestion."""
        current = self.flow.store.sessions.get(session)
        item = self.flow.study.items_by_id.get(item_id)
        if isinstance(item, ArenaItem):
            self.arenas.exchange(current, item_id, text, at_ms)
            return ""
        agent = self.chats.agent(item.system) if isinstance(item, ChatItem) else None
        if not isinstance(item, ChatItem) or not isinstance(agent, Wizard):
            return self.chats.say(current, item_id, text, at_ms).text
        self.chats.hear(current, item_id, text, at_ms)
        return self._as_wizard(current, item, agent, at_ms)

    def wait_for_reply(self, session: str, item_id: str, at_ms: int) -> str:
        """Asks the agent again, whose reply failed to come in an earlier run."""
        current = self.flow.store.sessions.get(session)
        item = self.flow.study.items_by_id[item_id]
        if isinstance(item, ArenaItem):
            self.arenas.catch_up(current, item_id, at_ms)
            return ""
        agent = self.chats.agent(item.system) if isinstance(item, ChatItem) else None
        if isinstance(item, ChatItem) and isinstance(agent, Wizard):
            return self._as_wizard(current, item, agent, at_ms)
        return self.chats.answer(current, item_id, at_ms).text

    def _as_wizard(self, current: Session, item: ChatItem, agent: Wizard, at_ms: int) -> str:
        """A simulated wizard sends the first suggestion."""
        item_id = item.id
        replies = self.chats.suggestions(current, item) or agent.canned
        if not replies:
            raise FlowError(
                f"nobody answers as '{item.system}': a simulated wizard only sends what is suggested",
                remedy="name an agent under 'suggest', such as {type: carbohydrates}, or canned replies",
            )
        n = self.flow.store.conversations.turns(current.id, item_id)[-1].n + 1
        reply = Reply(replies[0], {"wizard": "simulated"})
        return self.chats.store_reply(current, item_id, n, reply, at_ms + WIZARD_MS).text
