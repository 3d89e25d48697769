"""What people and judges have both judged, laid out as things by raters: ratings, categories, choices between responses, and
rankings, in which every pair of responses is a choice."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.judge_verdicts import one_verdict_each
from dialometer.analysis.base.wording import criterion_label
from dialometer.analysis.shared.drawn_items import drawn_items
from dialometer.model.scale import Scale
from dialometer.quality.gold import gold_items
from dialometer.stats.observations import Floats

MOST_LABELS = 25
"""Values of a scale up to which answers are labels of a table; sliders and magnitudes are numbers."""
UNDECIDED = ("tie", "both_bad", "cannot_tell")
TIE = "tie"
MOST_CELLS, FEWEST_DRAWN = 20_000_000, 200
"""Things times raters (or cells of a table of labels) that are held; larger sets of things are sampled down."""


@dataclass(frozen=True, eq=False)
class Compared:
    """One criterion. ``people`` is things by raters, ``judges`` one array each; labels are places in ``labels``."""

    criterion: str
    label: str
    things: pl.DataFrame
    """``item``, ``system`` (empty for choices), ``turn``, ``pair`` (the systems shown, for choices); ``drawn``, the item or its
    prompt, is what intervals are over."""
    raters: tuple[str, ...]
    people: Floats
    judges: dict[str, Floats]
    labels: tuple[str, ...]
    """The labels that answers are places of; empty for numbers without a fixed list."""
    is_choice: bool
    is_number: bool
    """Whether answers have an order and distances."""
    n_in_common: int
    """Things that people and judges have both judged; where they are very many, ``things`` is a random sample of them."""

    @property
    def people_mean(self) -> Floats:
        """The mean of the raters of each thing (numbers)."""
        n = (~np.isnan(self.people)).sum(axis=1)
        return np.asarray(np.divide(np.nansum(self.people, axis=1), n, out=np.full(len(n), np.nan), where=n > 0))

    @property
    def majority(self) -> Floats:
        """The label of most raters; ``nan`` where two are equally frequent."""
        counts = self.counts
        most = counts.max(axis=1, initial=0)
        is_clear = (most > 0) & ((counts == most[:, None]).sum(axis=1) == 1)
        return np.where(is_clear, counts.argmax(axis=1) if counts.size else 0, np.nan)

    @property
    def counts(self) -> Floats:
        """How many raters gave each label, by thing."""
        return np.stack([(self.people == place).sum(axis=1) for place in range(len(self.labels))], axis=1).astype(float)

    @property
    def is_pairs(self) -> bool:
        """Whether every thing is a choice between two."""
        return self.is_choice and bool((self.things["pair"].str.count_matches("|", literal=True) == 1).all())

    def points(self, answers: Floats, system: str) -> Floats:
        """For choices: 1 where the system was chosen, 0 where another was, ½ without a decision; ``nan`` where it was not shown."""
        place = self.labels.index(system)
        undecided = [i for i, label in enumerate(self.labels) if label in UNDECIDED]
        shown = self.things["pair"].str.split("|").list.contains(system).to_numpy()
        shown = shown.reshape(-1, *[1] * (answers.ndim - 1))
        chosen = np.where(answers == place, 1.0, np.where(np.isin(answers, undecided), 0.5, 0.0))
        return np.where(np.isnan(answers) | ~shown, np.nan, chosen)

    def people_points(self, system: str) -> Floats:
        """The mean over raters of their points for a system."""
        each = self.points(self.people, system)
        n = (~np.isnan(each)).sum(axis=1)
        return np.asarray(np.divide(np.nansum(each, axis=1), n, out=np.full(len(n), np.nan), where=n > 0))


def compared_criteria(data: StudyData) -> Iterator[Compared]:
    """Every criterion on which people and at least one judge have judged a thing in common."""
    if data.by_models.is_empty() or data.judgments.is_empty():
        return
    gold = gold_items(data.study)
    people, models = (frame.filter(~pl.col("item").is_in(gold)) for frame in (data.judgments, data.by_models))
    for criterion in data.study.criteria_by_name:
        made = _compared(data, criterion, people.filter(pl.col("criterion") == criterion), models)
        if made is not None:
            yield made


def _compared(data: StudyData, criterion: str, people: pl.DataFrame, models: pl.DataFrame) -> Compared | None:
    models = models.filter(pl.col("criterion") == criterion)
    if people.is_empty() or models.is_empty():
        return None
    study = data.study
    scale = study.scale_for(study.criteria_by_name[criterion], study.spec.presentation)
    if scale.choice_form == "order" and scale.compares_responses:
        calls = data.calls.filter(
            (pl.col("criterion") == criterion) & pl.col("item").is_in(models["item"].unique().implode())
        )
        people, models = ranked_pairs(people), one_verdict_each(ranked_pairs(calls))
        if people.is_empty() or models.is_empty():
            return None
    is_choice = scale.compares_responses
    if scale.compares and not is_choice:
        return None
    is_number = scale.is_numeric and not is_choice
    both = [_answers(frame, is_choice=is_choice, is_number=is_number) for frame in (people, models)]
    labels = _labels(scale, both, is_choice=is_choice, is_number=is_number)
    key = ["item", "system", "turn", "pair"]
    things = both[0].select(key).unique(maintain_order=True).join(both[1].select(key).unique(), on=key, how="semi")
    if things.is_empty() or (not is_number and len(labels) < 2):
        return None
    n_in_common = len(things)
    raters = both[0].join(things, on=key)["rater"].unique().sort().to_list()
    n_most = max(FEWEST_DRAWN, MOST_CELLS // max(len(raters), len(labels) ** 2, 1))
    if n_in_common > n_most:
        things = things.sort(key).sample(n_most, seed=study.spec.seed)
        raters = both[0].join(things, on=key)["rater"].unique().sort().to_list()
    things = things.sort(key).with_row_index("thing")
    things = things.with_columns(drawn_items(study, things["item"]).alias("drawn"))
    place = {rater: i for i, rater in enumerate(raters)}

    def matrix(frame: pl.DataFrame, columns: dict[str, int]) -> Floats:
        values = np.full((len(things), len(columns)), np.nan)
        rows = frame.filter(pl.col("rater").is_in(list(columns))).join(things, on=key)
        row = rows["thing"].to_numpy()
        column = np.array([columns[rater] for rater in rows["rater"].to_list()], dtype=np.int64)
        values[row, column] = _coded(rows, labels, scale, is_number=is_number)
        return values

    judges = {
        str(judge): matrix(both[1], {str(judge): 0})[:, 0]
        for judge in both[1]["rater"].unique(maintain_order=True).to_list()
    }
    judges = {name: own for name, own in judges.items() if not np.isnan(own).all()}
    label = criterion_label(study, criterion)
    return Compared(
        criterion,
        label,
        things,
        tuple(raters),
        matrix(both[0], place),
        judges,
        labels,
        is_choice,
        is_number,
        n_in_common,
    )


def ranked_pairs(frame: pl.DataFrame) -> pl.DataFrame:
    """Rankings as choices between two: every pair of responses is a thing, and the one placed higher is chosen."""
    given = frame.select("answer", "order").drop_nulls().unique()
    pairs = [(answer, order, *pair) for answer, order in given.iter_rows() for pair in _pairs(answer, order)]
    schema = dict.fromkeys(("answer", "order", "_choice", "_order"), pl.String)
    joined = frame.join(pl.DataFrame(pairs, schema=schema, orient="row"), on=["answer", "order"], maintain_order="left")
    return joined.with_columns(choice="_choice", order="_order").drop("_choice", "_order")


def _pairs(answer: str, order: str) -> Iterator[tuple[str, str]]:
    """Of every two responses the one that is ranked higher, and both in the order in which they were shown."""
    ranked, shown = json.loads(answer), order.split("|")
    if isinstance(ranked, list) and set(ranked) == set(shown):
        for first, second in itertools.combinations(shown, 2):
            yield min(first, second, key=ranked.index), f"{first}|{second}"


def _answers(frame: pl.DataFrame, *, is_choice: bool, is_number: bool) -> pl.DataFrame:
    """One answer for each rater and thing: the mean of several numbers, the first of several labels."""
    pair = pl.col("order").fill_null("").str.split("|").list.sort().list.join("|")
    rows = frame.filter(pl.col("value" if is_number else "choice").is_not_null()).with_columns(
        (pair if is_choice else pl.lit("")).alias("pair"),
        (pl.lit("") if is_choice else pl.col("system").fill_null("")).alias("system"),
        pl.col("turn").fill_null(-1).cast(pl.Int32),
    )
    return rows.group_by("rater", "item", "system", "turn", "pair", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("choice").first(), pl.col("answered_at").min()
    )


def _labels(scale: Scale, both: list[pl.DataFrame], *, is_choice: bool, is_number: bool) -> tuple[str, ...]:
    if is_number:
        categories = [scale.number(value) for value in scale.categories() or ()]
        numbers = sorted(number for number in categories if number is not None)
        return tuple(f"{number:g}" for number in numbers) if 1 < len(numbers) <= MOST_LABELS else ()
    given = sorted(set().union(*(frame["choice"].unique().to_list() for frame in both)))
    if is_choice:
        shown = {
            name for frame in both for text in frame["pair"].unique().to_list() for name in text.split("|") if name
        }
        given = sorted(shown) + [name for name in given if name not in shown]
        given += [TIE] if TIE not in given else []
    return tuple(given)


def _coded(found: pl.DataFrame, labels: tuple[str, ...], scale: Scale, *, is_number: bool) -> Floats:
    """Labels as their places; numbers as they are, magnitudes as logarithms."""
    if is_number:
        values = found["value"].to_numpy()
        return np.log(np.where(values > 0, values, np.nan)) if scale.unit == "log" else values
    places = {label: float(i) for i, label in enumerate(labels)}
    return np.array([places[choice] for choice in found["choice"].to_list()])


def as_sides(compared: Compared, answers: Floats) -> Floats:
    """Choices between two as 0 and 1 for the two of the pair and 2 for neither.

    By the names of many systems, a judge who guesses would seem to agree beyond chance: each pair leaves two of them to choose.
    """
    place = {label: number for number, label in enumerate(compared.labels)}
    pairs = np.array([[place[name] for name in text.split("|")] for text in compared.things["pair"].to_list()])
    first, second = (pairs[:, side].reshape(-1, *[1] * (answers.ndim - 1)) for side in (0, 1))
    sides = np.where(answers == first, 0.0, np.where(answers == second, 1.0, 2.0))
    return np.where(np.isnan(answers), np.nan, sides)


def as_labels(compared: Compared, answers: Floats) -> Floats:
    """Answers as places of labels: numbers are taken to the nearest point of their scale."""
    if not compared.is_number:
        return answers
    points = np.array([float(label) for label in compared.labels])
    nearest = np.abs(np.nan_to_num(answers)[..., None] - points).argmin(axis=-1).astype(float)
    return np.where(np.isnan(answers), np.nan, nearest)
