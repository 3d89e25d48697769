"""Finding the candidate of a study that a file names by question and answer, each by id or by text."""

from __future__ import annotations

from dialometer.exchange.mismatch import Mismatch
from dialometer.model.item import CandidateItem
from dialometer.model.study import Study
from dialometer.registry import did_you_mean

N_SHOWN = 60
Writing = tuple[str, bool]
"""A name, and whether it is exactly as written."""


class CandidateIndex:
    """The candidates of a study. A question's text is its last turn, or all turns before the answer, one to a line.

    Names are looked up as they are written; only where there is none of that writing, capitals and white space do not matter.
    """

    def __init__(self, study: Study) -> None:
        self.items = [item for item in study.rated_items if isinstance(item, CandidateItem)]
        self.questions: dict[Writing, dict[str, None]] = {}
        """Question ids by id and by text; several questions may have the same words."""
        self.answers: dict[tuple[str, Writing], dict[str, None]] = {}
        """Item ids by question id and answer (id or text)."""
        ids = {item.question for item in self.items}
        for item in self.items:
            texts = {item.turns_before, *(turn.text for turn in item.context[-1:])} - ids
            for name in _writings(item.question, *texts):
                self.questions.setdefault(name, {})[item.question] = None
            for name in _writings(item.answer, item.candidate.text):
                self.answers.setdefault((item.question, name), {})[item.id] = None

    def find(self, question: str, answer: str) -> str | Mismatch:
        """The item's id, or why there is none."""
        if not self.items:
            return Mismatch("the study has no candidate answers", "map a column to the item: --map item=COLUMN")
        exact, plain = _writings(question)
        questions = self.questions.get(exact) or self.questions.get(plain)
        if not questions:
            known = dict.fromkeys(item.question for item in self.items)
            remedy = did_you_mean(question, list(known)[:200])
            return Mismatch(f"the study has no question '{_shown(question)}'", remedy, "question")
        matches = {name: items for name in questions if (items := self._answers(name, answer))}
        if len(matches) > 1:
            remedy = f"name the question by its id: {', '.join(list(matches)[:5])}"
            return Mismatch(f"{len(matches)} questions read '{_shown(question)}'", remedy, "question")
        items = next(iter(matches.values()), {})
        if not items:
            remedy = "add it to the items (dialometer retrieval pool --rated FILE pools every answer that a file rates)"
            return Mismatch(f"'{_shown(answer)}' is not a candidate for '{_shown(question)}'", remedy, "answer")
        if len(items) > 1:
            remedy = "name the answer by its id, or the item: --map item=COLUMN"
            return Mismatch(f"{len(items)} items are the answer '{_shown(answer)}'", remedy, "answer")
        return next(iter(items))

    def _answers(self, question: str, answer: str) -> dict[str, None]:
        exact, plain = _writings(answer)
        return self.answers.get((question, exact)) or self.answers.get((question, plain)) or {}


def _writings(*names: str) -> list[Writing]:
    """Every name as it is written, and as it is compared where nothing is written so."""
    return [writing for name in names for writing in ((name, True), (_plain(name), False))]


def _plain(text: str) -> str:
    """The text as it is compared: capitals and white space do not matter."""
    return " ".join(text.split()).casefold()


def _shown(text: str) -> str:
    return text if len(text) <= N_SHOWN else f"{text[: N_SHOWN - 1]}…"
