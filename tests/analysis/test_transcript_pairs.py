"""Reports on controlled transcript pairs: published numbers come out again, simulated truth is found, bad data make sentences."""

import dataclasses
import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import ANSWER_COLUMNS, data_from_arrays
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.families.common.costs import cost_section
from dialometer.analysis.families.pairs.choices import pair_choices, pair_items
from dialometer.analysis.families.pairs.results import all_shares, declared_shares, share_here
from dialometer.analysis.planning.simulated_study import resized
from dialometer.analysis.reproduce.guerini import COUNTS, QUESTIONS
from dialometer.analysis.shared.comparisons import p_adjusted
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.estimate import Estimate
from dialometer.model.report import Figure, Table, Turns
from report_parts import rows_of, section_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=300, seed=1, correction="holm")
PAPER_NAMES = {"formality": "formal"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "strategies"
    copy_template("strategies", path)
    return path


@pytest.fixture(scope="module")
def study(folder):
    """The template with two pairs a strategy."""
    return resized(load_study(folder), 10)


def made(study, choose, *, n_raters, first_shown=None, items_per_block=1, seed=0):
    """Study data: ``choose(rater, item, question)`` gives +1 (experimental), -1, "tie" or "cannot_tell"."""
    rng = np.random.default_rng(seed)
    rows = []
    for rater in range(n_raters):
        position = 0
        for block in study.blocks:
            items = [item for item in pair_items(study) if item.block == block.name] or []
            start = rater % max(1, len(items))
            for item in (items[start:] + items[:start])[:items_per_block]:
                position += 1
                a, b = item.a.system, item.b.system
                first = first_shown(item) if first_shown else (a, b)[rng.integers(2)]
                order = f"{first}|{b if first == a else a}"
                for criterion in study.block_criteria(block):
                    answer = choose(rater, item, criterion.name)
                    choice = {1: b, -1: a}.get(answer, answer)
                    side = 0 if choice not in (a, b) else 1 if choice == first else 2
                    rows.append((rater + 1, block.name, item.id, criterion.name, position, side, order, choice))
    return from_rows(study, rows)


def from_rows(study, rows):
    rater, block, item, criterion, position, side, order, choice = map(list, zip(*rows, strict=True))
    n = len(rows)
    return data_from_arrays(
        study,
        {
            "rater": np.array(rater),
            "cell": np.zeros(n, dtype=np.int64),
            "block": np.array(block, dtype=object),
            "item": np.array(item, dtype=object),
            "system": np.full(n, "", dtype=object),
            "criterion": np.array(criterion, dtype=object),
            "scale": np.full(n, "pairwise", dtype=object),
            "position": np.array(position),
            "side": np.array(side),
            "order": np.array(order, dtype=object),
            "value": np.full(n, np.nan),
            "choice": np.array(choice, dtype=object),
            "worst": np.full(n, "", dtype=object),
        },
        minutes_by_rater=np.full(len(set(rater)), 6.0),
    )


def with_answers(data, question, answer_of):
    raters = data.sessions["rater"].to_list()
    rows = [
        (r, "post", question, json.dumps(answer_of(k)), answer_of(k), None)
        for k, r in enumerate(raters)
        if answer_of(k)
    ]
    return dataclasses.replace(data, answers=pl.DataFrame(rows, schema=ANSWER_COLUMNS, orient="row"))


def run(data, options=OPTIONS):
    return ANALYSES.get("transcript_pairs").run(data, options)


def section(found, name):
    return section_of(found, f"pairs-{name}")


def table(found, name):
    return table_of(found, f"pairs-{name}")


@pytest.fixture(scope="module")
def published(study):
    """143 raters whose choices add up to the published counts of every cell."""
    rng = np.random.default_rng(7)
    chosen = {key: set(rng.permutation(143)[:count].tolist()) for key, count in COUNTS.items()}

    def choose(rater, item, question):
        return 1 if rater in chosen[PAPER_NAMES.get(item.block, item.block), question] else -1

    return made(study, choose, n_raters=143)


def test_the_published_table_comes_out_with_its_tests(published):
    found = run(published)
    wide = {row["strategy"]: row for row in rows_of(table(found, "preference"))}
    for block in ("empathy", "formality", "facing", "vocabulary", "alignment"):
        paper = PAPER_NAMES.get(block, block)
        for question in QUESTIONS:
            count = COUNTS[paper, question]
            share = wide[block][question]
            assert share.value == pytest.approx(count / 143)
            assert share.p_value == pytest.approx(stats.binomtest(count, 143).pvalue)
        total = sum(COUNTS[paper, question] for question in QUESTIONS)
        assert wide[block]["marginal"].value == pytest.approx(total / (4 * 143))
    assert wide["All strategies"]["marginal"].value == pytest.approx(sum(COUNTS.values()) / 2860)
    tests = {(row["strategy"], row["question"]): row for row in rows_of(table(found, "preference-tests"))}
    chi2 = stats.chisquare([86, 57])
    assert tests["alignment", "Ease of use"]["chi2"] == pytest.approx(chi2.statistic)
    assert tests["alignment", "Ease of use"]["chi2_p"] == pytest.approx(chi2.pvalue)
    assert found.answer == (
        "In the two transcript pairs of each strategy, raters preferred the experimental version for all 5 strategies, from 63% of "
        "the choices (alignment) to 75% (empathy); two pairs are too few to say that a strategy is preferred in general."
    )
    assert "143 raters made 2,860 choices on 10 transcript pairs" in found.certainty


def test_declared_comparisons_are_confirmatory_and_nothing_else_is(published):
    found = run(published)
    declared = section(found, "declared")
    assert declared.is_confirmatory
    assert [part.name for part in declared.parts] == [
        "pairs-declared-strategies_preferred",
        "pairs-declared-service_quality",
        "pairs-declared-experience_quality",
    ]
    service = {row["strategy"]: row for row in rows_of(declared.parts[1])}
    assert service["empathy"]["share"].value == pytest.approx(
        (COUNTS["empathy", "ease"] + COUNTS["empathy", "utility"]) / 286
    )
    assert not any(one.is_confirmatory for one in found.sections if one is not declared)
    questions = rows_of(table(found, "questions-by-strategy"))
    assert {row["strategy"]: row["most"] for row in questions}["formality"] == "Satisfaction (80%)"
    assert {row["strategy"]: row["most-0"] for row in questions}["formality"] == "Ease of use (74%)"


def test_a_rater_who_always_answers_alike_counts_once(study):
    """Four equal answers of each rater are one piece of evidence: the marginal's test is that of 40 raters, not of 160 answers."""
    data = made(study, lambda rater, item, question: 1 if rater < 27 else -1, n_raters=40)
    choices = pair_choices(data)
    share = share_here(choices.where(choices.strategy == 0), confidence=0.95)
    by_rater = stats.binomtest(27, 40).pvalue
    pooled = stats.binomtest(108, 160).pvalue
    assert share.p_value == pytest.approx(by_rater, rel=0.35)
    assert share.p_value > 100 * pooled
    assert share.details["n_raters"] == 40


def test_two_pairs_of_a_strategy_by_one_rater_are_not_independent_cells(study):
    data = made(study, lambda rater, item, question: 1 if rater < 20 else -1, n_raters=30, items_per_block=2)
    shares = all_shares(pair_choices(data), OPTIONS)
    cell = shares.cells[0, 0].here
    assert cell.n == 60
    assert "cluster-robust" in cell.method
    assert "tested by rater" in table(run(data), "preference-tests").notes[-1]


def test_an_open_question_and_a_rejected_strategy_are_told_apart(study):
    rng = np.random.default_rng(3)
    share = {"empathy": 0.9, "formality": 0.1, "facing": 0.5, "vocabulary": 0.5, "alignment": 0.85}
    data = made(study, lambda r, item, q: 1 if rng.random() < share[item.block] else -1, n_raters=60)
    answer = run(data).answer
    assert "experimental version is preferred for empathy" in answer
    assert "control version is preferred for formality" in answer
    assert "No preference is significant for" in answer.split("formality")[1]


def test_subgroups_that_differ_are_found_and_single_raters_only_shown(study):
    rng = np.random.default_rng(6)

    def choose(rater, item, question):
        share = 0.95 if item.block == "facing" and rater % 2 else 0.55
        return 1 if rng.random() < share else -1

    data = made(study, choose, n_raters=81)
    data = with_answers(data, "gender", lambda k: "Non-binary" if k == 80 else ("Man", "Woman")[k % 2])
    found = section(run(data), "subgroup-gender")
    assert "differ significantly in their preference for facing." in found.paragraphs[0]
    shown = found.parts[0]
    assert [c.label for c in shown.columns[1:4]] == ["Woman (n = 40)", "Man (n = 40)", "Non-binary (n = 1)"]
    assert "Exploratory" in shown.notes[0]
    assert "With one rater only, Non-binary" in shown.notes[1]
    facing = next(row for row in rows_of(shown) if row["strategy"] == "facing")
    assert facing["group-0"].value > facing["group-1"].value
    assert facing["p_adjusted"] < 0.01


def test_a_subgroup_question_nobody_answered_makes_a_sentence(study):
    found = run(made(study, lambda *_: 1, n_raters=5))
    assert "no rater has answered “Which of these describes you best?” yet" in section(found, "subgroup-gender").problem


def test_numbers_of_many_values_are_split_at_the_median(study):
    rng = np.random.default_rng(9)
    data = made(study, lambda r, i, q: 1 if rng.random() < 0.6 else -1, n_raters=40)
    data = with_answers(data, "comment", lambda k: str(20 + k))
    spec = study.spec.model_copy(update={"analysis": study.spec.analysis.model_copy(update={"subgroups": ["comment"]})})
    data = dataclasses.replace(data, study=dataclasses.replace(study, spec=spec))
    shown = table(run(data), "subgroup-comment")
    assert [c.label for c in shown.columns[1:3]] == ["up to 39.5 (n = 20)", "above 39.5 (n = 20)"]
    assert "split at the median" in shown.notes[0]


def test_the_place_on_the_screen(study):
    rng = np.random.default_rng(2)
    firsts = {}

    def shown_first(item):
        firsts["now"] = (item.a.system, item.b.system)[rng.integers(2)]
        return firsts["now"]

    def choose(rater, item, question):
        chosen = firsts["now"] if rng.random() < 0.7 else ({item.a.system, item.b.system} - {firsts["now"]}).pop()
        return 1 if chosen == item.b.system else -1

    found = section(run(made(study, choose, n_raters=80, first_shown=shown_first)), "side")
    overall = rows_of(found.parts[0])[-1]
    assert overall["first"].low < 0.7 < overall["first"].high
    assert overall["p"] < 0.001
    assert "does not favour either version" in found.paragraphs[0]
    fixed = section(
        run(made(study, choose, n_raters=20, first_shown=lambda item: firsts.setdefault("now", item.a.system))), "side"
    )
    assert "cannot be separated from that of the side" in fixed.paragraphs[0]


def test_cost_and_duration_are_counted(study, folder):
    text = (folder / "study.yaml").read_text().replace("  minutes: 9", "  minutes: 9\n  fee_percent: 20")
    other = folder.parent / "with_fee"
    copy_template("strategies", other)
    (other / "study.yaml").write_text(text)
    with_fee = load_study(other)
    data = made(with_fee, lambda *_: 1, n_raters=10)
    shown = dict(cost_section(data, OPTIONS, per=("strategy", 5)).parts[0].rows)
    assert shown["Total cost"] == "19.20 USD"
    assert shown["Cost per strategy"] == "3.84 USD"
    assert shown["Cost per judgment that counts"] == "0.096 USD"
    assert shown["Pay per hour at the median length"] == "16.00 USD"
    assert shown["Median length of a session"].startswith("6.0 minutes")


def test_a_tie_is_a_method_only_where_the_scale_has_one(study):
    whats = [method.what for method in run(made(study, lambda *_: 1, n_raters=4)).methods]
    assert not any("ties" in what for what in whats)
    scales = study.spec.scales | {"which": study.spec.scales["which"].model_copy(update={"allow_cannot_tell": True})}
    unsure = dataclasses.replace(study, spec=study.spec.model_copy(update={"scales": scales}))
    assert run(made(unsure, lambda *_: 1, n_raters=4)).methods[-1].what == "“cannot tell”"


def test_questions_with_the_same_share_are_all_named(study):
    """Every rater chooses the experimental version, but for ease half the time."""
    found = run(made(study, lambda rater, item, question: -1 if question == "ease" and rater % 2 else 1, n_raters=12))
    row = rows_of(table(found, "questions-by-strategy"))[0]
    assert row["most"] == "Utility, Satisfaction and Interaction (100%)"
    assert row["least"] == "Ease of use (50%)"


def test_pairs_that_cannot_be_tested_are_not_said_to_be_alike(study):
    """Two raters, of whom each reads another pair: one rater a pair allows no test."""
    found = run(made(study, lambda rater, item, question: 1 if rater else -1, n_raters=2))
    words = section(found, "transcripts").paragraphs[0]
    assert "No strategy shows" not in words
    assert "differ cannot be tested: a group has answers of fewer than two raters" in words


def test_the_differences_rebuild_both_transcripts(study, published):
    turns = [part for part in section(run(published), "transcripts").parts if isinstance(part, Turns)]
    assert len(turns) == len(pair_items(study))
    for part, item in zip(turns, pair_items(study), strict=True):
        for place, side in ((1, item.a), (2, item.b)):
            texts = ["".join(stretch[place] for stretch in stretches) for _, stretches in part.rows]
            assert texts == [turn.text for turn in side.turns]
        assert "Choices for the experimental version:" in part.caption


def test_pairs_that_differ_are_said_in_the_summary(study):
    rng = np.random.default_rng(4)

    def choose(rater, item, question):
        return 1 if rng.random() < (0.95 if item.id == "empathy-1" else 0.6) else -1

    found = run(made(study, choose, n_raters=80))
    assert any("For empathy the preference depends on which pair was read" in warning for warning in found.warnings)
    assert "The pairs differ significantly for empathy" in section(found, "transcripts").paragraphs[0]


@pytest.mark.parametrize(
    "choose",
    [
        pytest.param(lambda *_: "tie", id="all ties"),
        pytest.param(lambda *_: "cannot_tell", id="nobody can tell"),
        pytest.param(lambda *_: 1, id="all alike"),
        pytest.param(lambda r, i, q: "tie" if r % 2 else 1, id="half ties"),
    ],
)
@pytest.mark.parametrize("n_raters", [1, 2, 9])
def test_degenerate_answers_give_sentences(study, choose, n_raters):
    report = analyse(study, made(study, choose, n_raters=n_raters), n_resamples=200)
    assert report.summary.answer
    assert report.summary.certainty
    for one in report.sections:
        assert one.problem or one.parts or one.paragraphs


def test_all_ties_say_that_there_are_not_enough_data(study):
    found = run(made(study, lambda *_: "tie", n_raters=6))
    assert found.answer.startswith("There are not enough data on empathy")
    assert found.answer.endswith("(no answer for either side).")
    assert "not enough for a test" in found.certainty
    assert all(row["marginal"] is None for row in rows_of(table(found, "preference")))


def test_an_empty_block_is_not_zero(study):
    data = made(study, lambda *_: 1, n_raters=12)
    data = dataclasses.replace(data, judgments=data.judgments.filter(pl.col("block") != "facing"))
    found = run(data)
    row = next(row for row in rows_of(table(found, "preference")) if row["strategy"] == "facing")
    assert [row[q] for q in (*QUESTIONS, "marginal")] == [None] * 5
    assert "not enough data on facing" in found.answer


def test_strange_choices_are_left_out_and_said(study):
    data = made(study, lambda *_: 1, n_raters=12)
    spoilt = data.judgments.with_columns(
        pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("purple")).otherwise(pl.col("choice")).alias("choice")
    )
    found = run(dataclasses.replace(data, judgments=spoilt))
    assert "3 answers named neither transcript (purple) and were excluded." in found.warnings


def test_no_judgments_at_all(study):
    data = made(study, lambda *_: 1, n_raters=1)
    report = analyse(study, dataclasses.replace(data, judgments=data.judgments.clear()))
    assert report.summary.answer == "There are no judgments yet."


def test_intervals_hold_the_truth_and_tests_the_null():
    """Raters lean to one side by chance (correlated answers): marginals stay honest where pooled answers would not."""
    rng = np.random.default_rng(11)
    n_sims, n_raters, n_answers, n_pooled, n_held, n_false = 600, 30, 4, 0, 0, 0
    for _ in range(n_sims):
        lean = rng.beta(1.5, 1.5, n_raters)
        signed = np.where(rng.random((n_raters, n_answers)) < lean[:, None], 1.0, -1.0)
        raters = np.repeat(np.arange(n_raters), n_answers)
        choices = _choices(signed.ravel(), raters)
        share = share_here(choices, confidence=0.95)
        n_held += share.low <= 0.5 <= share.high
        n_false += share.p_value <= 0.05
        n_pooled += stats.binomtest(int((signed == 1).sum()), signed.size).pvalue <= 0.05
    margin = 3 * math.sqrt(0.05 * 0.95 / n_sims)
    assert abs(n_held / n_sims - 0.95) < margin
    assert abs(n_false / n_sims - 0.05) < margin
    assert n_pooled / n_sims > 0.1


def _choices(signed, raters):
    from dialometer.analysis.families.pairs.choices import PairChoices

    n = len(signed)
    zeros = np.zeros(n, dtype=np.int64)
    return PairChoices(
        ("s",), ("q",), ("i",), ("s",), ("q",), signed, np.full(n, np.nan), raters, zeros, zeros, zeros, zeros,
        np.unique(raters).astype(str),
    )  # fmt: skip


def test_declared_families_are_corrected_each_by_itself(study, published):
    choices = pair_choices(published)
    for one in declared_shares(study, choices, OPTIONS):
        for reach in ("here", "general"):
            tests = [getattr(result, reach) for result in one.results]
            smallest = min(tests, key=lambda test: test.p_value)
            assert p_adjusted(smallest) == pytest.approx(min(1.0, len(tests) * smallest.p_value))


def test_every_number_of_a_table_is_whole(published):
    for one in run(published).sections:
        for part in one.parts:
            if isinstance(part, Table):
                for row in part.rows:
                    for cell in row:
                        assert not (isinstance(cell, float) and math.isnan(cell)), (part.name, row)
                        assert not (isinstance(cell, Estimate) and not cell.method)
            if isinstance(part, Figure):
                assert part.alt
                json.dumps(part.spec)
