"""However screens arrive (twice, out of order, cut into any batches), the outcome is that of a plain sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storage_cases import T0, arrive, judgment, screen

from dialometer.model.session import Session
from dialometer.storage import Store

N_STEPS = 4


@dataclass
class Reference:
    """The rules in a few lines: a token counts once, and only at its step."""

    step: int = 0
    state: str = "active"
    stored: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take(self, token: str, step: int) -> tuple[str, int, str]:
        if token in self.stored:
            return ("repeated", *self.stored[token])
        if self.state != "active":
            return ("ended", self.step, self.state)
        if step != self.step:
            return ("outdated", self.step, self.state)
        self.step += 1
        self.state = "completed" if self.step == N_STEPS else "active"
        self.stored[token] = (self.step, self.state)
        return ("stored", self.step, self.state)


def send(session: Session, step: int, variant: int):
    state = "completed" if step == N_STEPS - 1 else "active"
    entries = [judgment(session, f"item{step}", variant)]
    return screen(session, step, entries, token=f"{session.id}/{step}/{variant}", next_state=state)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sent=st.lists(st.tuples(st.integers(0, 1), st.integers(0, N_STEPS - 1), st.integers(0, 1)), max_size=24),
    cuts=st.lists(st.integers(1, 9), min_size=24, max_size=24),
)
def test_any_delivery_equals_one_by_one(store: Store, sent: list[tuple[int, int, int]], cuts: list[int]) -> None:
    sessions = [arrive(store), arrive(store)]
    references = [Reference(), Reference()]
    expected = [references[who].take(f"{step}/{variant}", step) for who, step, variant in sent]
    submissions = [send(sessions[who], step, variant) for who, step, variant in sent]
    outcomes = []
    while submissions:
        n = cuts.pop(0)
        batch, submissions = submissions[:n], submissions[n:]
        outcomes += [(one.outcome, one.step, one.state) for one in store.submissions.record(batch, T0)]
    assert outcomes == expected
    for session, reference in zip(sessions, references, strict=True):
        found = [(one.item_id, one.value) for one in store.records.judgments(session.id)]
        assert found == [(f"item{token[0]}", int(token[-1])) for token in reference.stored]
        assert store.sessions.get(session.id).step == reference.step
        assert len(list(store.records.visits(session.id))) == reference.step
