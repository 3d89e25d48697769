"""The report on a learned evaluator: how often it is right on held-out dialogues, and which ratings it does not trust."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer._version import __version__
from dialometer.learned.data.measures import accuracy_difference, accuracy_estimate
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue, RatingVerdict, check_rated
from dialometer.learned.data.splits import grouped_splits, groups_of
from dialometer.learned.experiments.noise import auc
from dialometer.learned.experiments.plain_rows import AblationRow, plain_rows
from dialometer.learned.gaussian.behaviour import behaviour
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.kernel import ASPECTS, Aspect
from dialometer.learned.gaussian.training import MIN_DIALOGUES, fit_gaussian
from dialometer.model.estimate import Estimate
from dialometer.model.report import (
    PERCENTAGE_POINTS,
    Cell,
    Column,
    Figure,
    Part,
    Report,
    Section,
    Summary,
    Table,
    Turns,
)
from dialometer.neural.work import QUIET, Work
from dialometer.report.charts import Dot, LinePoint, dot_interval, lines
from dialometer.report.numbers import write_number, write_percent
from dialometer.stats.clustered.clustered import clustered_mean

# An evaluator beside what it has to beat, on dialogues of users that neither has learned from.
#
# Every fold of users (or of blocks of neighbours) is held out once; what scores it has learned from all the others and chosen
# its settings on them alone.


Floats = NDArray[np.float64]
EVALUATOR = "evaluator"
N_FOLDS = 5
MAX_LENGTH_DIFFERENCE = 2
_LABELS = {
    EVALUATOR: "the evaluator",
    "tfidf-ridge": "words alone (TF-IDF + ridge)",
    "approval": "praise minus complaints",
    "utterances": "the longer one",
}


@dataclass(frozen=True)
class Contest:
    """Scores of all contestants on every held-out part, the evaluator first."""

    rows: tuple[AblationRow, ...]
    tests: tuple[tuple[RatedDialogue, ...], ...]
    scores: Mapping[str, tuple[Floats, ...]]
    """For each row, one array for each held-out part."""

    def pairs(self, choose: Callable[[Sequence[RatedDialogue]], NumberedPairs]) -> list[NumberedPairs]:
        """Pairs within each held-out part."""
        return [choose(test) for test in self.tests]

    def accuracy(self, row: AblationRow, pairs: Sequence[NumberedPairs], *, seed: int = 0) -> Estimate:
        """Share of pairs ordered right, with an interval over users (or blocks of neighbours)."""
        scores = self.scores[row.name]
        return accuracy_estimate(list(scores), pairs, groups=self._groups, seed=seed, label=row.label)

    def lead(self, other: AblationRow, pairs: Sequence[NumberedPairs], *, seed: int = 0) -> Estimate:
        """By how much the evaluator orders more of the same pairs right than another row, with an interval over users."""
        own, theirs = self.scores[EVALUATOR], self.scores[other.name]
        return accuracy_difference(own, theirs, pairs, groups=self._groups, seed=seed, label=other.label)

    @cached_property
    def _groups(self) -> list[str]:
        """Nobody is in two held-out parts."""
        return [group for number, test in enumerate(self.tests) for group in _named(number, groups_of(test))]

    def chances(self) -> tuple[Floats, Floats]:
        """For every held-out pair of different ratings: the chance given to the better one's lead, and its score gap."""
        gaps = [
            scores[part.better] - scores[part.worse]
            for scores, part in zip(self.scores[EVALUATOR], self.pairs(any_gap), strict=True)
        ]
        joined = np.concatenate(gaps)
        return 1 / (1 + np.exp(-np.abs(joined))), joined


def far_apart(rated: Sequence[RatedDialogue]) -> NumberedPairs:
    """Pairs whose ratings lie three points or more apart: there, ratings are mostly to be believed."""
    return numbered_gap_pairs(rated, 3.0)


def of_one_length(rated: Sequence[RatedDialogue]) -> NumberedPairs:
    """The same among dialogues of about the same length, so that length gives nothing away."""
    return numbered_gap_pairs(rated, 3.0, MAX_LENGTH_DIFFERENCE)


def any_gap(rated: Sequence[RatedDialogue]) -> NumberedPairs:
    """All pairs of different ratings, noise and all."""
    return numbered_gap_pairs(rated, 1.0)


def hold_contest(
    rated: Sequence[RatedDialogue],
    aspects: Sequence[Aspect],
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    work: Work = QUIET,
) -> tuple[Contest, FeatureTable]:
    """Scores every dialogue by everybody, held out; the features are given back, since computing them costs most."""
    check_rated(rated, at_least=math.ceil(MIN_DIALOGUES * n_folds / (n_folds - 1)))
    table = describe([row.dialogue for row in rated], work, has_meaning="meaning" in aspects)
    place = {row.id: number for number, row in enumerate(rated)}

    def evaluator(train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
        own, other = (table.rows([place[row.id] for row in part]) for part in (train, test))
        return fit_gaussian(train, seed=seed, aspects=aspects, table=own).evaluator.score_table(other).values

    contestants: dict[str, Callable[[Sequence[RatedDialogue], Sequence[RatedDialogue]], Floats]] = {
        EVALUATOR: evaluator
    }
    plain = {row.row.name: row.score for row in plain_rows(rated, work)}
    contestants["tfidf-ridge"] = plain["tfidf-ridge"]
    contestants |= {"approval": _approval, "utterances": plain["utterances"]}
    scores: dict[str, list[Floats]] = {name: [] for name in contestants}
    tests = []
    splits = grouped_splits(rated, n_folds, n_folds=n_folds, seed=seed)
    for number, split in enumerate(splits):
        held = set(split.test)
        train, test = [row for row in rated if row.id not in held], [row for row in rated if row.id in held]
        tests.append(tuple(test))
        for name, score in contestants.items():
            scores[name].append(score(train, test))
        work.report("Holding out", number + 1, len(splits))
    rows = tuple(AblationRow(name, _LABELS[name]) for name in contestants)
    return Contest(rows, tuple(tests), {name: tuple(values) for name, values in scores.items()}), table


def _approval(_: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> Floats:
    """A rule of thumb: how often users praise, less how often they complain."""
    features = [behaviour(counts.dialogue) for counts in test]
    return np.array([counts["user_approval_turns"] - counts["user_complaint_turns"] for counts in features])


def _named(number: int, groups: Sequence[str]) -> list[str]:
    """Blocks of neighbours are counted anew in every part, so their names need the part's number."""
    return [f"{number} {group}" for group in groups]


# Ratings that an evaluator does not believe, to be read by people; where a simulation knows the truth, whether it was right.


N_LISTED = 20
N_SHOWN = 3
_N_CHARACTERS = 90
_QUALITY, _CARELESS = "quality", "is_careless"


def truth_of(rated: RatedDialogue) -> Mapping[str, Any]:
    """What a simulation wrote down about a dialogue; nothing for real ones."""
    truth = rated.dialogue.metadata.get("truth")
    return truth if isinstance(truth, Mapping) else {}


def is_simulated(rated: Sequence[RatedDialogue]) -> bool:
    """Whether the truth of every dialogue is known."""
    return all(_QUALITY in truth_of(row) and _CARELESS in truth_of(row) for row in rated)


def truth_pairs(tests: Sequence[Sequence[RatedDialogue]]) -> list[NumberedPairs] | None:
    """Pairs whose true quality differs by a point or more; None unless every dialogue is simulated."""
    if not all(is_simulated(test) for test in tests):
        return None
    return [
        numbered_gap_pairs([replace(row, rating=float(truth_of(row)[_QUALITY])) for row in test], 1.0) for test in tests
    ]


def doubts_section(rated: Sequence[RatedDialogue], verdicts: Sequence[RatingVerdict]) -> Section:
    """The ratings furthest from what similar dialogues predict: a list, and the first dialogues as they were held."""
    by_id = {verdict.id: verdict for verdict in rated}
    doubted = sorted((verdict for verdict in verdicts if verdict.is_believed is False), key=_distance, reverse=True)
    share = len(doubted) / len(verdicts) if verdicts else 0.0
    n, total = len(doubted), len(verdicts)
    sentence = (
        f"{n} of {total:,} ratings ({write_percent(share)}) {'lies' if n == 1 else 'lie'} more than two typical errors from what "
        "other users' ratings predict. A few percent always do, so this proves nothing about a single rating: all are used in "
        "training, and you should read them before you exclude any."
    )
    words = [
        sentence
        if n
        else f"None of the {total:,} ratings lies more than two typical errors from what other users' ratings predict."
    ]
    if (against := _against_truth(by_id, verdicts, doubted)) is not None:
        words.append(against)
    knows = is_simulated(rated)
    columns = [
        Column("dialogue", "Dialogue"),
        Column("system", "System"),
        Column("rating", "Rated", "number", 0),
        Column("expected", "Expected", "number", 1),
        Column("end", "How it ended"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for verdict in doubted[:N_LISTED]:
        known = by_id[verdict.id]
        row: tuple[Cell, ...] = (verdict.id, known.bot or "", verdict.rating, verdict.smoothed, _end(known))
        rows.append((*row, "carelessly" if truth_of(known)[_CARELESS] else "honestly") if knows else row)
    if knows:
        columns.append(Column("truth", "In truth rated"))
    table = Table(
        "doubts",
        "The ratings it trusts least",
        tuple(columns),
        tuple(rows),
        caption="Expected: by evaluators that had not seen this user's ratings.",
    )
    parts: tuple[Part, ...] = (
        (table, *(_turns(by_id[verdict.id], verdict) for verdict in doubted[:N_SHOWN])) if rows else ()
    )
    return Section("doubts", "Ratings it does not trust", tuple(words), parts)


def _distance(verdict: RatingVerdict) -> float:
    return 0.0 if verdict.smoothed is None else abs(verdict.rating - verdict.smoothed)


def _against_truth(
    by_id: Mapping[str, RatedDialogue], verdicts: Sequence[RatingVerdict], doubted: Sequence[RatingVerdict]
) -> str | None:
    """What a simulation can say: how many of the doubted ratings were given without care, beside how many of all."""
    if not is_simulated(list(by_id.values())):
        return None
    careless = np.array([bool(truth_of(by_id[verdict.id])[_CARELESS]) for verdict in verdicts], dtype=np.bool_)
    if not careless.any() or careless.all() or not doubted:
        return None
    right = sum(bool(truth_of(by_id[verdict.id])[_CARELESS]) for verdict in doubted)
    chance = auc(np.array([_distance(verdict) for verdict in verdicts]), careless)
    return (
        f"The simulation knows who rated carelessly: {right} of these {len(doubted)} ({write_percent(right / len(doubted))}), "
        f"beside {int(careless.sum())} of all {len(careless):,} ({write_percent(careless.mean())}). A careless rating is further "
        f"from what was expected than an honest one in {write_percent(chance)} of cases; many careless ratings happen to be right, "
        "and cannot be found."
    )


def _end(rated: RatedDialogue) -> str:
    """The last thing the user said."""
    spoken = rated.dialogue.said_by("user")
    text = spoken[-1].text if spoken else ""
    return text if len(text) <= _N_CHARACTERS else text[: _N_CHARACTERS - 1].rstrip() + "…"


def _turns(rated: RatedDialogue, verdict: RatingVerdict) -> Turns:
    rows = tuple((turn.speaker, (("equal", turn.text, turn.text),)) for turn in rated.dialogue.turns)
    expected = "unknown" if verdict.smoothed is None else f"{verdict.smoothed:.1f}"
    return Turns(f"doubt-{rated.id}", f"{rated.id}: rated {rated.rating:g}, expected {expected}", rows)


_STEPS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def evaluator_report(
    rated: Sequence[RatedDialogue],
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
    fitted = fit_gaussian(rated, seed=seed, aspects=aspects, table=table)
    wide = contest.pairs(far_apart)
    accuracies = {row.name: contest.accuracy(row, wide, seed=seed) for row in contest.rows}
    own = accuracies[EVALUATOR]
    best = max(contest.rows[1:], key=lambda row: accuracies[row.name].value)
    n_users = len(set(groups_of(rated)))
    who = "users" if any(entry.user is not None for entry in rated) else "groups of neighbouring dialogues"
    opening = "Simulated dialogues whose truth is known. Learned from " if is_simulated(rated) else "Learned from "
    sections = (
        _accuracy_section(contest, accuracies, seed),
        _calibration_section(contest),
        *_systems_section(rated, {entry.id: entry.smoothed for entry in fitted.verdicts}),
        doubts_section(rated, fitted.verdicts),
        _how_section(aspects),
    )
    return Report(
        study=data,
        has_kinds=False,
        title="An evaluator learned from ratings",
        summary=Summary(
            f"The evaluator finds the better of two dialogues in {_words(own)} of held-out pairs, "
            f"{best.label} in {_words(accuracies[best.name])}.",
            f"{opening}{len(rated):,} ratings. The pairs lie 3 points or more apart, and every dialogue was judged by an "
            f"evaluator that had learned from other {who} only; confidence intervals are over {n_users:,} {who}. "
            + _lead_words(contest.lead(best, wide, seed=seed), best.label),
            figure=_accuracy_figure(contest, accuracies),
            warnings=tuple(f"{n:,} dialogues were excluded: {why}" for why, n in (left_out or {}).items()),
            next_steps=_next_steps(contest.lead(best, wide, seed=seed), best.label),
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


def _accuracy_figure(contest: Contest, accuracies: Mapping[str, Estimate]) -> Figure:
    return Figure(
        "accuracy",
        "How often the better of two held-out dialogues is found",
        dot_interval(
            [Dot(row.label, accuracies[row.name]) for row in contest.rows],
            value_title="pairs ordered right",
            reference=0.5,
            is_percent=True,
        ),
        alt="; ".join(f"{row.label}: {_words(accuracies[row.name])}" for row in contest.rows)
        + ". The line at 50% is guessing.",
    )


def _accuracy_section(contest: Contest, accuracies: Mapping[str, Estimate], seed: int) -> Section:
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
    columns.append(Column("lead", "Evaluator's lead", "percent_estimate", 1, unit=PERCENTAGE_POINTS))
    wide = contest.pairs(far_apart)
    rows: list[tuple[Cell, ...]] = []
    for row in contest.rows:
        others = [contest.accuracy(row, pairs, seed=seed) for pairs in kinds.values()]
        lead = "" if row.name == EVALUATOR else contest.lead(row, wide, seed=seed)
        rows.append((row.label, accuracies[row.name], *others, lead))
    words = [
        "The first column counts pairs whose ratings lie at least 3 points apart, the second those of them that differ by two "
        "utterances at most, the third all pairs of different ratings, of which many differ by chance only."
    ]
    if true is not None:
        words.append(
            "These dialogues are simulated, so their true quality is known. The evaluator never sees it; the column "
            "“True quality” shows how well it recovers what the noisy ratings hide."
        )
    table = Table(
        "accuracy_table",
        "Share of held-out pairs ordered right",
        tuple(columns),
        tuple(rows),
        caption="Confidence intervals by bootstrap over users. The lead is on pairs 3+ points apart, both judging the same pairs.",
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
        stated, happened = float(chances[inside].mean()), float(is_right[inside].mean())
        points.append(LinePoint(stated, happened))
        rows.append((f"{write_percent(low)} to {write_percent(high)}", int(inside.sum()), stated, happened))
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
        lines(
            points,
            x_title="probability it gives",
            y_title="was right",
            is_percent=True,
            is_percent_x=True,
            ideal="as it should be",
        ),
        alt="; ".join(
            f"says {write_percent(stated)}: right in {write_percent(right)} of {n} pairs"
            for _, n, stated, right in rows
        ),
    )
    text = "All held-out pairs of different ratings, by the probability that the evaluator gives to its choice."
    return Section("calibration", "Whether its probabilities mean what they say", (text,), (figure, table))


def _systems_section(rated: Sequence[RatedDialogue], expected: Mapping[str, float | None]) -> tuple[Section, ...]:
    names = sorted({entry.bot for entry in rated if entry.bot})
    if len(names) < 2:
        return ()
    groups = groups_of(rated)
    rows: list[tuple[Cell, ...]] = []
    dots = []
    for name in names:
        numbers = [n for n, entry in enumerate(rated) if entry.bot == name]
        users = [groups[n] for n in numbers]
        given = clustered_mean([rated[n].rating for n in numbers], users, label=name)
        known = (expected[rated[n].id] for n in numbers)
        judged = clustered_mean([math.nan if entry is None else entry for entry in known], users, label=name)
        rows.append((name, len(numbers), given, judged))
        dots += [Dot(name, given, "users rated"), Dot(name, judged, "evaluator expects")]
    columns = (
        Column("system", "System"),
        Column("n", "Dialogues", "count"),
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
            f"The evaluator is a Gaussian process over {_listed(aspects)} of the dialogues; its settings were chosen by "
            "cross-validation over users. Single ratings are noisy, so none is fitted exactly, and the general level "
            "of each user is taken out.",
            "Accuracy is the share of pairs within a held-out fifth of the users that are ordered right. No user is on both "
            "sides, because the ratings of one user resemble each other (Liang, Zou and Yu, ACL 2020, use experts' pairs "
            "instead; give yours to 'learn train' with --pairs).",
            "A rating is not trusted where it lies more than two typical errors from what other users' ratings predict.",
        ),
    )


def _listed(aspects: Sequence[Aspect]) -> str:
    return " and ".join(aspects) if len(aspects) < 3 else f"{', '.join(aspects[:-1])} and {aspects[-1]}"


def _next_steps(lead: Estimate, other: str) -> tuple[str, ...]:
    """Whether the learned evaluator is worth using instead of the simplest rule that comes next."""
    if not lead.has_interval:
        return ("Collect more ratings: there are too few to compare the evaluator with simpler rules.",)
    if lead.low > 0:
        return (
            f"Use the evaluator: it is better than {other}. Check it again on dialogues of systems it has not seen.",
            "Its scores do not replace human raters where a decision between systems matters: compare those in a study.",
        )
    if lead.high < 0:
        return (f"Use {other} instead: it does better than the evaluator, and is simpler.",)
    return (f"Use {other}: it does as well as the evaluator, as far as these data show, and is simpler.",)


def _lead_words(lead: Estimate, other: str) -> str:
    if not lead.has_interval:
        return ""
    points, low, high = (write_number(100 * value, 0) for value in (lead.value, lead.low, lead.high))
    size = f"{points} {'percentage point' if points == '1' else 'percentage points'} (95% confidence interval {low} to {high})"
    if lead.low > 0:
        return f"Its lead over {other} is {size}."
    return f"Its lead over {other}, {size}, is not significant."


def _words(share: Estimate) -> str:
    if not share.is_known:
        return "an unknown share"
    return write_percent(share.value) + (
        f" (95% confidence interval {write_number(100 * share.low, 0)} to {write_percent(share.high)})"
        if share.has_interval
        else ""
    )
