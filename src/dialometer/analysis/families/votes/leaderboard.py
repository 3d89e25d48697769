"""Systems compared with each other by votes: a leaderboard that says how sure each place is.

For designs in the manner of ACUTE-Eval (Li, Weston and Roller 2019), for pairwise choices and for rankings. Strengths are
Bradley-Terry's with Davidson's ties and an effect of the place on the screen; raters are resampled whole, since each votes
several times. Head-to-head tests beside it assume no model.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem, with_prefix
from dialometer.analysis.base.wording import listed, n_of, percent, sentence
from dialometer.analysis.families.votes.rankings import (
    SystemRanking,
    head_to_head_by_rater,
    rank_systems,
    systems_differ,
)
from dialometer.analysis.families.votes.sections import (
    HeadToHead,
    board_figure,
    board_section,
    head_to_head_section,
    model_section,
    pairs_table,
    questions_section,
    rank_words,
    system_group_section,
)
from dialometer.analysis.families.votes.system_votes import SystemVotes, duplicate_votes, system_votes, votes_where
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    between,
    compared_criteria,
    comparison_caption,
    comparison_role,
    comparison_title,
    is_about,
    p_adjusted,
    preferred_words,
    primary_between_systems,
)
from dialometer.analysis.shared.equivalence import decided, differences_of, has_margin
from dialometer.analysis.shared.ranking import lead_claims, lead_words
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Headline, Method, Section, Table
from dialometer.model.study import Comparison, Study
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.votes import win_matrix

MOST_RIVALS = 5


def answer_words(main: SystemRanking, *, name: str) -> str:
    """Who is best, or why nobody can be called so; ``name`` is the question, empty for all together."""
    first, n = main.ranked[0], len(main.ranked)
    where = f" on {name.lower()}" if name else ""
    share = f"{percent(main.wins[first].value)} of choices against the others"
    if main.ranks is None:
        return f"{first} comes first of {n} systems{where}, but one rater cannot speak for others."
    rivals = main.rivals()
    if not rivals:
        return f"{first} is the best of {n} systems{where}: it wins {share}."
    if len(rivals) + 1 == n:
        whom = f"{rivals[0]} may be as good" if n == 2 else f"any of the {n} may be best"
        return f"No best system{where} can be named: {first} comes first with {share}, but {whom}."
    return f"{first} comes first{where} with {share}, but {listed(rivals, most=MOST_RIVALS)} may be as good."


def certainty_words(main: SystemRanking, options: Options, *, is_declared: bool) -> str:
    """How sure the first place is, by the model of all votes and by direct votes alone."""
    first = main.ranked[0]
    basis = f"{n_of(len(main.votes.raters), 'rater')} cast {n_of(main.votes.n, 'vote')}"
    declared = (
        "The comparison was declared beforehand." if is_declared else "No comparison was declared: this is exploratory."
    )
    if main.ranks is None:
        return f"{basis}. {declared}"
    text = f"By the model of all votes, {lead_words(main.leader(), main.contrasts, options.correction)} "
    tested = {pair: share for pair, share in main.pairs.items() if first in pair and not math.isnan(p_adjusted(share))}
    behind = [
        pair
        for pair, share in tested.items()
        if p_adjusted(share) <= 1 - options.confidence and (share.value > 0.5) == (pair[0] == first)
    ]
    if tested:
        text += f"Direct votes alone, without the model, put it ahead of {len(behind)} of the {len(tested)} it met. "
    if main.fit.is_penalised:
        text += "Strengths are a regularised fit, as some systems cannot be placed by maximum likelihood. "
    return f"{text}{basis}. {declared}"


def headlines(main: SystemRanking, *, is_declared: bool) -> tuple[Headline, ...]:
    """The first three systems."""
    lines = []
    for system in main.ranked[:3]:
        rank = main.ranks.ranks[system] if main.ranks is not None else None
        place = "" if rank is None or not rank.has_interval else f"Rank interval {rank_words(rank)}; "
        record = main.records[system]
        words = f"{place}won {record.wins}, lost {record.losses}"
        words += f", tied {record.ties}." if record.ties else "."
        lines.append(Headline(f"{system}: wins against the others", main.wins[system], sentence(words), is_declared))
    return tuple(lines)


def warnings_of(given: SystemVotes, main: SystemRanking) -> tuple[str, ...]:
    """What a reader must know before the first number."""
    notes = list(given.notes)
    silent = [name for name in given.systems if name not in main.ranked]
    if silent:
        notes.append(f"There are no votes on {listed(silent)} yet, so they are not ranked.")
    if main.fit.is_penalised:
        notes.append(
            f"Not all systems can be placed by maximum likelihood ({'; '.join(main.fit.notes)}): more votes between the groups "
            "are needed."
        )
    repeats = duplicate_votes(given)
    if repeats:
        notes.append(
            f"{n_of(len(repeats), 'comparison')} received more than one vote of the same rater; see “Repeated votes”."
        )
    return tuple(notes)


MOST_REPEATS = 50


def questions_of(comparison: Comparison, given: SystemVotes) -> tuple[str, ...]:
    """The questions a declared comparison is about."""
    return tuple(name for name in given.criteria if not comparison.criteria or name in comparison.criteria)


def declared_sections(study: Study, given: SystemVotes, options: Options) -> list[Section]:
    """Declared comparisons between systems: every two of their systems in direct votes, over their questions."""
    tables, paragraphs = [], []
    for comparison in differences_of(study):
        questions = questions_of(comparison, given)
        if comparison.between != "systems" or not questions:
            continue
        codes = [k for k, name in enumerate(given.names) if not comparison.levels or name in comparison.levels]
        votes = given.on(questions)
        votes = votes_where(votes, np.isin(votes.first, codes) & np.isin(votes.second, codes))
        title = comparison_title(comparison)
        if votes.n == 0:
            paragraphs.append(f"{title}: there are no votes between {listed(given.systems[k] for k in codes)} yet.")
            continue
        matrix = win_matrix(votes)
        pairs = head_to_head_by_rater(votes, matrix, options)
        words = preferred_words(pairs, options, null=0.5, where=" in direct votes")
        paragraphs.append(f"{title} ({comparison_role(study, comparison)}): {words}.")
        labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
        caption = comparison_caption(comparison, labels)
        met = HeadToHead(title, pairs, bradley_terry(matrix, confidence=options.confidence))
        name = f"declared-{comparison.name}"
        tables.append(
            pairs_table(name, f"{title}: direct votes", [met], options, is_confirmatory=True, caption=caption)
        )
    if not paragraphs:
        return []
    return [Section("declared", "Declared comparisons", tuple(paragraphs), tuple(tables), is_confirmatory=True)]


def duplicates_sections(given: SystemVotes) -> list[Section]:
    """A chapter on repeated votes, where there are any."""
    repeats = duplicate_votes(given)
    if not repeats:
        return []
    rows: list[tuple[Cell, ...]] = [
        (
            repeat.rater,
            " and ".join(repeat.systems),
            repeat.item or "any",
            len(repeat.rows),
            "the same" if repeat.is_same else "different",
        )
        for repeat in repeats[:MOST_REPEATS]
    ]
    columns = (
        Column("rater", "Rater"),
        Column("systems", "Systems"),
        Column("item", "Item"),
        Column("n", "Votes", "count"),
        Column("vote", "Votes were"),
    )
    n_same = sum(repeat.is_same for repeat in repeats)
    text = (
        f"A rater voted more than once on the same comparison {n_of(len(repeats), 'time')}, with the same vote in {n_same}. "
        "All votes are counted. Raters are resampled whole, so that repeating a vote does not make intervals narrower, but it "
        "gives that rater more weight: exclude the session, or correct the import, if votes were sent twice by mistake."
    )
    more = (f"The first {MOST_REPEATS} of {len(repeats)}.",) if len(repeats) > MOST_REPEATS else ()
    table = Table("duplicates", "Repeated votes", columns, tuple(rows), notes=more)
    return [Section("duplicates", "Repeated votes", (text,), (table,))]


ALL_QUESTIONS = "All questions"


class Leaderboard(Family):
    """The family for votes between systems and for rankings of systems."""

    rank = 12

    def fits(self, study: Study) -> bool:
        """Anything compared by choice or rank, except controlled pairs, which compare strategies with their controls."""
        items = study.spec.items
        is_controlled = items.kind == "transcript_pair" and items.pairs == "controlled"
        return bool(compared_criteria(study, "order") or (compared_criteria(study, "one") and not is_controlled))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems on a question answered by a choice or a ranking."""
        asked = (*compared_criteria(study, "one"), *compared_criteria(study, "order"))
        return comparison.between == "systems" and is_about(comparison, [criterion.name for criterion in asked])

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """One test of whether the systems differ at all; with a margin, every two of them in direct votes."""
        given = system_votes(data)
        if has_margin(comparison):
            return decided(_direct_votes(given, comparison, options), comparison, options)
        return {"the systems differ": systems_differ(given.votes)}

    def run(self, data: StudyData, options: Options) -> Findings:
        """The leaderboard of the primary question, every question beside it, and the tests."""
        study, given = data.study, system_votes(data)
        is_drawn = study.spec.design.system_order != "fixed"
        fit = partial(rank_systems, options=options, is_order_drawn=is_drawn)
        overall = fit(given.votes, ALL_QUESTIONS if len(given.criteria) > 1 else given.criterion_labels[0])
        asked = [k for k in range(len(given.criteria)) if np.any(given.criterion == k)]
        singles = (
            [fit(given.on((given.criteria[k],)), given.criterion_labels[k]) for k in asked] if len(asked) > 1 else []
        )
        primary = primary_between_systems(study, given.criteria)
        main = _main(primary, given, singles, overall, fit)
        is_declared = primary is not None
        sections = [
            *declared_sections(study, given, options),
            board_section(main, options, is_confirmatory=is_declared),
            head_to_head_section(
                main,
                [single for single in singles if single.label != main.label],
                options,
                is_declared=primary is not None and (not primary.levels or set(given.names) <= set(primary.levels)),
            ),
        ]
        if singles:
            sections.append(questions_section(singles, overall, main))
        rankings = [main, *(board for board in [*singles, overall] if board.label != main.label)]
        sections.append(model_section(rankings, has_rankings=given.has_rankings, is_order_drawn=is_drawn))
        sections += [
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {question.replace('_', ' ')}",
                partial(system_group_section, data, given, question, options),
            )
            for question in study.spec.analysis.subgroups
        ]
        sections += duplicates_sections(given)
        findings = Findings(
            answer=answer_words(main, name=_name(main)),
            certainty=certainty_words(main, options, is_declared=is_declared),
            headlines=headlines(main, is_declared=is_declared),
            figure=board_figure("summary", main, is_confirmatory=is_declared),
            sections=tuple(sections),
            methods=_methods(main, options, has_rankings=given.has_rankings),
            warnings=warnings_of(given, main),
            claims=lead_claims(main.ranked, main.rivals()) if main.ranks is not None else (),
        )
        return with_prefix(findings, "leaderboard")


ANALYSES.register("leaderboard")(Leaderboard())


def _direct_votes(given: SystemVotes, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """Every two systems of a comparison that met, over its questions, by the pair in words."""
    votes = given.on(questions_of(comparison, given))
    codes = [k for k, name in enumerate(given.names) if not comparison.levels or name in comparison.levels]
    votes = votes_where(votes, np.isin(votes.first, codes) & np.isin(votes.second, codes))
    name_of = dict(zip(given.systems, given.names, strict=True))
    pairs = head_to_head_by_rater(votes, win_matrix(votes), options)
    return {f"{a} against {b}": between(share, name_of[a], name_of[b], null=0.5) for (a, b), share in pairs.items()}


def _main(
    primary: Comparison | None,
    given: SystemVotes,
    singles: list[SystemRanking],
    overall: SystemRanking,
    fit: partial[SystemRanking],
) -> SystemRanking:
    """The ranking that gives the answer: the primary comparison's questions, else everything."""
    if primary is None:
        return overall
    questions = questions_of(primary, given)
    if questions == given.criteria:
        return overall
    labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
    single = next((single for single in singles if [single.label] == labels), None)
    return single or fit(given.on(questions), listed(labels))


def _name(main: SystemRanking) -> str:
    return "" if main.label == ALL_QUESTIONS else main.label


def _methods(main: SystemRanking, options: Options, *, has_rankings: bool) -> tuple[Method, ...]:
    methods = [
        Method(
            "strengths, ranks and the leaderboard",
            f"{main.fit.method}; expanded percentile bootstrap over raters, {options.n_resamples:,} resamples",
            "one vote says little, and the votes of one rater go together; the model joins all comparisons on one scale",
            "Bradley and Terry 1952; Davidson 1970; Ford 1957; Hesterberg 2015",
        ),
        Method(
            "head to head",
            "exact binomial test on decisive votes; cluster-robust by rater (CR2) where raters voted on a pair more than once",
            "needs no model of strengths",
        ),
        Method(
            "whether systems differ at all",
            "homogeneity of the shares of points, cluster-robust by rater (HTZ)",
            "one test before many",
            "Pustejovsky and Tipton 2018",
        ),
        Method("Elo", main.elo.rule.describe() + ", mean over random orders of the votes", "for comparison with other leaderboards"),
        Method("several tests at once", CORRECTIONS.get(options.correction, "none"), "declared in the study; one family per question"),
    ]  # fmt: skip
    if has_rankings:
        methods.append(
            Method(
                "rankings",
                "broken into all pairs",
                "pairs of a ranking follow Bradley-Terry where rankings follow Plackett-Luce",
            )
        )
    return tuple(methods)
