"""Finding the candidate of a study that a file names by question and answer, each by id or by text."""

from __future__ import annotations

from dialometer.exchange.mismatch import Mismatch
from dialometer.model.item import CandidateItem
from dialometer.model.study import Study
from dialometer.registry import did_you_mean

N_SHOWN = 60


class CandidateIndex:
    """The candidates of a study. A question's text is its last turn, or all turns before the answer, one to a line."""

    def __init__(self, study: Study) -> None:
        self.items = [item for item in study.rated_items if isinstance(item, CandidateItem)]
        self.questions: dict[str, dict[str, None]] = {}
        """Question ids by id and by text; several questions may have the same words."""
        self.answers: dict[tuple[str, str], list[str]] = {}
        """Item ids by question id and answer (id or text)."""
        for item in self.items:
            question = item.question
            for text in {question, item.turns_before, *(turn.text for turn in item.context[-1:])}:
                self.questions.setdefault(_plain(text), {})[question] = None
            for text in {item.answer, item.candidate.text}:
                self.answers.setdefault((question, _plain(text)), []).append(item.id)

    def find(self, question: str, answer: str) -> str | Mismatch:
        """The item's id, or why there is none."""
        if not self.items:
            return Mismatch("the study has no candidate answers", "map a column to the item: --map item=COLUMN")
        asked = self.questions.get(_plain(question))
        if asked is None:
            known = [item.question for item in self.items]
            remedy = did_you_mean(question, list(dict.fromkeys(known))[:200])
            return Mismatch(f"the study has no question '{_shown(question)}'", remedy, "question")
        found = {name: ids for name in asked if (ids := self.answers.get((name, _plain(answer)), []))}
        if len(found) > 1:
            names = ", ".join(list(found)[:5])
            return Mismatch(
                f"{len(found)} questions read '{_shown(question)}'", f"name the question by its id: {names}", "question"
            )
        items = next(iter(found.values()), [])
        if not items:
            remedy = "add it to the items (dialometer retrieval pool --rated FILE pools every answer that a file rates)"
            return Mismatch(f"'{_shown(answer)}' is no candidate for '{_shown(question)}'", remedy, "answer")
        if len(items) > 1:
            return Mismatch(
                f"{len(items)} items are the answer '{_shown(answer)}'", "name the item: --map item=COLUMN", "answer"
            )
        return items[0]


def _plain(text: str) -> str:
    """The text as it is compared: capitals and white space do not matter."""
    return " ".join(text.split()).casefold()


def _shown(text: str) -> str:
    return text if len(text) <= N_SHOWN else f"{text[: N_SHOWN - 1]}…"
