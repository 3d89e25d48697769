"""Who the raters were and what they said in the questionnaires: shares, means, rankings. In every report that has any."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.wording import excludes, listed, n_of, p_words, percent, with_interval
from dialometer.design.ready_questions import SATISFACTION
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import OWN_WORDS, Cell, Column, Figure, Method, Section, Table
from dialometer.model.scale import Scale
from dialometer.model.study import Question, Study
from dialometer.model.values import Value
from dialometer.report.charts import Dot, Share, dot_interval, stacked_shares
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.clustered.preference import binomial_test
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.ranks import kendalls_w, mean_ranks
from dialometer.stats.observations import Floats

TITLE = "Questionnaires"
MOST_OTHERS = 8


class Questionnaires(Family):
    """The family for what raters said about themselves and the study."""

    rank = 800

    def fits(self, study: Study) -> bool:
        """Any question asked before or after."""
        return bool(study.spec.pre_questionnaire or study.spec.post_questionnaire)

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section per kind of question."""
        sections = [section_or_problem("people", "Who took part", lambda: people_section(data, options))]
        for question in _questions(data.study):
            if _scale(data.study, question).choice_form == "order":
                sections.append(_ranking(data, question, options))
        methods = METHODS if len(sections) > 1 else METHODS[:1]
        return Findings(
            "There is no analysis for this design yet.", "", sections=in_appendix(sections), methods=methods
        )


METHODS = (
    Method(
        "Shares of answers", "proportion with Wilson's interval", "every rater answers a question once", "Wilson 1927"
    ),
    Method(
        "Rankings by raters",
        "mean rank with Student's t interval, Kendall's W with Friedman's chi-square",
        "ranks give an order only; W shows how far raters agree on it",
        "Kendall & Babington Smith 1939",
    ),
)


def _questions(study: Study) -> list[Question]:
    return [*study.spec.pre_questionnaire, *study.spec.post_questionnaire]


def _scale(study: Study, question: Question) -> Scale:
    return study.spec.scales[question.scale]


def _answers(data: StudyData, question: Question) -> list[Value]:
    """Answers of raters whose judgments count, as they were stored."""
    used = data.used_sessions()["rater"]
    rows = data.answers.filter((pl.col("question") == question.name) & pl.col("rater").is_in(used.implode()))
    return [json.loads(text) for text in rows["answer"].to_list()]


def people_section(data: StudyData, options: Options) -> Section:
    """Every question with options or numbers; free texts are only counted, because they may name people."""
    shares: list[tuple[Cell, ...]] = []
    numbers: list[tuple[Cell, ...]] = []
    paragraphs: list[str] = []
    for question in _questions(data.study):
        answers = [answer for answer in _answers(data, question) if answer not in (None, "", [])]
        scale = _scale(data.study, question)
        if scale.is_numeric:
            numbers.append(_number_row(question, scale, answers, options))
            if question.name == SATISFACTION:
                paragraphs += _satisfaction(scale, answers, options)
        elif not scale.compares and scale.option_names():
            shares += _share_rows(data.study, question, answers, options)
            paragraphs += _two_way(data.study, question, answers, options)
        elif not scale.compares:
            who = n_of(len(answers), "rater") if answers else "No rater"
            paragraphs.append(f"{who} answered “{question.text}”{' (see the export)' if answers else ''}.")
    parts = [*_share_table(shares), *_number_table(numbers)]
    if not parts and not paragraphs:
        raise NotEnoughData("no answers to the questionnaires yet", remedy="they come with finished sessions")
    return Section("people", "Who took part", tuple(paragraphs), tuple(parts))


def _share_rows(
    study: Study, question: Question, answers: Sequence[object], options: Options
) -> list[tuple[Cell, ...]]:
    known = _scale(study, question).option_names()
    given = [set(map(str, answer)) if isinstance(answer, list) else {str(answer)} for answer in answers]
    others = sorted({option for chosen in given for option in chosen} - set(known))
    rows: list[tuple[Cell, ...]] = []
    for option in known:
        n = sum(option in chosen for chosen in given)
        share = proportion(n, len(given), confidence=options.confidence) if given else None
        rows.append((question.text, option, n, share))
    if others:
        n = sum(bool(chosen & set(others)) for chosen in given)
        named = listed(others, most=MOST_OTHERS)
        rows.append(
            (question.text, f"{OWN_WORDS}: {named}", n, proportion(n, len(given), confidence=options.confidence))
        )
    return rows


def _two_way(study: Study, question: Question, answers: Sequence[object], options: Options) -> list[str]:
    """A question with two options about a preference deserves a test: which do raters prefer?"""
    known = _scale(study, question).option_names()
    if len(known) != 2 or question not in study.spec.post_questionnaire or len(answers) < 2:
        return []
    counts = [sum(answer == option for answer in answers) for option in known]
    tested = binomial_test(counts[0], sum(counts))
    first, second = (0, 1) if counts[0] >= counts[1] else (1, 0)
    counted = f"“{known[first]}” ({counts[first]} raters) over “{known[second]}” ({counts[second]})"
    verdict = "" if tested.p_value < 1 - options.confidence else "; not significant"
    share = percent(counts[first] / sum(counts))
    return [f"{question.text} {share} chose {counted}, exact binomial {p_words(tested.p_value)}{verdict}."]


def _number_row(question: Question, scale: Scale, answers: Sequence[Value], options: Options) -> tuple[Cell, ...]:
    values = np.array([scale.number(answer) for answer in answers], dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return (question.text, 0, None, None, None, None)
    mean = bootstrap_mean(values, **options.resampling)
    return (question.text, len(values), mean, float(np.median(values)), float(values.min()), float(values.max()))


def _satisfaction(scale: Scale, answers: Sequence[Value], options: Options) -> list[str]:
    """How satisfied raters were with the study itself, as crowd platforms report it of contributors."""
    values = np.array([scale.number(answer) for answer in answers], dtype=np.float64)
    if not len(values):
        return []
    (low, high), mean = scale.bounds(), bootstrap_mean(values, **options.resampling)
    n_satisfied = int(np.sum(values > (low + high) / 2))
    return [
        f"Raters rated their satisfaction with the study {with_interval(mean)} of {high:g} on average; "
        f"{percent(n_satisfied / len(values))} of {n_of(len(values), 'rater')} were satisfied."
    ]


def _share_table(rows: list[tuple[Cell, ...]]) -> list[Table]:
    if not rows:
        return []
    columns = (
        Column("question", "Question"),
        Column("answer", "Answer"),
        Column("raters", "Raters", "count"),
        Column("share", "Share", "percent_estimate"),
    )
    seen: set[object] = set()
    body: list[tuple[Cell, ...]] = []
    for row in rows:
        body.append(("" if row[0] in seen else row[0], *row[1:]))
        seen.add(row[0])
    return [Table("answers", "Answers to the questionnaires", columns, tuple(body))]


def _number_table(rows: list[tuple[Cell, ...]]) -> list[Table]:
    if not rows:
        return []
    columns = (
        Column("question", "Question"),
        Column("raters", "Raters", "count"),
        Column("mean", "Mean", "estimate"),
        Column("median", "Median", "number", 1),
        Column("lowest", "Lowest", "number", 1),
        Column("highest", "Highest", "number", 1),
    )
    return [Table("answers_in_numbers", "Answers in numbers", columns, tuple(rows))]


def _ranking(data: StudyData, question: Question, options: Options) -> Section:
    title = f"Ranking: {question.name.replace('_', ' ')}"
    return section_or_problem(
        f"ranking_{question.name}", title, lambda: ranking_section(data, question, title, options)
    )


def ranking_section(data: StudyData, question: Question, title: str, options: Options) -> Section:
    """Mean ranks and shares of importance with intervals, how often each rank was given, and Kendall's W."""
    objects = _scale(data.study, question).option_names()
    orders = [answer for answer in _answers(data, question) if isinstance(answer, list)]
    ranks = np.array(
        [[order.index(name) + 1 if name in order else np.nan for name in objects] for order in orders], dtype=np.float64
    )
    if not objects or not len(ranks):
        raise NotEnoughData(f"no rankings for '{question.name}' yet", remedy="they come with finished sessions")
    means = mean_ranks(ranks, objects, confidence=options.confidence)
    agreement = kendalls_w(ranks, **options.resampling)
    best_first = sorted(objects, key=lambda name: means[name].value)
    columns = {name: ranks[:, objects.index(name)] for name in best_first}
    parts = (
        _importance_figure(question, means, best_first),
        _ranks_figure(question, columns),
        _ranking_table(question, means, columns, options),
    )
    sentence = _ranking_sentence(best_first, means, agreement)
    return Section(f"ranking_{question.name}", title, (sentence,), parts)


def importance(mean_rank: Estimate, n_objects: int) -> Estimate:
    """A mean rank as a share of importance: of k objects the first gets k points, the last one; shares add up to 1."""

    def share(rank: float) -> float:
        return (n_objects + 1 - rank) / (n_objects * (n_objects + 1) / 2)

    return replace(
        mean_rank,
        value=share(mean_rank.value),
        low=share(mean_rank.high),
        high=share(mean_rank.low),
        method="share of rank points",
    )


def _importance_figure(question: Question, means: dict[str, Estimate], order: list[str]) -> Figure:
    shares = {name: importance(means[name], len(means)) for name in order}
    listed_shares = "; ".join(f"{name} {percent(share.value)}" for name, share in shares.items())
    return Figure(
        f"importance_{question.name}",
        "Importance in percent",
        dot_interval([Dot(name, shares[name]) for name in order], value_title="share of importance", is_percent=True),
        caption=f"Of {len(order)}, the first in a rater's order gets {len(order)} points and the last gets 1; importance is the "
        "share of all points. Equal importance would be "
        f"{percent(1 / len(order))}, and more than {percent(2 / (len(order) + 1))} is not possible.",
        alt=f"Share of importance with its confidence interval: {listed_shares}.",
    )


def _ranks_figure(question: Question, columns: dict[str, Floats]) -> Figure:
    n_objects = len(columns)
    words = [f"rank {rank}" for rank in range(1, n_objects + 1)]
    shares = []
    for name, column in columns.items():
        known = column[~np.isnan(column)]
        shares += [
            Share(name, word, float(np.mean(known == rank)) if len(known) else 0.0)
            for rank, word in enumerate(words, start=1)
        ]
    firsts = "; ".join(
        f"{name} {percent(share.share)}" for name, share in zip(columns, shares[::n_objects], strict=True)
    )
    return Figure(
        f"ranks_{question.name}",
        "Ranks that raters gave",
        stacked_shares(shares, parts=words, part_title="Rank", value_title="raters", is_ordered=True),
        alt=f"Share of raters who gave each rank; ranked first: {firsts}.",
    )


def _ranking_table(
    question: Question, means: dict[str, Estimate], columns: dict[str, Floats], options: Options
) -> Table:
    n_objects = len(columns)
    body: list[tuple[Cell, ...]] = []
    for name, column in columns.items():
        known = column[~np.isnan(column)]
        ends = [
            proportion(int(np.sum(known == rank)), len(known), confidence=options.confidence) if len(known) else None
            for rank in (1, n_objects)
        ]
        body.append((name, means[name], importance(means[name], n_objects), *ends))
    return Table(
        f"ranking_{question.name}",
        question.text,
        (
            Column("what", "What"),
            Column("mean_rank", "Mean rank", "estimate"),
            Column("importance", "Importance", "percent_estimate"),
            Column("first", "Ranked first", "percent_estimate"),
            Column("last", "Ranked last", "percent_estimate"),
        ),
        tuple(body),
        caption=f"Rank 1 is the first of {n_objects}. Importance is the share of rank points.",
    )


def _ranking_sentence(order: list[str], means: dict[str, Estimate], agreement: Estimate) -> str:
    text = f"On average raters put {listed(order)} in this order."
    if not agreement.is_known:
        return f"{text} How far they agree is not known: {agreement.notes[0]}."
    if agreement.p_value >= 0.05 or not excludes(agreement):
        verdict = "agreement of raters on an order is not significant"
    else:
        strength = "weakly" if agreement.value < 0.3 else "moderately" if agreement.value < 0.6 else "strongly"
        verdict = f"raters agree {strength} on it"
    test = f"Kendall's W {with_interval(agreement)}, {p_words(agreement.p_value)}"
    return f"{text} {n_of(means[order[0]].n, 'rater')} ranked them; {verdict}: {test}."


ANALYSES.register("questionnaires")(Questionnaires())
