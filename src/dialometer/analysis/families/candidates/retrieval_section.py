"""The retrieval metrics in tables and words: what they mean, what rests on unjudged answers, and where they mislead."""

from __future__ import annotations

import math

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, n_of, number, percent, sentence, with_interval
from dialometer.analysis.families.candidates.gold_loss import APPROVED_BY_RULE
from dialometer.analysis.families.candidates.retrieval import (
    COMPARED,
    CROWD,
    FIRST,
    JudgeScores,
    Retrieval,
    overlap_table,
    success_bounds,
)
from dialometer.analysis.shared.ranking import lead_words, pair_columns, pair_rows
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.retrieval.evaluation import CUTOFFS, full_name, is_recall, metric_names

DEFINITIONS = (
    ("Recall@k", "share of a question's right answers that are among the first k; mean over questions"),
    ("MRR", "one over the rank of the first right answer, 0 if none was retrieved; mean over questions"),
    ("MAP", "precision at the rank of each right answer, 0 for those not retrieved; mean over answers, then questions"),
    ("Success Rate@k", "share of questions with at least one right answer among the first k"),
)


def retrieval_section(
    name: str, retrieval: Retrieval, options: Options, has_gold_rule: bool, is_by_rule: bool
) -> Section:
    """Table 4 of the paper for each judge, the tests, and what unjudged answers could change."""
    parts: list[Table | Figure] = [_figure(name, retrieval)]
    for judged in retrieval.judged:
        parts += _tables(name, retrieval, judged, options)
    if len(retrieval.judged) > 1:
        parts.append(overlap_table(name, retrieval.pool, [judged.judge for judged in retrieval.judged]))
    crowd = next(judged for judged in retrieval.judged if judged.judge.name == "crowd")
    parts += [_bounds_table(name, retrieval, crowd, options), _definitions(name)]
    return Section(
        name,
        "Retrieval metrics: right for whom?",
        tuple(_words(retrieval, options, has_gold_rule, is_by_rule)),
        tuple(parts),
    )


def _words(retrieval: Retrieval, options: Options, has_gold_rule: bool, is_by_rule: bool) -> list[str]:
    two = (
        "An answer can be right for the person who recorded it (the maker) and for those who talk with the system (the "
        "crowd), and the two need not agree. "
    )
    paragraphs = [
        (two if len(retrieval.judged) > 1 else "")
        + " ".join(sentence(f"By {judged.judge.label}: {judged.judge.explained}") for judged in retrieval.judged)
    ]
    if len(retrieval.judged) == 1:
        paragraphs.append(
            "No candidate is marked as gold, so there are no metrics against the maker's labels; mark the maker's own "
            "answers with is_gold in the item file."
        )
    for judged in retrieval.judged:
        if judged.lead is None:
            paragraphs.append(f"By {judged.judge.label}: no question has a right answer, so nothing can be measured.")
            continue
        best = judged.answerable(judged.lead.best, FIRST)
        verb = "share the first place" if judged.lead.shared else "comes first"
        paragraphs.append(
            f"By {judged.judge.label}, {listed(judged.lead.first)} {verb} with a Success Rate@1 of "
            f"{with_interval(best, is_percent=True)}. {lead_words(judged.lead, judged.pairs[FIRST], options.correction)}"
        )
    if [judged.judge.name for judged in retrieval.judged] == ["maker", "crowd"]:
        paragraphs.append(
            "Everything that the maker calls right is right for the crowd too, so both sets of labels together are the crowd's."
            + (f" {APPROVED_BY_RULE}" if is_by_rule else "")
        )
    return [*paragraphs, *_crowd_words(retrieval, has_gold_rule), _misleading(retrieval)]


def _crowd_words(retrieval: Retrieval, has_gold_rule: bool) -> list[str]:
    """The crowd as a retriever: informative against the maker's labels, trivial against its own."""
    maker = next((judged for judged in retrieval.judged if judged.judge.name == "maker"), None)
    own = "Against the crowd's own labels it is right by construction wherever a right answer exists."
    if maker is None:
        return []
    crowd = maker.answerable(CROWD, FIRST)
    kept = " Since raters who reject gold answers were excluded, this is more than an unselected crowd would reach."
    return [
        f"The crowd itself can be taken as a retriever that puts the candidates of a question in the order of their mean "
        f"rating. Its favourite is one of the maker's answers for {with_interval(crowd, is_percent=True)} of questions; "
        f"it chooses only among the pooled candidates.{kept if has_gold_rule else ''} {own}"
    ]


def _misleading(retrieval: Retrieval) -> str:
    """Why MRR, MAP and recall mislead for a system that gives one answer, with what shows it in these data."""
    text = (
        "A system that speaks gives one answer, so Success Rate@1 is what its user experiences. MRR gives credit for right answers "
        "further down that nobody would hear, and grows with the length of a list, since a list of everything always "
        "holds a right answer somewhere. Recall and MAP shrink when more answers are called right: "
    )
    limits = [
        f"against {judged.judge.label} an answerable question has {number(judged.n_right, 1)} right answers on average, and "
        f"Recall@1 could not exceed {percent(judged.most_recall_at_1)}"
        for judged in retrieval.judged
        if not math.isnan(judged.n_right) and judged.judge.name != "both"
    ]
    text += (
        f"{'; '.join(limits)}. Do not compare them between judges." if limits else "compare them within one judge only."
    )
    for judged in retrieval.judged:
        by_other: dict[str, list[str]] = {}
        for metric in COMPARED[1:]:
            best = _best(retrieval, judged, metric)
            if best and judged.lead is not None and best not in judged.lead.first:
                by_other.setdefault(best, []).append(metric)
        if by_other and judged.lead is not None:
            other = listed(f"{listed(metrics)} would put {best} first" for best, metrics in by_other.items())
            text += f" Here, by {judged.judge.label}, {other}; Success Rate@1 puts {listed(judged.lead.first)} first."
    return text


def _best(retrieval: Retrieval, judged: JudgeScores, metric: str) -> str:
    known = [s for s in retrieval.systems if judged.answerable(s, metric).is_known]
    return max(known, key=lambda system: judged.answerable(system, metric).value) if known else ""


def _tables(name: str, retrieval: Retrieval, judged: JudgeScores, options: Options) -> list[Table]:
    own = f"{name}_{judged.judge.label.removeprefix('the ')}"
    labels = [ranking.label for ranking in retrieval.lists]
    columns = (Column("measure", "Metric"), *(_column(k, label) for k, label in enumerate(labels)))
    n_all = int(judged.judge.has_judged.sum())
    n_with = n_all - judged.n_unanswerable
    shown = [m for m in metric_names() if any(judged.answerable(s, m).is_known for s in retrieval.systems)]
    notes = _lost_rows(shown)
    n_silent = len(judged.judge.has_judged) - n_all
    if n_silent:
        notes = (*notes, f"{n_of(n_silent, 'question')} without any rated candidate excluded.")
    if judged.judge.name == "maker":
        notes = (*notes, "Right answers that the maker knows of but that are not in the pool are not counted.")
    title = f"Judged by {judged.judge.label}: {n_of(n_with, 'question')} with a right answer"
    tables = [
        Table(
            own,
            title,
            columns,
            tuple((full_name(m), *(judged.answerable(s, m) for s in labels)) for m in shown),
            caption=f"{sentence(judged.judge.explained)} What a list does not hold, as far as it is known, counts as not "
            "retrieved. Confidence intervals: Wilson for shares of questions, else a bootstrap over questions.",
            notes=notes,
        )
    ]
    if judged.n_unanswerable:
        rows = [m for m in shown if not is_recall(m)]
        without = n_of(judged.n_unanswerable, "question")
        tables.append(
            Table(
                f"{own}_all",
                f"Judged by {judged.judge.label}: all {n_all:,} questions",
                columns,
                tuple((full_name(m), *(judged.scores[s].everything[m] for s in labels)) for m in rows),
                caption=f"{without} without a right answer in the pool count as failures, as in the published study. "
                "Recall has no value there.",
            )
        )
    tables.append(_pairs_table(own, judged, options))
    return tables


def _column(number_: int, label: str) -> Column:
    return Column("crowd" if label == CROWD else f"system_{number_ + 1}", label, "percent_estimate", 1)


def _lost_rows(shown: list[str]) -> tuple[str, ...]:
    lost = [full_name(name) for name in metric_names() if name not in shown]
    if not lost:
        return ()
    verb = "is" if len(lost) == 1 else "are"
    return (f"{listed(lost)} {verb} not known: no system's list is known that far, or no question has a right answer.",)


def _pairs_table(name: str, judged: JudgeScores, options: Options) -> Table:
    columns = (
        Column("measure", "Metric"),
        *pair_columns(options.correction, value="Difference", kind="percent_estimate"),
    )
    rows: list[tuple[Cell, ...]] = []
    for metric in COMPARED:
        rows += [(full_name(metric), *row) for row in pair_rows(judged.pairs[metric], options.correction)]
    return Table(
        f"{name}_pairs",
        f"Systems compared, judged by {judged.judge.label}",
        columns,
        tuple(rows),
        caption="Question by question, on questions with a right answer; n counts questions. Paired permutation tests, "
        "corrected within each metric; confidence intervals hold the values that the test of this pair alone does not reject. "
        "Counting the other questions as failures adds zeros and leaves p as it is.",
    )


def _bounds_table(name: str, retrieval: Retrieval, crowd: JudgeScores, options: Options) -> Table:
    bounds = success_bounds(retrieval, crowd.judge, options)
    return Table(
        f"{name}_unjudged",
        "What unjudged answers could change",
        (
            Column("system", "System"),
            Column("k", "k", "count"),
            Column("whole", "Questions with the first k all judged", "percent_estimate"),
            Column("least", "Success Rate@k, unjudged taken as wrong", "percent_estimate"),
            Column("most", "Success Rate@k, unjudged taken as right", "percent_estimate"),
        ),
        tuple((bound.system, bound.k, bound.whole, bound.least, bound.most) for bound in bounds),
        caption="Judged by the crowd, all questions. Only pooled candidates were rated; an answer outside the pool, or "
        "without a rating so far, counts as wrong in the tables above. The truth lies between the last two columns.",
    )


def _definitions(name: str) -> Table:
    return Table(
        f"{name}_definitions",
        "What the metrics mean",
        (Column("measure", "Metric"), Column("definition", "Definition")),
        DEFINITIONS,
    )


def _figure(name: str, retrieval: Retrieval) -> Figure:
    dots = []
    for judged in retrieval.judged:
        for label in retrieval.systems:
            for k in CUTOFFS:
                estimate = judged.answerable(label, f"SR@{k}")
                if estimate.is_known:
                    dots.append(
                        Dot(label, estimate, f"first {k}" if k > 1 else "first answer", f"by {judged.judge.label}")
                    )
    at_1 = "; ".join(
        f"{dot.label} {dot.facet} {percent(dot.estimate.value)}" for dot in dots if dot.group == "first answer"
    )
    return Figure(
        f"{name}_figure",
        "Success Rate@k: questions with a right answer among the first k",
        dot_interval(dots, value_title="share of questions", group_title="", domain=(0, 1), is_percent=True),
        alt=f"Success Rate at 1, 2 and 10 by system and judge. At 1: {at_1}.",
        caption="Only questions that have a right answer count.",
    )
