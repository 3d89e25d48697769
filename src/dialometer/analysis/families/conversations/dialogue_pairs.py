"""Experts who compared pairs of dialogues: how far they agree, the labels they give, and what users' own ratings say of them.

The report of a study that `dialometer learn pairs` wrote (Liang, Zou and Yu, ACL 2020, section 3.3 and Table 2). It compares
dialogues, not systems, so nothing is ranked.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.wording import criterion_label, n_of, percent, value_only, with_interval
from dialometer.analysis.families.conversations.experts import (
    ExpertPair,
    GapTable,
    disagreement_by_gap,
    gap_figure,
    gap_table,
)
from dialometer.errors import NotEnoughData
from dialometer.exchange.dialogue_pairs import (
    LabelledPair,
    PairVerdict,
    dialogue_ids,
    is_about_dialogues,
    labelled_pairs,
    pair_verdicts,
)
from dialometer.model.estimate import Estimate
from dialometer.model.item import PairItem
from dialometer.model.report import Cell, Column, Headline, Method, Section, Table
from dialometer.model.study import Study
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha

PAPER = "Liang, Zou and Yu 2020"
LABELS = ("first", "second", "cannot_tell")
MOST_COUPLES = 15
"""Couples of raters that get a kappa of their own; of more, alpha says enough."""


class DialoguePairs(Family):
    """Pairs of dialogues compared by experts."""

    rank = 15

    def fits(self, study: Study) -> bool:
        """Studies that compare dialogues."""
        return is_about_dialogues(study)

    def run(self, data: StudyData, options: Options) -> Findings:
        """Agreement first, then the labels, then the users' ratings beside them."""
        verdicts = pair_verdicts(data.study, data.judgments)
        if not verdicts:
            raise NotEnoughData("no pair of dialogues has been judged yet", remedy="collect judgments first")
        criterion = data.study.spec.criteria[0].name
        asked = [verdict for verdict in verdicts if verdict.criterion == criterion]
        pairs = [pair for pair in labelled_pairs(data.study, data.judgments) if pair.criterion == criterion]
        alpha = alpha_of(asked, options)
        decided = Counter(pair.better for pair in pairs)
        n_decided = decided["first"] + decided["second"]
        n_raters = len({verdict.rater for verdict in asked})
        if alpha is not None and alpha.is_known:
            answer = (
                f"{n_of(n_raters, 'rater')} agree with alpha = {value_only(alpha)} on which of two dialogues is better."
            )
        else:
            answer = f"{n_of(len(pairs), 'pair')} of dialogues have been judged; agreement needs two raters on the same pair."
        certainty = f"{n_decided:,} of {n_of(len(pairs), 'pair')} have a label; on the others raters were divided or could not tell."
        sections = [section_or_problem("agreement", "Agreement of the raters", lambda: _agreement(asked, options))]
        sections.append(_labels(pairs))
        ratings = user_ratings(data.study)
        if ratings:
            sections.append(
                section_or_problem(
                    "ratings", "Users' own ratings beside the labels", lambda: _beside(pairs, ratings, options)
                )
            )
        for other in data.study.spec.criteria[1:]:
            more = [verdict for verdict in verdicts if verdict.criterion == other.name]
            title = f"Agreement: {criterion_label(data.study, other.name)}"
            if more:
                build = partial(_agreement, more, options, f"agreement_{other.name}", title)
                sections.append(section_or_problem(f"agreement_{other.name}", title, build))
        headlines = () if alpha is None else (Headline("Krippendorff's alpha", alpha, certainty),)
        return Findings(answer, certainty, headlines, sections=tuple(sections), methods=_methods())


ANALYSES.register("dialogue_pairs")(DialoguePairs())


def user_ratings(study: Study) -> dict[str, float]:
    """The users' ratings of the dialogues, where the items' metadata hold them."""
    ratings: dict[str, float] = {}
    for item in study.rated_items:
        if isinstance(item, PairItem) and {"first", "second", "first_rating", "second_rating"} <= set(item.metadata):
            first, second = dialogue_ids(item)
            ratings |= {first: float(item.metadata["first_rating"]), second: float(item.metadata["second_rating"])}
    return ratings


def verdict_matrix(verdicts: Sequence[PairVerdict]) -> tuple[np.ndarray, list[str]]:
    """Pairs by raters: 0 first, 1 second, 2 cannot tell, nan where a rater did not judge the pair."""
    items = list(dict.fromkeys(verdict.item for verdict in verdicts))
    raters = sorted({verdict.rater for verdict in verdicts})
    row, column = ({name: k for k, name in enumerate(names)} for names in (items, raters))
    matrix = np.full((len(items), len(raters)), np.nan)
    for verdict in verdicts:
        matrix[row[verdict.item], column[verdict.rater]] = LABELS.index(verdict.verdict)
    return matrix, raters


def alpha_of(verdicts: Sequence[PairVerdict], options: Options, *, with_cannot_tell: bool = True) -> Estimate | None:
    """Krippendorff's alpha of all raters; None where no pair was judged by two."""
    matrix, _ = verdict_matrix(verdicts)
    if not with_cannot_tell:
        matrix = np.where(matrix == LABELS.index("cannot_tell"), np.nan, matrix)
    if not len(matrix) or (~np.isnan(matrix)).sum(axis=1).max() < 2:
        return None
    return krippendorff_alpha(matrix, "nominal", seed=options.seed, confidence=options.confidence)


def _agreement(
    verdicts: Sequence[PairVerdict], options: Options, name: str = "agreement", title: str = "Agreement of the raters"
) -> Section:
    matrix, raters = verdict_matrix(verdicts)
    rows: list[tuple[Cell, ...]] = []
    decided = np.where(matrix == LABELS.index("cannot_tell"), np.nan, matrix)
    for what, table, labels in (("all answers", matrix, LABELS), ("without “cannot tell”", decided, LABELS[:2])):
        alpha = alpha_of(verdicts, options, with_cannot_tell=what == "all answers")
        if alpha is not None and alpha.is_known:
            rows.append(("all raters", what, "Krippendorff's alpha", alpha, "", alpha.n))
        couples = list(itertools.combinations(range(len(raters)), 2))
        for a, b in couples if len(couples) <= MOST_COUPLES else ():
            both = ~np.isnan(table[:, a]) & ~np.isnan(table[:, b])
            if both.sum() < 2:
                continue
            kappa = cohen_kappa(table[both, a], table[both, b], range(len(labels)), confidence=options.confidence)
            same = float(np.mean(table[both, a] == table[both, b]))
            rows.append(
                (
                    f"{raters[a]} and {raters[b]}",
                    what,
                    "Cohen's kappa",
                    kappa if kappa.is_known else None,
                    same,
                    int(both.sum()),
                )
            )
    if not rows:
        raise NotEnoughData("no pair was judged by two raters", remedy="let at least two raters judge the same pairs")
    columns = (
        Column("raters", "Raters"),
        Column("answers", "Answers"),
        Column("coefficient", "Coefficient"),
        Column("agreement", "Agreement", "estimate"),
        Column("same", "Same answer", "percent"),
        Column("n", "Pairs", "count"),
    )
    words = (
        "A coefficient of 1 is full agreement, 0 what chance gives. The published experts reached a kappa of 0.83 "
        f"({PAPER}).",
    )
    return Section(name, title, words, (Table(name, title, columns, tuple(rows)),))


def _labels(pairs: Sequence[LabelledPair]) -> Section:
    counts = Counter(pair.better for pair in pairs)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (p.item, p.first, p.second, p.better, p.n_first, p.n_second, p.n_cannot_tell) for p in pairs
    )
    columns = (
        Column("item", "Pair"),
        Column("first", "First dialogue"),
        Column("second", "Second dialogue"),
        Column("better", "Label"),
        Column("n_first", "For the first", "count"),
        Column("n_second", "For the second", "count"),
        Column("n_cannot_tell", "Cannot tell", "count"),
    )
    words = (
        f"By majority, the first dialogue is better in {n_of(counts['first'], 'pair')}, the second in {counts['second']:,}; "
        f"{counts['cannot_tell']:,} have no label, because raters were divided or could not tell, and are not used for "
        "training or testing. The export writes this table as “pairs”, which the --pairs option of dialometer learn reads.",
    )
    table = Table("labels", "Labels by majority", columns, rows)
    return Section("labels", "Labels", words, (table,))


def _beside(pairs: Sequence[LabelledPair], ratings: dict[str, float], options: Options) -> Section:
    experts = [ExpertPair(pair.first, pair.second, pair.better) for pair in pairs]
    by_gap = disagreement_by_gap(ratings, experts, **options.resampling)
    words = [_beside_words(by_gap)]
    tables = (gap_table("ratings", {"Users' ratings": by_gap}),)
    figures = (gap_figure("ratings", "Users' ratings", by_gap),) if by_gap.gaps else ()
    return Section("ratings", "Users' own ratings beside the labels", tuple(words), (*figures, *tables))


def _beside_words(by_gap: GapTable) -> str:
    if not by_gap.overall.is_known:
        return "No pair has a label and two different ratings."
    share = with_interval(by_gap.overall, is_percent=True)
    text = f"Raters and users' ratings disagree on {share} of {n_of(by_gap.overall.n, 'pair')} with different ratings."
    if by_gap.trend.is_known and not math.isnan(by_gap.trend.value):
        per_point = percent(abs(by_gap.trend.value))
        direction = "falls" if by_gap.trend.value < 0 else "rises"
        text += f" Disagreement {direction} by {per_point.replace('%', ' percentage points')} for each further point of difference."
    return f"{text} Published: 45% at one point, 38% at two, 22% at three, 16% at four ({PAPER}, Table 2)."


def _methods() -> tuple[Method, ...]:
    return (
        Method(
            "agreement",
            "Krippendorff's alpha (nominal), Cohen's kappa of two raters",
            "with and without “cannot tell”",
            "Krippendorff 2018; Cohen 1960",
        ),
        Method(
            "label of a pair",
            "majority of those who chose one of the two",
            "pairs without a majority are excluded",
            PAPER,
        ),
        Method(
            "disagreement with users' ratings",
            "share with Wilson's interval, Cochran-Armitage trend",
            "by the difference of the two ratings",
            PAPER,
        ),
    )
