"""What can be explored in a study's results, and what an address chooses of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from dialometer.errors import DialometerError
from dialometer.model.study import LANGUAGE, Study
from dialometer.quality.gold import gold_items
from dialometer.web.dashboard.dashboard import PageRequest

CONDITION, ITEM = "condition", "item"
FROM, TO = "from.", "to."
"""Before the name of a question that is answered with a number: the least and the most."""
MAX_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to choose by: its name in the address, its label, and what there is to choose from (empty for numbers)."""

    name: str
    label: str
    options: Sequence[str] = ()
    is_number: bool = False


def offered(study: Study) -> list[Offer]:
    """Conditions, items, and answers to questions that list them or are numbers."""
    offers = []
    if len(study.cells) > 1:
        offers.append(Offer(CONDITION, "Condition", [study.cell_label(cell) for cell in study.cells]))
    spec = study.spec
    if len(spec.languages) > 1:
        offers.append(Offer(LANGUAGE, "Language", spec.languages))
    for question in (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire):
        scale = spec.scales.get(question.scale)
        if scale is None or scale.compares or scale.detail_table is not None:
            continue
        if scale.option_names():
            offers.append(Offer(question.name, question.text, scale.option_names()))
        elif scale.is_numeric:
            offers.append(Offer(question.name, question.text, is_number=True))
    gold = gold_items(study)  # they check raters and are in no result
    offers.append(Offer(ITEM, "Item", [item.id for item in study.people_items if item.id not in gold]))
    return offers


def chosen(request: PageRequest) -> dict[str, str]:
    """What the address chooses, by the names of its fields."""
    return {
        name: value.strip()[:MAX_LENGTH]
        for name, value in request.query.items()
        if value.strip() and name not in ("message", "signature", "source")
    }


def report_options(offers: Sequence[Offer], choice: Mapping[str, str]) -> tuple[str, ...]:
    """The options of ``dialometer report`` for a choice; what is not offered is refused."""
    words: list[str] = []
    for offer in offers:
        if offer.is_number:
            for field, sign in ((FROM, ">="), (TO, "<=")):
                bound = choice.get(f"{field}{offer.name}", "")
                if bound:
                    words += ["--only", f"{offer.name}{sign}{_number(bound)}"]
        elif choice.get(offer.name):
            if choice[offer.name] not in offer.options:
                raise DialometerError(
                    f"there is no '{choice[offer.name]}' to choose",
                    where=offer.label,
                    remedy="choose one from the list",
                )
            words += ["--only", f"{offer.name}={choice[offer.name]}"]
    return tuple(words)


def address_of(choice: Mapping[str, str]) -> str:
    """The choice as the end of an address."""
    return f"?{urlencode(choice)}" if choice else ""


def _number(text: str) -> str:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise DialometerError(f"'{text}' is not a number", remedy="such as 30") from None
    return f"{number:g}"
