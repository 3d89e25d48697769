"""Tables of ``dialometer retrieval`` in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dialometer.model.estimate import Estimate
    from dialometer.retrieval.evaluation import Evaluation
    from dialometer.retrieval.failed_questions import FailedQuestion
    from dialometer.retrieval.queries import Query
    from dialometer.retrieval.questions.question_groups import GroupScores
    from dialometer.retrieval.retriever import ExplainedAnswer
    from dialometer.retrieval.threshold import Calibration


FEW_DIALOGUES = 20
N_FAILED_SHOWN = 5
N_CHARACTERS = 120


def show_evaluation(evaluation: Evaluation, labels: Mapping[str, str], by_group: Sequence[GroupScores] = ()) -> None:
    """Metrics by judge, on answerable and on all questions, then who differs from whom, then what it all means."""
    from dialometer.cli.console import results
    from dialometer.report.numbers import write_confidence
    from dialometer.retrieval.evaluation import DEFINITIONS, MISLEADING

    how = evaluation.resampling
    dialogues = f"{evaluation.n_dialogues} dialogue{'' if evaluation.n_dialogues == 1 else 's'}"
    results.print(
        f"{evaluation.n_questions} questions from {dialogues}. Values in percent; below each the "
        f"{write_confidence(how.confidence)} confidence interval: bootstrap over {how.by} ({how.n_resamples} resamples, seed "
        f"{how.seed}), Wilson where all questions agree.",
        soft_wrap=True,
    )
    for judge in evaluation.judges:
        n_judged = int(judge.has_judged.sum())
        n_without = n_judged - judge.n_answerable
        results.print(f"\n[bold]{judge.label}[/]: {judge.explained}", soft_wrap=True)
        results.print(f"[dim]Answerable: {judge.n_answerable} questions with a right answer[/]")
        _metrics(evaluation, judge.name, labels, is_all=False)
        if n_without:
            counted = "counts as a failure" if n_without == 1 else "count as failures"
            results.print(f"[dim]All: {n_judged} judged questions; {n_without} without a right answer {counted}[/]")
            _metrics(evaluation, judge.name, labels, is_all=True)
        _differences(evaluation, judge.name, labels)
        _groups(evaluation, [scores for scores in by_group if scores.judge == judge.name], labels)
    _rated(evaluation, labels)
    if how.by == "dialogues" and evaluation.n_dialogues < FEW_DIALOGUES:
        results.print(
            f"\n[yellow]•[/] {evaluation.n_dialogues} dialogues are few to draw from: intervals come out too narrow."
        )
    results.print("\n[bold]Definitions[/]")
    for name, text in DEFINITIONS.items():
        results.print(f"  {name:<5} {text}", soft_wrap=True)
    results.print(f"\n[bold]Where metrics mislead.[/] {MISLEADING}", soft_wrap=True)


def show_failed(failed: Mapping[str, Sequence[FailedQuestion]], labels: Mapping[str, str], file: Path | None) -> None:
    """The first questions that the best retriever got wrong; the file has them all."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    best = min(failed, key=lambda name: len(failed[name]), default="")
    questions = failed.get(best, ())
    if not questions:
        return
    shown = questions[:N_FAILED_SHOWN]
    many = f"{len(questions):,} question{'' if len(questions) == 1 else 's'}"
    first = f" (the first {len(shown)})" if len(questions) > len(shown) else ""
    results.print(f"\n[bold]Failed at rank 1[/] with {escape(labels.get(best, best))}: {many}{first}")
    table = Table(box=None, pad_edge=False)
    for title in ("question", "expected", "answered"):
        table.add_column(title, overflow="fold", ratio=1)
    for question in shown:
        table.add_row(*(escape(_cut(text)) for text in (question.question, question.expected, question.answered)))
    results.print(table)
    if file is None:
        results.print("--failed FILE writes them all, for every retriever.")
    else:
        results.print(f"All of them, for every retriever: [bold]{escape(str(file))}[/]")


def _cut(text: str) -> str:
    return text if len(text) <= N_CHARACTERS else f"{text[: N_CHARACTERS - 1]}…"


def _rated(evaluation: Evaluation, labels: Mapping[str, str]) -> None:
    """How far the crowd's verdict on each retriever is complete: answers that nobody rated count as wrong."""
    from rich.table import Table

    from dialometer.cli.console import results

    if not evaluation.rated:
        return
    cuts = list(next(iter(evaluation.rated.values())))
    table = Table("Rated by the crowd", *(f"first {k}" for k in cuts), box=None, pad_edge=False, header_style="dim")
    for name, shares in evaluation.rated.items():
        table.add_row(labels.get(name, name), *(f"{100 * share:.0f}%" for share in shares.values()))
    results.print()
    results.print(table)
    if any(share < 1 for shares in evaluation.rated.values() for share in shares.values()):
        results.print("[dim]Answers that nobody rated count as wrong: retrievers that were not pooled look worse.[/]")


def _metrics(evaluation: Evaluation, judge: str, labels: Mapping[str, str], *, is_all: bool) -> None:
    from rich.table import Table

    from dialometer.cli.console import results

    shown = [name for name in evaluation.metrics if not (is_all and name.startswith("R@"))]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for name in evaluation.retrievers():
        scores = evaluation.of(name, judge)
        values = scores.everything if is_all else scores.answerable
        table.add_row(labels.get(name, name), *(_percent(values[metric]) for metric in shown))
        table.add_row("", *(f"[dim]{_interval(values[metric])}[/]" for metric in shown))
    results.print(table)


def _groups(evaluation: Evaluation, by_group: Sequence[GroupScores], labels: Mapping[str, str]) -> None:
    """Metrics on groups of answerable questions, retriever by retriever."""
    from rich.table import Table

    from dialometer.cli.console import results

    if not by_group:
        return
    results.print("[dim]Answerable, by co-reference: which questions need the turns before them[/]")
    table = Table("", "n", box=None, pad_edge=False, header_style="dim")
    for name in evaluation.metrics:
        table.add_column(name, justify="right", no_wrap=True)
    for retriever in evaluation.retrievers():
        table.add_row(labels.get(retriever, retriever))
        for scores in (one for one in by_group if one.retriever == retriever):
            values = (scores.answerable[metric] for metric in evaluation.metrics)
            table.add_row(
                f"  {scores.group.removesuffix(' co-reference')}", str(scores.n_answerable), *map(_percent, values)
            )
            between = (_interval(scores.answerable[metric]) for metric in evaluation.metrics)
            table.add_row("", "", *(f"[dim]{text}[/]" for text in between))
    results.print(table)


def _percent(estimate: Estimate) -> str:
    return "–" if math.isnan(estimate.value) else f"{100 * estimate.value:.1f}"


def _interval(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.low) else f"{100 * estimate.low:.0f}–{100 * estimate.high:.0f}"


def _signed(estimate: Estimate) -> str:
    from dialometer.report.numbers import write_signed

    if math.isnan(estimate.low):
        return ""
    return f"{write_signed(100 * estimate.low, 1)} to {write_signed(100 * estimate.high, 1)}"


def _differences(evaluation: Evaluation, judge: str, labels: Mapping[str, str]) -> None:
    """The best against all others: the pairs that readers ask about. The rest is in ``--json``.

    The crowd's own rating is no retriever that could be used, so it is never the best.
    """
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_confidence, write_p, write_signed
    from dialometer.retrieval.selection import CROWD

    pairs = [pair for pair in evaluation.comparisons if pair.judge == judge and CROWD not in (pair.first, pair.second)]
    if not pairs:
        return
    best = pairs[0].first
    table = Table(
        f"{pairs[0].metric}: the best against the others, paired",
        "points",
        write_confidence(evaluation.resampling.confidence),
        "p (Holm)",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for pair in pairs:
        if pair.first != best:
            continue
        p = pair.difference.details.get("p_adjusted", math.nan)
        table.add_row(
            f"{labels.get(pair.first, pair.first)} − {labels.get(pair.second, pair.second)}",
            "0.0" if math.isnan(pair.difference.value) else write_signed(100 * pair.difference.value, 1),
            _signed(pair.difference),
            "–" if math.isnan(p) else write_p(p, is_bare=True),
        )
    results.print(table)
    n = len([pair for pair in evaluation.comparisons if pair.judge == judge])
    all_pairs = f"; p-values are corrected over all {n} pairs of retrievers, intervals are not" if n > 1 else ""
    results.print(f"[dim]Permutation tests and their intervals{all_pairs}.[/]", soft_wrap=True)


def show_explained(
    query: Query, answers: Mapping[str, Sequence[ExplainedAnswer]], labels: Mapping[str, str], right: set[str]
) -> None:
    """One question: the first answers of every retriever."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_number

    if query.context:
        results.print(f"[dim]{escape(query.context[-1].text)}[/]", soft_wrap=True)
    results.print(f"[bold]{escape(query.text)}[/]", soft_wrap=True)
    table = Table("retriever", "rank", "score", "answer", "because", box=None, pad_edge=False, header_style="dim")
    for name, own in answers.items():
        for answer in own:
            mark = "[green]✓[/] " if answer.answer in right else ""
            shown = labels.get(name, name) if answer.rank == 1 else ""
            table.add_row(
                shown,
                str(answer.rank),
                write_number(answer.score, 3),
                mark + escape(answer.text),
                f"[dim]{escape(answer.because)}[/]",
            )
    results.print(table)
    results.print()


def show_trade_off(calibration: Calibration) -> None:
    """The curve of the threshold, with the chosen one marked, and what declining a fifth of the questions brings."""
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_signed
    from dialometer.retrieval.threshold import SHARE_ANSWERED
    from dialometer.stats.clustered.proportion import wilson_interval

    results.print(
        f"Answering at a confidence of {calibration.threshold:.2f} or more: a right answer gains 1, a wrong one costs "
        f"{calibration.cost_of_wrong:g}, declining costs nothing ({calibration.n_questions} questions).",
        soft_wrap=True,
    )
    table = Table("from", "answered", "right of those", "worth", "", box=None, pad_edge=False, header_style="bold")
    for number, point in enumerate(calibration.curve):
        is_chosen = point.threshold == calibration.threshold
        if number % 4 and not is_chosen:
            continue
        precision = "–" if math.isnan(point.right_of_answered) else f"{100 * point.right_of_answered:.0f}%"
        bar = "█" * round(20 * point.answered)
        mark = " [green]◀ chosen[/]" if is_chosen else ""
        table.add_row(
            f"{point.threshold:.2f}",
            f"{100 * point.answered:.0f}%",
            precision,
            write_signed(point.worth, 2),
            bar + mark,
        )
    results.print(table)
    if calibration.right_of_surest is not None:
        n_answered = round(SHARE_ANSWERED * calibration.n_questions)
        low, high = wilson_interval(calibration.right_of_surest * n_answered, n_answered)
        results.print(
            f"\nOf the {SHARE_ANSWERED:.0%} of questions that it is surest of, {calibration.right_of_surest:.0%} are answered "
            f"correctly (95% interval {100 * low:.0f} to {100 * high:.0f}%); of all, {calibration.curve[0].right_of_answered:.0%}.",
            soft_wrap=True,
        )


def show_parts(rows: Sequence[tuple[str, Sequence[float]]], cuts: Sequence[int]) -> None:
    """Success rates of what the fused retriever is made of, by cross-validation."""
    from rich.table import Table

    from dialometer.cli.console import results

    table = Table(
        "cross-validated over dialogues", *(f"SR@{k}" for k in cuts), box=None, pad_edge=False, header_style="bold"
    )
    for name, values in rows:
        table.add_row(name, *(f"{100 * value:.1f}" for value in values))
    results.print(table)
