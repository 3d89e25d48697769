"""Systems compared with each other by votes: a leaderboard that says how sure each place is.

For designs in the manner of ACUTE-Eval (Li, Weston and Roller 2019), for pairwise choices and for rankings. Strengths are
Bradley-Terry's with Davidson's ties and an effect of the position on the screen. Every claim reads the same tests of every two
systems, which take raters and items as samples; direct votes beside them describe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ANALYSES,
    Family,
    Findings,
    Options,
    OtherChoice,
    in_appendix,
    section_or_problem,
    with_prefix,
)
from dialometer.analysis.base.wording import (
    CONFIRMATORY_TITLE,
    inside,
    listed,
    n_of,
    p_words,
    percent,
    question_label,
    sentence,
)
from dialometer.analysis.families.votes.agreement import AGREEMENT_TITLE, agreement_section
from dialometer.analysis.families.votes.arena_sections import conversations_section, outcomes_section
from dialometer.analysis.families.votes.head_to_head import head_to_head_section
from dialometer.analysis.families.votes.rankings import SystemRanking, rank_systems
from dialometer.analysis.families.votes.sections import (
    board_figure,
    board_section,
    contrasts_table,
    groups_over,
    model_section,
    questions_section,
    scope_words,
    system_group_section,
)
from dialometer.analysis.families.votes.style_sections import TITLE as STYLE_TITLE
from dialometer.analysis.families.votes.style_sections import has_texts, style_method, style_section
from dialometer.analysis.families.votes.system_votes import (
    SystemVotes,
    comparison_questions,
    comparison_votes,
    duplicate_votes,
    system_votes,
)
from dialometer.analysis.families.votes.vote_alternatives import vote_alternatives
from dialometer.analysis.families.votes.vote_model import VoteModel, vote_model
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
from dialometer.analysis.shared.next_steps import alpha_steps
from dialometer.analysis.shared.ranking import by_rank, difference, lead_claims, lead_words
from dialometer.analysis.shared.subgroups import groups_method
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Claim, Column, Headline, Method, Section, Table
from dialometer.model.study import Study
from dialometer.stats.ranking.votes import Votes

MOST_HEADLINES = 3
MOST_RIVALS = 5


def answer_words(main: SystemRanking, *, name: str) -> str:
    """Who is best, or why nobody can be called so; ``name`` is the question, empty for all together."""
    first, n = main.ranked[0], len(main.ranked)
    where = (f" on {name}" if name else "") + scope_words(main.model)
    rate = f"an estimated win rate of {percent(main.wins[first].value)} against the {'other' if n == 2 else 'others'}"
    if main.ranks is None:
        return f"{first} comes first of {n} systems{where}, but one rater says nothing about others."
    rivals = main.rivals()
    if not rivals and n == 2:
        return f"{first} is preferred to {main.ranked[1]}{where}, with an estimated probability of {percent(main.wins[first].value)}."
    if not rivals:
        return f"{first} is the best of {n} systems{where}, with {rate}."
    if main.is_tied:
        return f"{first} and {rivals[0]} are tied{where}."
    behind = main.leader().behind
    if behind:
        not_of = listed(rivals, most=MOST_RIVALS, conjunction="or")
        return (
            f"{first} comes first{where}, with {rate}: significantly ahead of {listed(behind, most=MOST_RIVALS)}, but not of "
            f"{not_of}."
        )
    whom = rivals[0] if n == 2 else "any other system"
    return f"No best system{where} can be named: {first} comes first, with {rate}, but does not differ significantly from {whom}."


def certainty_words(main: SystemRanking, options: Options, *, is_declared: bool) -> str:
    """How sure the first place is, and what holds for the items shown although not for items in general."""
    basis = basis_words(main, is_declared=is_declared)
    if main.ranks is None:
        return basis
    return f"By the model of all votes, {lead_words(main.leader(), main.contrasts, options.correction)} {basis}"


def basis_words(main: SystemRanking, *, is_declared: bool) -> str:
    """Who voted how often, and how far that reaches."""
    items = f" on {main.model.items_words}" if main.model.n_items else ""
    basis = f"{n_of(len(main.votes.raters), 'rater')} cast {n_of(main.votes.n, 'vote')}{items}"
    declared = (
        "The comparison is confirmatory (declared in advance)."
        if is_declared
        else "No comparison was declared in advance: this is exploratory."
    )
    if main.ranks is None:
        return f"{basis}. {declared}"
    text = _items_certainty(main)
    if main.fit.is_penalised:
        text += "Strengths are a regularised fit, as some systems cannot be placed by maximum likelihood. "
    others = "raters and other items" if has_item_sample(main.model) else "raters"
    return f"{text}{basis}; the tests are about other {others}. {declared}"


def _items_certainty(main: SystemRanking) -> str:
    """That claims are about the items shown, or which further ones would be if they were limited to these."""
    if main.model.is_about_these_items:
        why = "The items are declared as fixed"
        if not main.model.options.has_fixed_items:
            why = "There is one item only" if main.model.n_items == 1 else "All items are of one prompt"
        return f"{why}, so this says nothing about other items. "
    general, narrow = main.leader(), main.model.on_these_items()
    if not narrow:
        return ""
    further = [name for name in main.leader(narrow).behind if name not in general.behind]
    if not further:
        return ""
    items = f"these {main.model.n_items} items"
    gaps = {name: difference(narrow, general.best, name) for name in further}
    whom = listed(f"{name} ({p_words(p_adjusted(gap))})" for name, gap in gaps.items() if gap is not None)
    return (
        f"Limited to {items}, {general.best} is {'also ' if general.behind else ''}preferred to {whom}; the items differ too "
        "much, or are too few, to say so of other items. "
    )


def headlines(main: SystemRanking, options: Options, *, is_declared: bool) -> tuple[Headline, ...]:
    """The first system against those that come next: the numbers that decide."""
    first = main.ranked[0]
    lines = []
    for other in main.ranked[1 : MOST_HEADLINES + 1]:
        share = main.model.win_probability(first, other)
        p = p_adjusted(share)
        words = ""
        if not math.isnan(p):
            verdict = "significant" if p <= 1 - options.confidence else "not significant"
            correction = correction_words(share, options)
            told = f" ({p_words(p)}{correction})" if correction else ""  # else the card shows it
            words = sentence(f"estimated by the model; the difference is {verdict}{scope_words(main.model)}{told}")
            if correction:  # the card would show the p-value of this pair alone beside the one that decides
                share = replace(share, p_value=math.nan, statistic=math.nan)
        lines.append(Headline(f"{first} preferred to {other}", share, words, is_declared))
    return tuple(lines)


def correction_words(test: Estimate, options: Options) -> str:
    """How a p-value was corrected, to follow it in a sentence; empty where there was nothing to correct for."""
    n_tests = int(test.details.get("n_tests", 1))
    if n_tests < 2 or options.correction not in CORRECTIONS:
        return ""
    return f", {CORRECTIONS[options.correction]} for {n_tests} comparisons"


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


def declared_sections(
    study: Study, given: SystemVotes, options: Options, models: Mapping[str, VoteModel]
) -> list[Section]:
    """Confirmatory comparisons between systems, by name the model of each: every two of their systems, over their questions."""
    tables, paragraphs = [], []
    for comparison in differences_of(study):
        questions = comparison_questions(given, comparison)
        if comparison.between != "systems" or not questions:
            continue
        title = comparison_title(comparison)
        model = models.get(comparison.name)
        if model is None:
            paragraphs.append(f"{title}: there are no votes between its systems yet.")
            continue
        contrasts = by_rank(model.contrasts, model.fit.ranked)
        words = (
            preferred_words(contrasts, options, where=scope_words(model)) if contrasts else "one rater cannot be tested"
        )
        paragraphs.append(f"{title} ({comparison_role(study, comparison)}): {words}.")
        labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
        tables.append(
            contrasts_table(
                f"declared-{comparison.name}",
                f"{title}: each pair of systems",
                model,
                options,
                is_confirmatory=True,
                caption=comparison_caption(comparison, labels),
            )
        )
    if not paragraphs:
        return []
    return [Section("declared", CONFIRMATORY_TITLE, tuple(paragraphs), tuple(tables), is_confirmatory=True)]


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
        "All votes are counted. Whole raters are the units of intervals and tests, so that repeating a vote does not make them "
        "narrower, but it "
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
        """Anything compared by choice or rank, except controlled pairs and pairs of dialogues, which do not compare systems."""
        items = study.spec.items
        is_controlled = items.kind == "transcript_pair" and items.pairs in ("controlled", "dialogues")
        return bool(compared_criteria(study, "order") or (compared_criteria(study, "one") and not is_controlled))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems on a question answered by a choice or a ranking."""
        asked = (*compared_criteria(study, "one"), *compared_criteria(study, "order"))
        return comparison.between == "systems" and is_about(comparison, [criterion.name for criterion in asked])

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Every two systems of the comparison, by the model that the report shows; a margin is one of shares of choices."""
        given = system_votes(data)
        return self._tests(data.study, given, comparison_votes(given, comparison), comparison, options)

    def _tests(
        self, study: Study, given: SystemVotes, votes: Votes, comparison: Comparison, options: Options
    ) -> dict[str, Estimate]:
        model = vote_model(votes, options, is_order_drawn=is_order_drawn(study))
        name_of = dict(zip(given.systems, given.names, strict=True))
        if not has_margin(comparison):
            pairs = model.contrasts
            return {f"{a} against {b}": between(gap, name_of[a], name_of[b]) for (a, b), gap in pairs.items()}
        shares = {
            f"{a} against {b}": between(model.win_probability(a, b), name_of[a], name_of[b], null=0.5)
            for a, b in model.contrasts
        }
        return decided(shares, comparison, options)

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """The model without ties, and direct votes alone."""
        given = system_votes(data)
        declared = partial(self._tests, data.study, given, comparison=comparison, options=options)
        return vote_alternatives(data, comparison, options, declared)

    def run(self, data: StudyData, options: Options) -> Findings:
        """The leaderboard of the primary question, every question beside it, and the tests."""
        study, given = data.study, system_votes(data)
        fit = partial(rank_systems, options=options, is_order_drawn=is_order_drawn(study))
        overall = fit(given.votes, ALL_QUESTIONS if len(given.criteria) > 1 else given.criterion_labels[0])
        asked = [k for k in range(len(given.criteria)) if np.any(given.criterion == k)]
        singles = (
            [fit(given.on((given.criteria[k],)), given.criterion_labels[k]) for k in asked] if len(asked) > 1 else []
        )
        primary = primary_between_systems(study, given.criteria)
        main = _main(primary, given, singles, overall, fit)
        is_declared = primary is not None
        models = _declared_models(study, given, options, main, primary)
        has_all = len(main.matrix.systems) == len(given.names)
        agreement = section_or_problem("agreement", AGREEMENT_TITLE, partial(agreement_section, data, options))
        sections = [
            *declared_sections(study, given, options, models),
            board_section(main, options, is_confirmatory=is_declared, has_tests=not is_declared),
            agreement,
        ]
        asked_of = tuple(primary.criteria) if primary is not None and primary.criteria else given.criteria
        own = _own_sections(data, given, options, asked_of)
        sections += [section for section in own if study.spec.items.kind == "arena"]
        others = [head_to_head_section(main, [single for single in singles if single.label != main.label], options)]
        if not has_all:
            board = board_section(overall, options, is_confirmatory=False, has_tests=True)
            tables = tuple(replace(part, name=f"all-systems-{part.name}") for part in board.parts)
            others.append(replace(board, name="all-systems", title=f"All systems: {overall.label}", parts=tables))
        if singles:
            others.append(questions_section(singles, overall, main))
        rankings = [main, *(board for board in [*singles, overall] if board.label != main.label)]
        others.append(model_section(rankings, has_rankings=given.has_rankings, is_order_drawn=is_order_drawn(study)))
        others += [
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {inside(question_label(study, question))}",
                partial(system_group_section, data, given, question, options),
            )
            for question in study.spec.analysis.subgroups
        ]
        others += duplicates_sections(given)
        others += [section for section in own if study.spec.items.kind != "arena" and not section.problem]
        findings = Findings(
            answer=answer_words(main, name=_name(main)),
            certainty=certainty_words(main, options, is_declared=is_declared),
            basis=basis_words(main, is_declared=is_declared),
            headlines=headlines(main, options, is_declared=is_declared),
            figure=board_figure("summary", main, is_confirmatory=is_declared),
            sections=(*sections, *in_appendix(others)),
            methods=(
                *_methods(main, options, has_rankings=given.has_rankings),
                *(style_method(section) for section in own if section.name == "style" and not section.problem),
                *((groups_method(options, over=groups_over(given, options)),) if study.spec.analysis.subgroups else ()),
            ),
            warnings=warnings_of(given, main),
            claims=_claims(main),
            next_steps=() if study.spec.items.kind == "arena" else alpha_steps(agreement),
        )
        return with_prefix(findings, "leaderboard")


ANALYSES.register("leaderboard")(Leaderboard())


def _own_sections(data: StudyData, given: SystemVotes, options: Options, criteria: tuple[str, ...]) -> list[Section]:
    """What arenas show beside the ranking, and the ranking with and without style wherever the texts are known."""
    study = data.study
    criteria = tuple(name for name in criteria if name in given.criteria)
    sections = []
    if study.spec.items.kind == "arena":
        sections.append(
            section_or_problem(
                "outcomes", "Outcomes of each pair of systems", partial(outcomes_section, data, criteria)
            )
        )
        if not data.battles.is_empty():
            sections.append(
                section_or_problem("conversations", "The conversations", partial(conversations_section, data))
            )
    if has_texts(study) and not given.has_rankings:
        build = partial(style_section, data, given, options, criteria=criteria)
        sections.append(section_or_problem("style", STYLE_TITLE, build))
    return sections


def _claims(main: SystemRanking) -> tuple[Claim, ...]:
    """What the answer states: the first is ahead of those that are significantly behind it."""
    if main.ranks is None:
        return ()
    claims = lead_claims(main.ranked, main.rivals())
    return tuple(replace(claim, is_general=not main.model.is_about_these_items) for claim in claims)


def has_item_sample(model: VoteModel) -> bool:
    """Whether tests take the items as a sample beside the raters."""
    return model.strengths is not None and model.strengths.variance.items is not None


def is_order_drawn(study: Study) -> bool:
    """Whether chance decided which system stood first on the screen."""
    return study.spec.design.system_order != "fixed"


def _main(
    primary: Comparison | None,
    given: SystemVotes,
    singles: list[SystemRanking],
    overall: SystemRanking,
    fit: partial[SystemRanking],
) -> SystemRanking:
    """The ranking that gives the answer: the primary comparison's questions and systems, else everything."""
    if primary is None:
        return overall
    questions = comparison_questions(given, primary)
    labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
    if primary.levels and not set(given.names) <= set(primary.levels):
        label = overall.label if questions == given.criteria else listed(labels)
        return fit(comparison_votes(given, primary), label)
    if questions == given.criteria:
        return overall
    single = next((single for single in singles if [single.label] == labels), None)
    return single or fit(given.on(questions), listed(labels))


def _declared_models(
    study: Study, given: SystemVotes, options: Options, main: SystemRanking, primary: Comparison | None
) -> dict[str, VoteModel]:
    """The model of each declared comparison that has votes; that of the primary one is the leaderboard's."""
    models = {}
    for comparison in study.spec.analysis.comparisons:
        if comparison is primary:
            models[comparison.name] = main.model
        elif comparison.between == "systems" and comparison_questions(given, comparison):
            votes = comparison_votes(given, comparison)
            if votes.n:
                models[comparison.name] = vote_model(votes, options, is_order_drawn=is_order_drawn(study))
    return models


def _name(main: SystemRanking) -> str:
    return "" if main.label == ALL_QUESTIONS else main.label


def _shared_words(votes: Votes) -> str:
    """How items that have something in common were counted."""
    if votes.prompt is not None:
        return "; items of one prompt count as one"
    return "; votes on pairs that show the same transcript are correlated" if votes.text is not None else ""


def _methods(main: SystemRanking, options: Options, *, has_rankings: bool) -> tuple[Method, ...]:
    over = "raters and items" if has_item_sample(main.model) else "raters"
    is_profiled = main.model.strengths is None or main.model.strengths.is_profiled
    interval, test = ("profile likelihood", "likelihood ratio") if is_profiled else ("Wald's method", "Wald test")
    methods = [
        Method(
            "strengths, ranks and the leaderboard",
            f"{main.fit.method}; intervals by {interval} with the design effect over {over}, Student's t",
            "one vote says little, and the votes of one rater or on one item are correlated; the model joins all comparisons on "
            "one scale",
            "Bradley and Terry 1952; "
            + ("Davidson 1970; " if main.fit.fitted.model.has_ties else "")
            + "Ford 1957",
        ),
        Method(
            "each pair of systems",
            f"{test} of equal strengths divided by its design effect over {over} (two-way jackknife), Student's t "
            "with design-based degrees of freedom; where all votes on a pair point one way, each rater or item counts once",
            f"which raters took part and which items they saw are samples{_shared_words(main.votes)}"
            if over != "raters"
            else "which raters took part is a sample",
            "Rao and Scott 1984; Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023"
            + ("; Aronow, Samii and Assenova 2015" if over != "raters" and main.votes.text is not None else ""),
        ),
        Method(
            "rank intervals",
            "from the corrected tests: systems that are significantly better and worse",
            "they cannot contradict the tests and hold for all systems at once",
            "Al Mohamad, Goeman and van Zwet 2022",
        ),
        Method(
            "whether systems differ at all",
            "smallest p-value of all pairs, corrected (Holm)",
            "the systems differ if any two of them do",
        ),
        Method(
            "head to head",
            "share of decisive direct votes; exact interval where each rater voted once on a pair, else with the effective "
            f"number of votes over {over}",
            "describes without a model of strengths",
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
