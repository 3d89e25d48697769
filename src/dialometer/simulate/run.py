"""A whole population of simulated raters, in the order of a virtual clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dialometer.model.study import Study
from dialometer.simulate.answering import answer_screen
from dialometer.simulate.rater import Habits, SimulatedRater, draw_rater
from dialometer.simulate.screen_view import ScreenView, SettlingAccess, StudyAccess, Visit, with_own_names
from dialometer.simulate.truth import Truth

_MESSAGES = (
    "Hi there!",
    "What have you been up to?",
    "That sounds interesting, tell me more.",
    "Do you have a favourite?",
    "I am not sure I agree with that.",
    "Can you recommend something for the weekend?",
    "Why do you think so?",
    "I liked the one we talked about before.",
    "What would you do in my place?",
    "Thanks, that was nice to talk about.",
)
MEAN_ARRIVAL_GAP_S = 90.0
BATCH = 64
_LANGUAGE_STREAM = 71
"""Sets the draw of languages apart from every other draw that starts from the same seed."""


@dataclass
class SimulationProgress:
    """How far a simulation has come; handed to the caller after every stored batch."""

    n_arrived: int = 0
    n_refused: int = 0
    n_finished: int = 0
    n_left: int = 0
    n_screens: int = 0
    n_judgments: int = 0
    n_practice: int = 0
    """Practice judgments, which are not among the judgments."""
    states: dict[str, int] = field(default_factory=dict)


@dataclass(order=True)
class _Event:
    at_ms: int
    number: int
    session: str | None = field(default=None, compare=False)


def simulate(
    study: Study,
    access: StudyAccess,
    truth: Truth,
    *,
    n_raters: int,
    seed: int,
    start_ms: int,
    habits: Habits | None = None,
    first_number: int = 1,
    languages: Mapping[str, float] | None = None,
    report: Callable[[SimulationProgress], None] | None = None,
) -> SimulationProgress:
    """Lets raters arrive one after the other and work side by side until all have finished or left.

    ``languages`` are the shares of raters that read the study in each of its languages; equal ones by default.
    """
    shares = languages or dict.fromkeys(study.spec.all_languages, 1.0)
    habits = habits or Habits()
    rng = np.random.default_rng([seed, 4])
    gaps_ms = (rng.exponential(MEAN_ARRIVAL_GAP_S, first_number + n_raters - 1) * 1000).astype(np.int64)
    arrivals = start_ms + np.cumsum(gaps_ms)
    raters = {n: draw_rater(n, seed, habits) for n in range(first_number, first_number + n_raters)}
    queue = [_Event(int(arrivals[n - 1]), n) for n in raters]
    heapq.heapify(queue)
    progress = SimulationProgress()
    while queue:
        visits: list[Visit] = []
        events: list[_Event] = []
        while queue and len(visits) < BATCH:
            event = heapq.heappop(queue)
            if event.session is None:
                if visits:  # arrivals see everything submitted before them
                    heapq.heappush(queue, event)
                    break
                _arrive(access, event, seed, _language(shares, seed, event.number), queue, progress)
                continue
            visit = _visit(study, access, truth, raters[event.number], event, progress)
            if visit is not None:
                visits.append(visit)
                events.append(event)
        if visits:
            n_judgments, n_practice = access.submit(visits)
            progress.n_judgments += n_judgments
            progress.n_practice += n_practice
            progress.n_screens += len(visits)
        for event, visit in zip(events, visits, strict=True):
            heapq.heappush(queue, _Event(visit.submitted_at_ms, event.number, event.session))
        if report is not None:
            report(progress)
    return progress


ADJUDICATOR_HABITS = Habits(bias_sd=0.0, noise_sd=0.15, careless_share=0.0)
"""Adjudicators look closely: they see what is true with little noise."""
_FIRST_ADJUDICATOR = 1_000_000
"""Their numbers begin after those of all raters."""


def settle(
    study: Study, access: SettlingAccess, truth: Truth, *, n_adjudicators: int, seed: int, start_ms: int
) -> SimulationProgress:
    """Lets adjudicators settle what raters disagree about, one after the other, until nothing is waiting."""
    progress = SimulationProgress()
    at_ms, turn = start_ms, 0
    while True:
        number = turn % n_adjudicators + 1
        session = access.arrive_to_settle(f"simulated-{seed}-{number}", at_ms)
        if session is None:
            return progress
        progress.n_arrived += turn < n_adjudicators
        rater = draw_rater(_FIRST_ADJUDICATOR + number, seed, ADJUDICATOR_HABITS)
        event = _Event(at_ms, number, session)
        while (visit := _visit(study, access, truth, rater, event, progress)) is not None:
            progress.n_judgments += access.submit([visit])[0]
            progress.n_screens += 1
            event = _Event(visit.submitted_at_ms, number, session)
        at_ms, turn = event.at_ms, turn + 1


def _language(shares: Mapping[str, float], seed: int, number: int) -> str:
    """Drawn for each rater by itself, so that languages do not go hand in hand with conditions."""
    weights = np.array(list(shares.values()), dtype=float)
    rng = np.random.default_rng([seed, _LANGUAGE_STREAM, number])
    return list(shares)[int(rng.choice(len(weights), p=weights / weights.sum()))] if len(shares) > 1 else ""


def _arrive(
    access: StudyAccess, event: _Event, seed: int, language: str, queue: list[_Event], progress: SimulationProgress
) -> None:
    session = access.arrive(f"simulated-{seed}-{event.number}", event.at_ms, language)
    if session is None:
        progress.n_refused += 1
        return
    progress.n_arrived += 1
    heapq.heappush(queue, _Event(event.at_ms, event.number, session))


def _visit(
    study: Study, access: StudyAccess, truth: Truth, rater: SimulatedRater, event: _Event, progress: SimulationProgress
) -> Visit | None:
    """One screen of one rater; None when the session is over or the rater leaves."""
    assert event.session is not None
    shown = access.screen(event.session)
    screen = with_own_names(study, shown)
    if screen.kind == "done":
        progress.n_finished += 1
        progress.states[screen.state] = progress.states.get(screen.state, 0) + 1
        return None
    if screen.step / max(1, screen.n_steps) >= rater.leaves_at:
        progress.n_left += 1
        return None
    rng = rater.rng(screen.step, 99)
    if screen.kind == "chat":
        _talk(study, access, event.session, screen, rng, event.at_ms)
    duration_s = max(0.8, screen.seconds * rater.pace * float(np.exp(rng.normal(0, 0.25))))
    shown_at_ms = event.at_ms
    submitted_at_ms = shown_at_ms + int(duration_s * 1000)
    return Visit(
        session=event.session,
        screen=shown.key,
        answers=answer_screen(study, truth, rater, screen),
        shown_at_ms=shown_at_ms,
        first_input_at_ms=shown_at_ms + int(duration_s * 600),
        submitted_at_ms=submitted_at_ms,
        token=f"simulated-{rater.seed}-{rater.number}-{event.session}-{screen.key}",
    )


def _talk(
    study: Study, access: StudyAccess, session: str, screen: ScreenView, rng: np.random.Generator, at_ms: int
) -> None:
    """Says what the item has for simulated raters (``simulated_messages`` in its metadata), else small talk.

    A conversation that an earlier run left in the middle goes on where it was, also where the agent did not answer.
    """
    messages = study.items_by_id[screen.item_id].metadata.get("simulated_messages") or ()
    n_messages = max(screen.min_turns, len(messages)) if messages else screen.min_turns + int(rng.integers(0, 3))
    n_said = sum(role == "user" for role in screen.said)
    if screen.said and screen.said[-1] == "user":
        access.wait_for_reply(session, screen.item_id, at_ms + 20_000 * (n_said - 1))
    for i in range(n_said, n_messages):
        text = messages[min(i, len(messages) - 1)] if messages else _MESSAGES[i % len(_MESSAGES)]
        access.say(session, screen.item_id, str(text), at_ms + 20_000 * i)
