"""A model as a judge of a study's items: every item once in each order of its responses, in one condition, without a session.

Each question is independent of the others, so that it can be asked in any order, again after an interruption, or by way of a
provider's batch interface. What a judge said is stored as sessions of source ``model``: one for each sample and order.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from dialometer.agents.tries import RequestRefused
from dialometer.design.lock import fingerprint
from dialometer.errors import AnswersRejected, DialometerError
from dialometer.flow.engine import now_ms
from dialometer.flow.screen_json import screen_content
from dialometer.flow.screens import Screen, build_screen
from dialometer.flow.steps import Step, path_of
from dialometer.flow.submissions import Timing, read_values, to_judgments
from dialometer.judges.access import PLATFORM
from dialometer.judges.asking import GaveUp, Prompting
from dialometer.judges.model_client import BudgetSpent, ModelReply, NotAnswered, Usage
from dialometer.model.item import ArenaItem, ChatItem, Item
from dialometer.model.session import Answer, Judgment, Plan, Task
from dialometer.model.study import Study
from dialometer.storage.imports import ImportedSession
from dialometer.storage.store import Store

NAME_PART = "model"
"""Part of a session's answers that says what the judge is: its name, settings, tokens and cost."""
MISSING, REASONS = "missing", "reasons"
"""Parts of a session's answers: why an item has no judgment, and why the judge decided as it did."""
ORDER_STREAM = 1002
"""Sets the draw of orders, where a judge sees one of them, apart from other draws that start from the study's seed."""
MAY_BE_THE_ITEM = (400, 413, 422)
"""Statuses with which endpoints refuse one request that is too long or not allowed, while others pass."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Once through the items: which of the subsets of systems is shown, in which order, and the number of the sample."""

    subset: int
    is_exchanged: bool
    sample: int

    @property
    def label(self) -> str:
        """Behind the judge's name in the name of its session."""
        return f"{self.sample}{'x' if self.is_exchanged else ''}{f'-{self.subset + 1}' if self.subset else ''}"


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One screen of one item."""

    step: Step
    screen: Screen


@dataclass
class JudgingProgress:
    """How far a judge has come."""

    judge: str
    n_questions: int = 0
    n_done: int = 0
    n_judgments: int = 0
    n_known: int = 0
    """Questions that were answered and stored in an earlier run."""
    n_unanswered: int = 0
    """Questions that were not sent: they wait for a batch."""
    missing: dict[str, int] = field(default_factory=dict)
    """Questions without a usable answer, by reason."""
    stopped: str = ""
    """Why the run ended before all was asked."""
    spent: Usage = field(default_factory=Usage)


@dataclass
class _Answered:
    """What one pass has brought."""

    judgments: list[Judgment] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)


@dataclass
class ItemJudge:
    """One model, all items. Running it again asks only what has no answer yet."""

    study: Study
    store: Store
    prompting: Prompting
    name: str
    items: Sequence[Item]
    """The items to judge."""
    n_samples: int = 1
    has_both_orders: bool = True
    n_parallel: int = 1
    seed: int = 0
    language: str = ""
    """In which of the study's languages the judge reads; the first by default."""

    def run(self, report: Callable[[JudgingProgress], None] | None = None) -> JudgingProgress:
        """Asks and stores, pass by pass; what was answered is stored even where the run ends early."""
        passes = list(self._passes())
        questions = {pass_: self._questions(pass_) for pass_ in passes}
        progress = JudgingProgress(self.name, sum(map(len, questions.values())), spent=self.prompting.client.spent)
        known = self._known()
        for pass_ in passes:
            if progress.stopped:
                break
            done, missing = known.get(self._rater(pass_), (set(), set()))
            is_asked_again = self.prompting.is_asked_again or self.prompting.client.is_offline
            still_open = [q for q in questions[pass_] if not _is_done(q, done)]
            left = [q for q in still_open if is_asked_again or _place(q.step) not in missing]
            n_missing = len(still_open) - len(left)
            progress.n_known += len(questions[pass_]) - len(left)
            progress.n_done += len(questions[pass_]) - len(left)
            if n_missing:
                reason = "no usable answer in an earlier run (--again asks once more)"
                progress.missing[reason] = progress.missing.get(reason, 0) + n_missing
            self._run_pass(pass_, left, progress, report, missing)
        return progress

    def _passes(self) -> Iterator[Pass]:
        items = self._items()
        n_subsets = max((len(self._subsets(item)) for item in items), default=0)
        for sample in range(1, self.n_samples + 1):
            for subset in range(n_subsets):
                yield Pass(subset, is_exchanged=False, sample=sample)
                if self.has_both_orders and self._compares:
                    yield Pass(subset, is_exchanged=True, sample=sample)

    @property
    def _compares(self) -> bool:
        """Whether anything is chosen between responses; ratings of single responses are asked in one order."""
        presentation = self.study.presentation(self.study.cells[0])
        return any(
            self.study.scale_for(criterion, presentation).compares_responses for criterion in self.study.spec.criteria
        )

    def _items(self) -> list[Item]:
        items = list(self.items)
        if any(isinstance(item, ChatItem | ArenaItem) for item in items):
            raise DialometerError(
                "live dialogues cannot be judged by their items: somebody must hold them first",
                remedy="let the model take part as a rater with --raters, or judge stored dialogues",
            )
        return items

    def _subsets(self, item: Item) -> list[tuple[str, ...]]:
        """Which systems are shown together: all of an item's, or the sets that raters get of them, each once."""
        systems, n_shown = tuple(item.systems), self.study.n_systems_shown(item)
        n = len(systems)
        if n_shown >= n:
            return [systems]
        circle = [tuple(sorted((first + i) % n for i in range(n_shown))) for first in range(n)]
        return [tuple(systems[i] for i in places) for places in dict.fromkeys(circle)]

    def _questions(self, pass_: Pass) -> list[JudgeQuestion]:
        """The screens of a pass. A judge sees the study's first condition."""
        tasks = []
        drawn = np.random.default_rng([self.study.spec.seed, ORDER_STREAM]).integers(0, 2, len(self.study.items))
        for position, item in enumerate(self._items(), start=1):
            subsets = self._subsets(item)
            if pass_.subset >= len(subsets):
                continue
            systems = subsets[pass_.subset]
            block = next((b for b in self.study.blocks if b.name == item.block), self.study.blocks[0])
            criteria = tuple(criterion.name for criterion in self.study.block_criteria(block))
            is_exchanged = pass_.is_exchanged if self.has_both_orders else bool(drawn[position - 1])
            shown = systems[::-1] if is_exchanged else systems
            tasks.append(Task(block.name, item.id, position, shown, criteria))
        path = path_of(self.study, Plan(self.study.cells[0], tuple(tasks)))
        questions = [
            JudgeQuestion(step, build_screen(self.study.in_language(self.language), path, index))
            for index, step in enumerate(path.steps)
            if step.kind == "item"
        ]
        return [
            q for q in questions if not pass_.is_exchanged or any(f.scale.compares_responses for f in q.screen.fields)
        ]

    @property
    def instructions(self) -> str:
        """What the study tells its raters, in the first condition."""
        path = path_of(self.study, Plan(self.study.cells[0], ()))
        index = next(i for i, step in enumerate(path.steps) if step.kind == "instructions")
        return build_screen(self.study.in_language(self.language), path, index).text

    def _rater(self, pass_: Pass) -> str:
        return f"{self.name}#{pass_.label}"

    def _known(self) -> dict[str, tuple[set[tuple[str, str]], set[str]]]:
        """By the name of a session: the items and criteria that are stored, and what is known to be missing."""
        known: dict[str, tuple[set[tuple[str, str]], set[str]]] = {}
        for session in self.store.sessions.all():
            person = self.store.sessions.person(session.id) if session.source == "model" else None
            if person is None or not person.external_id.startswith(f"{self.name}#"):
                continue
            done, missing = known.setdefault(person.external_id, (set(), set()))
            done |= {(j.item_id, j.criterion) for j in self.store.records.judgments(session.id)}
            missing |= {a.question for a in self.store.records.answers(session.id) if a.part == MISSING}
        return known

    def _run_pass(
        self,
        pass_: Pass,
        questions: Sequence[JudgeQuestion],
        progress: JudgingProgress,
        report: Callable[[JudgingProgress], None] | None,
        missing: set[str],
    ) -> None:
        answered = _Answered()
        session_id = "judge-" + hashlib.sha256(f"{self._rater(pass_)} {now_ms()}".encode()).hexdigest()[:24]
        counting = Lock()
        instructions = self.instructions

        def take(question: JudgeQuestion) -> None:
            reason = ""
            try:
                self._ask(pass_, question, instructions, session_id, answered, counting)
            except NotAnswered:
                with counting:
                    progress.n_unanswered += 1
            except GaveUp as error:
                reason = error.message
                with counting:
                    answered.replies += error.replies
            except RequestRefused as error:
                if error.status not in MAY_BE_THE_ITEM or not progress.spent.n_requests:
                    raise
                reason = error.message
            with counting:
                if reason:
                    kind = reason.partition(" (")[0]
                    progress.missing[kind] = progress.missing.get(kind, 0) + 1
                    if _place(question.step) not in missing:
                        answered.answers.append(_answer(session_id, MISSING, _place(question.step), reason))
                progress.n_done += 1
                if report is not None:
                    report(progress)

        try:
            with ThreadPoolExecutor(self.n_parallel, thread_name_prefix="judge") as pool:
                jobs = [pool.submit(take, question) for question in questions]
                try:
                    for job in jobs:
                        job.result()
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        except BudgetSpent as error:
            progress.stopped = error.message
        finally:
            progress.n_judgments += len(answered.judgments)
            self._store(pass_, session_id, answered)

    def _ask(
        self,
        pass_: Pass,
        question: JudgeQuestion,
        instructions: str,
        session_id: str,
        answered: _Answered,
        counting: Lock,
    ) -> None:
        shown = screen_content(question.screen)
        about = {"rater": self._rater(pass_), "screen": question.screen.key}
        answers = self.prompting.ask(shown, instructions, seed=self.seed + pass_.sample, about=about)
        end = answers.at_ms or now_ms()
        timing = Timing(end - int(1000 * answers.duration_s), end, device="program")
        try:
            values = read_values(question.screen.fields, answers.values)
        except AnswersRejected as error:
            why = "; ".join(f"{name}: {complaint}" for name, complaint in error.fields.items())
            raise GaveUp(why, answers.replies) from error
        judgments = to_judgments(question.screen, question.step, values, session_id, timing, is_late=False)
        with counting:
            answered.judgments += judgments
            answered.replies += answers.replies
            if answers.reasons:
                answered.answers.append(_answer(session_id, REASONS, _place(question.step), answers.reasons))

    def _store(self, pass_: Pass, session_id: str, answered: _Answered) -> None:
        is_paid = any(not reply.is_cached for reply in answered.replies)
        if not answered.judgments and not answered.answers and not is_paid:
            return
        client = self.prompting.client
        spent = Usage(
            n_requests=len(answered.replies),
            n_tokens_in=sum(reply.n_tokens_in or 0 for reply in answered.replies),
            n_tokens_out=sum(reply.n_tokens_out or 0 for reply in answered.replies),
        )
        about: dict[str, Any] = {
            "name": self.name,
            "settings": json.dumps(
                client.model.model_dump(
                    exclude={"api_key_env", "headers", "system_prompt"}, exclude_defaults=True, mode="json"
                ),
                ensure_ascii=False,
            ),
            "tokens_in": spent.n_tokens_in,
            "tokens_out": spent.n_tokens_out,
            "seconds": round(sum(reply.duration_s for reply in answered.replies), 3),
        }
        if client.price_in or client.price_out:
            about["cost"] = spent.cost(client.price_in, client.price_out)
        order = [(j.position, j.item_id) for j in answered.judgments]
        judgments = [
            judgment for _, judgment in sorted(zip(order, answered.judgments, strict=True), key=lambda p: p[0])
        ]
        stamps = [judgment.answered_at_ms for judgment in judgments] or [now_ms()]
        version = self.store.studies.register(
            self.study.spec.name, fingerprint(self.study), self.study.spec.model_dump_json(), max(stamps)
        )
        session = ImportedSession(
            id=session_id,
            rater=self._rater(pass_),
            condition=self.study.cells[0],
            language=self.language or self.study.spec.language,
            judgments=judgments,
            answers=[
                *(_answer(session_id, NAME_PART, question, value) for question, value in about.items()),
                *sorted(answered.answers, key=lambda answer: (answer.part, answer.question)),
            ],
            started_at_ms=min(stamps),
            finished_at_ms=max(stamps),
            source="model",
        )
        self.store.imports.add(
            [session],
            file_name=f"judgments of {self._rater(pass_)}",
            sha256=hashlib.sha256(session_id.encode()).hexdigest(),
            format="judge",
            study_version=version,
            at_ms=max(stamps),
            platform=PLATFORM,
        )


def _answer(session_id: str, part: str, question: str, value: Any) -> Answer:
    return Answer(session_id=session_id, part=part, question=question, value=value)


def _place(step: Step) -> str:
    """What a question is about: the item, and the criterion where each is asked by itself."""
    return step.key.removeprefix("item/")


def _is_done(question: JudgeQuestion, done: set[tuple[str, str]]) -> bool:
    task = question.step.task
    assert task is not None
    return any((task.item_id, criterion) in done for criterion in question.step.criteria)


def missing_in_words(missing: dict[str, int]) -> list[str]:
    """The reasons for missing judgments, the most frequent first."""
    return [f"{n:,}: {reason}" for reason, n in Counter(missing).most_common()]
