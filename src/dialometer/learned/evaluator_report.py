"""The report on a learned evaluator: how often it is right on held-out conversations, and which ratings it does not believe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from dialometer._version import __version__
from dialometer.learned.best import fit_best
from dialometer.learned.best_kernel import ASPECTS, Aspect
from dialometer.learned.contest import EVALUATOR, Contest, any_gap, far_apart, hold_contest, of_one_length
from dialometer.learned.doubts import doubts_section, is_simulated, truth_pairs
from dialometer.learned.rated import Rated
from dialometer.learned.splits import groups_of
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Report, Section, Summary, Table
from dialometer.report.charts import Dot, LinePoint, dot_interval, lines
from dialometer.retrieval.work import QUIET, Work
from dialometer.stats.clustered import clustered_mean

_STEPS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def evaluator_report(
    rated: Sequence[Rated],
    *,
    aspects: Sequence[Aspect] = ASPECTS,
    data: str,
    command: str,
    left_out: Mapping[str, int] | None = None,
    seed: int = 0,
    work: Work = QUIET,
) -> Report:
    """Trains by the best recipe, measures on held-out users beside what is simpler, and lists the ratings in doubt."""
    contest, table = hold_contest(rated, aspects, seed=seed, work=work)
    fitted = fit_best(rated, seed=seed, aspects=aspects, table=table)
    wide = contest.pairs(far_apart)
    found = {row.name: contest.accuracy(row, wide, seed=seed) for row in contest.rows}
    own = found[EVALUATOR]
    best = max(contest.rows[1:], key=lambda row: found[row.name].value)
    n_users = len(set(groups_of(rated)))
    who = "users" if any(one.user is not None for one in rated) else "groups of neighbouring conversations"
    told = "Simulated conversations whose truth is known. Learned from " if is_simulated(rated) else "Learned from "
    sections = (
        _accuracy_section(contest, found, seed),
        _calibration_section(contest),
        *_systems_section(rated, {one.id: one.smoothed for one in fitted.verdicts}),
        doubts_section(rated, fitted.verdicts),
        _how_section(aspects),
    )
    return Report(
        study=data,
        title="An evaluator learned from ratings",
        summary=Summary(
            f"The evaluator finds the better of two conversations in {_words(own)} of held-out pairs, "
            f"{best.label} in {_words(found[best.name])}.",
            f"{told}{len(rated):,} ratings. The pairs lie 3 points or more apart, and every conversation was judged by an "
            f"evaluator that had learned from other {who} only; intervals are over {n_users:,} {who}. "
            + _lead_words(contest.lead(best, wide, seed=seed), best.label),
            figure=_accuracy_figure(contest, found),
            warnings=tuple(f"{n:,} dialogues were left out: {why}" for why, n in (left_out or {}).items()),
        ),
        sections=sections,
        methods=(),
        provenance={
            "command": command,
            "dialometer": __version__,
            "seed": seed,
            "n_ratings": len(rated),
            "aspects": ", ".join(aspects),
            "settings": ", ".join(f"{name} {value:g}" for name, value in fitted.about["settings"].items()),
        },
    )


def _accuracy_figure(contest: Contest, found: Mapping[str, Estimate]) -> Figure:
    return Figure(
        "accuracy",
        "How often the better of two held-out conversations is found",
        dot_interval(
            [Dot(row.label, found[row.name]) for row in contest.rows],
            value_title="pairs ordered right",
            reference=0.5,
            is_percent=True,
        ),
        alt="; ".join(f"{row.label}: {_words(found[row.name])}" for row in contest.rows)
        + ". The line at 50% is guessing.",
    )


def _accuracy_section(contest: Contest, found: Mapping[str, Estimate], seed: int) -> Section:
    kinds = {"similar": contest.pairs(of_one_length), "any": contest.pairs(any_gap)}
    columns = [
        Column("row", "Who judges"),
        Column("wide", "3+ points apart", "percent_estimate", 1),
        Column("similar", "… and of similar length", "percent_estimate", 1),
        Column("any", "All pairs", "percent_estimate", 1),
    ]
    if (true := truth_pairs(contest.tests)) is not None:
        kinds["truth"] = true
        columns.append(Column("truth", "True quality 1+ apart", "percent_estimate", 1))
    columns.append(Column("lead", "Evaluator's lead", "percent_estimate", 1))
    wide = contest.pairs(far_apart)
    rows: list[tuple[Cell, ...]] = []
    for row in contest.rows:
        others = [contest.accuracy(row, pairs, seed=seed) for pairs in kinds.values()]
        lead = "" if row.name == EVALUATOR else contest.lead(row, wide, seed=seed)
        rows.append((row.label, found[row.name], *others, lead))
    words = [
        "The first column counts pairs whose ratings lie at least 3 points apart, the second those of them that differ by two "
        "utterances at most, the third all pairs of different ratings, of which many differ by chance only."
    ]
    if true is not None:
        words.append(
            "These conversations are simulated, so their true quality is known. The evaluator never sees it; the column "
            "'True quality' shows how well it recovers what the noisy ratings hide."
        )
    table = Table(
        "accuracy_table",
        "Share of held-out pairs ordered right",
        tuple(columns),
        tuple(rows),
        caption="Intervals by bootstrap over users. The lead is that on pairs 3+ points apart, both judging the same pairs.",
    )
    return Section("accuracy", "How often it is right", tuple(words), (table,))


def _calibration_section(contest: Contest) -> Section:
    chances, gaps = contest.chances()
    is_right = (np.sign(gaps) + 1) / 2
    points, rows = [], []
    for low, high in pairwise(_STEPS):
        inside = (chances >= low) & ((chances < high) | (high >= 1))
        if not inside.any():
            continue
        said, happened = float(chances[inside].mean()), float(is_right[inside].mean())
        points += [LinePoint(100 * said, happened, group="the evaluator"), LinePoint(100 * said, said, group="ideal")]
        rows.append((f"{low:.0%} to {high:.0%}", int(inside.sum()), said, happened))
    table = Table(
        "calibration_table",
        "Probabilities beside what happened",
        (
            Column("said", "It says"),
            Column("n", "Pairs", "count"),
            Column("mean", "On average", "percent", 1),
            Column("right", "Was right", "percent", 1),
        ),
        tuple(rows),
    )
    figure = Figure(
        "calibration",
        "When it says 80%, is it right four times out of five?",
        lines(points, x_title="probability it gives, in %", y_title="was right", is_percent=True),
        alt="; ".join(f"says {said:.0%}: right in {right:.0%} of {n} pairs" for _, n, said, right in rows),
    )
    text = "All held-out pairs of different ratings, by the probability that the evaluator gives to its choice."
    return Section("calibration", "Whether its probabilities mean what they say", (text,), (figure, table))


def _systems_section(rated: Sequence[Rated], expected: Mapping[str, float | None]) -> tuple[Section, ...]:
    names = sorted({one.bot for one in rated if one.bot})
    if len(names) < 2:
        return ()
    groups = groups_of(rated)
    rows: list[tuple[Cell, ...]] = []
    dots = []
    for name in names:
        numbers = [n for n, one in enumerate(rated) if one.bot == name]
        users = [groups[n] for n in numbers]
        given = clustered_mean([rated[n].rating for n in numbers], users, label=name)
        known = (expected[rated[n].id] for n in numbers)
        judged = clustered_mean([math.nan if one is None else one for one in known], users, label=name)
        rows.append((name, len(numbers), given, judged))
        dots += [Dot(name, given, "users rated"), Dot(name, judged, "evaluator expects")]
    columns = (
        Column("system", "System"),
        Column("n", "Conversations", "count"),
        Column("rated", "Users rated", "estimate"),
        Column("expected", "Evaluator expects", "estimate"),
    )
    figure = Figure(
        "systems",
        "Mean rating and mean expected rating by system",
        dot_interval(dots, value_title="points from 1 to 5", group_title="who"),
        alt="; ".join(f"{row[0]}: rated {row[2]}, expected {row[3]}" for row in rows),
    )
    text = (
        "Expected ratings come from evaluators that had not seen the user. They vary less, since the noise of single ratings "
        "is gone, and lie nearer to the middle."
    )
    table = Table("systems_table", "Systems", columns, tuple(rows))
    return (Section("systems", "Which system is better", (text,), (figure, table)),)


def _how_section(aspects: Sequence[Aspect]) -> Section:
    return Section(
        "how",
        "How it was made",
        (
            f"The evaluator is a Gaussian process over {_listed(aspects)} of the conversations; its settings were chosen by "
            "cross-validation over users. Every rating counts softly, since single ratings are noisy, and what a user adds to "
            "all of theirs is explained away.",
            "Accuracy is the share of pairs within a held-out fifth of the users that are ordered right. No user is on both "
            "sides, because the ratings of one user resemble each other (Liang, Zou and Yu, ACL 2020, use experts' pairs "
            "instead; give yours to 'learn train' with --pairs).",
            "A rating is not believed where it lies more than two usual errors from what other users' ratings let expect.",
        ),
    )


def _listed(aspects: Sequence[Aspect]) -> str:
    return " and ".join(aspects) if len(aspects) < 3 else f"{', '.join(aspects[:-1])} and {aspects[-1]}"


def _lead_words(lead: Estimate, other: str) -> str:
    if not lead.has_interval:
        return ""
    size = f"{100 * lead.value:.1f} percentage points (95% interval {100 * lead.low:.1f} to {100 * lead.high:.1f})"
    if lead.low > 0:
        return f"Its lead over {other} is {size}."
    return f"Its lead over {other}, {size}, may be chance."


def _words(share: Estimate) -> str:
    if not share.is_known:
        return "an unknown share"
    return f"{share.value:.0%}" + (f" (95% interval {share.low:.0%} to {share.high:.0%})" if share.has_interval else "")
