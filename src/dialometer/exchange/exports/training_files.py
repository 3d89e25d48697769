"""What raters judged, as files to train reward models on: preference pairs, and dialogues with their ratings.

A pair is one line for two systems of one item, whatever number of raters judged it: the one that more raters preferred, or
that they rated higher on average, is the chosen one. How clear the preference was is in the line (``margin`` and the counts).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any

import polars as pl

from dialometer.errors import DialometerError
from dialometer.exchange.dialogue_pairs import is_about_dialogues
from dialometer.model.dialogue import Turn
from dialometer.model.item import CandidateItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.study import Study
from dialometer.model.values import BOTH_BAD, TIE
from dialometer.quality.gold import gold_items
from dialometer.readers.chat_writing import Message, as_messages_of
from dialometer.registry import did_you_mean
from dialometer.scales import SCALES

TIES = "pairs without a preference (ties, or raters divided)"
SAME = "pairs in which both sides say the same"
UNDECIDED = "undecided"


@dataclass(slots=True)
class TrainingLines:
    """The lines of a file, and what was left out, in words, with its number."""

    lines: list[Message] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class ItemJudgments:
    """What raters said about one item: votes between two systems, and ratings of single ones."""

    votes: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    ratings: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def criterion_of(study: Study, name: str) -> str:
    """The criterion whose judgments are meant; it must be named where a study has several."""
    known = [criterion.name for criterion in study.spec.criteria]
    if name and name not in known:
        raise DialometerError(f"the study has no criterion '{name}'", remedy=did_you_mean(name, known))
    if not name and len(known) > 1:
        raise DialometerError("the study has several criteria", remedy=f"--criterion NAME, one of {', '.join(known)}")
    return name or known[0]


def judgments_by_item(study: Study, table: pl.DataFrame, criterion: str) -> dict[str, ItemJudgments]:
    """Votes and ratings on one criterion, by item; ``table`` holds the judgments that count."""
    judged: dict[str, ItemJudgments] = defaultdict(ItemJudgments)
    systems_by_item = {item.id: _systems(item) for item in _used_items(study)}
    rows = table.filter((pl.col("criterion") == criterion) & pl.col("item").is_in(list(systems_by_item)))
    for item, system, scale, value, answer, order in rows.select(
        "item", "system", "scale", "value", "answer", "order"
    ).iter_rows():
        form = SCALES.get(scale).choice_form if scale in SCALES else None
        shown = tuple(order.split("|")) if order else systems_by_item[item]
        if form is not None:
            _add_votes(judged[item].votes, form, json.loads(answer), shown)
        elif value is not None:
            judged[item].ratings[(system or systems_by_item[item][0]) if systems_by_item[item] else ""].append(value)
    return {item: judged[item] for item in systems_by_item if item in judged}


def _used_items(study: Study) -> list[Item]:
    """The items that are about systems: neither practice nor checks of raters."""
    gold = gold_items(study)
    return [item for item in study.rated_items if item.id not in gold]


def _systems(item: Item) -> tuple[str, ...]:
    """The systems of an item's conversations; a candidate is one conversation, whoever retrieved it."""
    return () if isinstance(item, CandidateItem) else item.systems


def _add_votes(votes: dict[tuple[str, str], Counter[str]], form: str, answer: Any, shown: tuple[str, ...]) -> None:
    """Who was preferred to whom, by pairs in the order of their names."""
    if form == "one" and answer in shown:
        won = [(answer, other) for other in shown if other != answer]
    elif form == "order" and isinstance(answer, list):
        won = list(combinations(answer, 2))
    elif form == "ends" and isinstance(answer, dict):
        best, worst = str(answer.get("best")), str(answer.get("worst"))
        won = [(best, other) for other in shown if other != best]
        won += [(other, worst) for other in shown if other not in (best, worst)]
    else:
        won = []
        if len(shown) == 2:
            votes[min(shown), max(shown)][answer if answer in (TIE, BOTH_BAD) else UNDECIDED] += 1
    for winner, loser in won:
        votes[min(winner, loser), max(winner, loser)][winner] += 1


def preference_lines(study: Study, table: pl.DataFrame, criterion: str = "") -> TrainingLines:
    """One line for each two systems of an item that raters preferred differently."""
    criterion_name = criterion_of(study, criterion)
    lines = TrainingLines()
    for item_id, judged in judgments_by_item(study, table, criterion_name).items():
        item = study.items_by_id[item_id]
        if not isinstance(item, PairItem | ResponsesItem):
            raise DialometerError(
                f"items of the kind '{item.kind}' show one response each, so that there are no pairs",
                remedy="--training messages writes each dialogue with its ratings",
            )
        for preferred in (*_by_votes(judged), *_by_ratings(judged)):
            if preferred.chosen == preferred.rejected:
                lines.left_out[TIES] += 1
                continue
            line = _line(study, item, criterion_name, preferred)
            if line is None:
                lines.left_out[SAME] += 1
            else:
                lines.lines.append(line)
    return lines


@dataclass(frozen=True, slots=True)
class _Preferred:
    """Which of two systems was preferred, and by how much; both empty where neither was."""

    chosen: str
    rejected: str
    about: Mapping[str, Any] = field(default_factory=dict)


def _by_votes(judged: ItemJudgments) -> Iterator[_Preferred]:
    for pair, counts in judged.votes.items():
        chosen, rejected = sorted(pair, key=lambda system: -counts[system])
        if counts[chosen] == counts[rejected]:
            yield _Preferred("", "")
            continue
        n = {"n_chosen": counts[chosen], "n_rejected": counts[rejected], "n_ties": counts[TIE]}
        n |= {"n_both_bad": counts[BOTH_BAD]} if counts[BOTH_BAD] else {}
        n |= {"n_undecided": counts[UNDECIDED]} if counts[UNDECIDED] else {}
        n_votes = sum(counts.values())
        yield _Preferred(chosen, rejected, {"margin": round((counts[chosen] - counts[rejected]) / n_votes, 4), **n})


def _by_ratings(judged: ItemJudgments) -> Iterator[_Preferred]:
    means = {system: fmean(ratings) for system, ratings in judged.ratings.items()}
    for pair in combinations(sorted(means), 2):
        chosen, rejected = sorted(pair, key=lambda system: -means[system])
        if means[chosen] == means[rejected]:
            yield _Preferred("", "")
            continue
        about = {
            "margin": round(means[chosen] - means[rejected], 4),
            "score_chosen": round(means[chosen], 4),
            "score_rejected": round(means[rejected], 4),
            "n_chosen": len(judged.ratings[chosen]),
            "n_rejected": len(judged.ratings[rejected]),
        }
        yield _Preferred(chosen, rejected, about)


def _line(study: Study, item: Item, criterion: str, preferred: _Preferred) -> Message | None:
    """One pair: what both have in common is the prompt. None where nothing is left that differs.

    Two system prompts are not part of the chats, since a model would learn from them instead of the responses; they are kept beside.
    """
    messages = {"chosen": _said(item, preferred.chosen), "rejected": _said(item, preferred.rejected)}
    prompts = {f"{which}_system_prompt": prompt for which, (_, prompt) in messages.items()}
    is_told_the_same = len(set(prompts.values())) == 1
    chosen, rejected = (
        as_messages_of(turns, prompt if is_told_the_same else "") for turns, prompt in messages.values()
    )
    n_same = next((n for n, both in enumerate(zip(chosen, rejected, strict=False)) if both[0] != both[1]), None)
    n_same = min(len(chosen), len(rejected)) if n_same is None else n_same
    if chosen == rejected or n_same in (len(chosen), len(rejected)):
        return None
    about: Message = {
        "item": item.id,
        "criterion": criterion,
        **preferred.about,
        **({} if is_told_the_same else prompts),
    }
    if is_about_dialogues(study):
        known = {"chosen": preferred.chosen, "rejected": preferred.rejected}
        about |= {f"{which}_id": str(item.metadata.get(side, "")) for which, side in known.items()}
        systems = {which: item.metadata.get(f"{side}_system") for which, side in known.items()}
        about |= {f"{which}_model": system for which, system in systems.items() if system}
    else:
        about |= {"chosen_model": preferred.chosen, "rejected_model": preferred.rejected}
    prompt = {"prompt": chosen[:n_same]} if n_same else {}
    return {**prompt, "chosen": chosen[n_same:], "rejected": rejected[n_same:], **about}


def _said(item: Item, system: str) -> tuple[tuple[Turn, ...], str]:
    """The whole conversation with one system of an item, and what the system was told."""
    match item:
        case PairItem():
            side = item.a if item.a.system == system else item.b
            return side.turns, side.system_prompt or item.system_prompt
        case ResponsesItem():
            turn = item.response_turn(system, "Agent")
            reply = Turn(turn.speaker, turn.text, "agent", turn.tool_calls, turn.media)
            return (*item.context, reply), item.system_prompts.get(system, "") or item.system_prompt
        case DialogueItem():
            return item.turns, item.system_prompt
        case CandidateItem():
            return (*item.context, item.candidate), item.system_prompt
        case _:
            return (), ""


def message_lines(study: Study, table: pl.DataFrame) -> TrainingLines:
    """One line for each conversation of each item, with what raters said of it on every criterion."""
    lines = TrainingLines()
    criteria = [criterion.name for criterion in study.spec.criteria]
    by_criterion = {name: judgments_by_item(study, table, name) for name in criteria}
    for item in _used_items(study):
        for system in _systems(item) or ("",):
            messages = as_messages_of(*_said(item, system))
            about = {
                name: judged
                for name in criteria
                if (judged := _judged(by_criterion[name].get(item.id, ItemJudgments()), system))
            }
            if messages and about:
                name = f"{item.id}.{system}" if len(_systems(item)) > 1 else item.id
                by = {"ranks": dict(item.ranks)} if isinstance(item, CandidateItem) else {"system": system}
                known = {"item": item.id, **by, "judgments": about}
                lines.lines.append({"id": name, "messages": messages, **known})
            else:
                lines.left_out["conversations without judgments" if messages else "live dialogues"] += 1
    return lines


def _judged(judged: ItemJudgments, system: str) -> dict[str, Any]:
    """Mean rating, or how often a system was preferred and was not, on one item."""
    ratings = judged.ratings.get(system)
    if ratings:
        return {"rating": round(fmean(ratings), 4), "n": len(ratings)}
    counts: Counter[str] = Counter()
    for pair, votes in judged.votes.items():
        if system in pair:
            other = pair[0] if pair[1] == system else pair[1]
            counts["won"] += votes[system]
            counts["lost"] += votes[other]
            counts["tied"] += votes[TIE] + votes[BOTH_BAD]
    return dict(counts) if counts.total() else {}
