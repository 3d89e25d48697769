"""What has no test is not called "not significant": with one rater, or where all raters agree, the report says so."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.conversations.self_ratings import _answer
from dialometer.analysis.shared.comparisons import no_position_words, preferred_words
from dialometer.analysis.shared.ranking import Lead, not_clear_words, possible_ranks, rank_range
from dialometer.analysis.shared.subgroups import GroupTest, RaterGroups, group_notes
from dialometer.model.estimate import Estimate
from report_parts import section_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")


def made(p: float, value: float = 1.0) -> Estimate:
    return Estimate(value, 10, "t", p_value=p, details={"p_adjusted": p}, label="A")


UNTESTED = made(math.nan)


def test_pairs_without_a_test() -> None:
    assert preferred_words({("A", "B"): UNTESTED}, OPTIONS) == "nothing can be tested yet"
    assert preferred_words({("A", "B"): made(0.01), ("A", "C"): UNTESTED}, OPTIONS) == (
        "A is preferred to B (p\u00a0=\u00a0.010); there is no test of A against C"
    )
    assert (
        preferred_words({("A", "B"): made(0.2)}, OPTIONS) == "A and B do not differ significantly (p\u00a0=\u00a0.200)"
    )


def test_a_position_without_a_test() -> None:
    assert "cannot be tested yet" in no_position_words([UNTESTED, UNTESTED])
    assert "no significant difference" in no_position_words([UNTESTED, made(0.3)])


def test_systems_behind_level_and_untested_are_told_apart() -> None:
    assert not_clear_words(Lead("A", ("B",), ("C",), ("D",)), "with") == (
        "significantly higher than those with B, but not significantly higher than those with C, and there is no test against D"
    )
    assert not_clear_words(Lead("A", (), (), ("B", "C")), "of") == "but there is no test against B or C"


def test_possible_ranks_follow_from_the_tests() -> None:
    pairs = {("A", "B"): made(0.01), ("A", "C"): made(0.01), ("B", "C"): made(0.4)}
    assert [rank_range(possible_ranks("ABC", pairs, name)) for name in "ABC"] == ["1", "2–3", "2–3"]


def test_groups_that_cannot_be_compared_are_named_once() -> None:
    groups = RaterGroups("use", "Use", "How often?", ("a", "b"), np.array([0, 1]))
    none = GroupTest((), replace(UNTESTED, notes=("no test: too few",)))
    assert group_notes(groups, [none, none]) == ()  # the paragraph above the table says it
    assert group_notes(groups, [GroupTest((), made(0.3)), none]) == ("No test for “A”: too few.",)


@pytest.mark.parametrize("name", ["compare", "best-worst", "avatar", "chat", "arena"])
def test_one_rater_tests_nothing(template, quick, name) -> None:
    """Raters' judgments that nobody else can be compared with."""
    study = template(name)
    data = quick(study, n_raters=1)
    report = analyse(study, data, n_resamples=100)
    said = " ".join([report.summary.answer, report.summary.certainty])
    own = [part for part in report.sections if part.name != "retrieval"]  # there questions are the sample
    said += " ".join(text for part in own for text in part.paragraphs)
    said += " ".join(headline.sentence for headline in report.summary.headlines)
    assert "significant" not in said.replace("Two choices agree where the same tests are significant", "")


def test_the_same_first_answers_are_counted_among_those_judged(template, quick) -> None:
    study = template("avatar")
    report = analyse(study, quick(study, n_raters=1), n_resamples=100)
    words = next(text for text in section_of(report, "first_answers").paragraphs if "mostly the same answers" in text)
    counts = [text.split(" questions")[0].split(" of ") for text in words.split("the same first answer to ")[1:]]
    assert counts
    assert all(int(same) <= int(both) for same, both in counts)


@pytest.mark.parametrize("name", ["compare", "avatar", "chat"])
def test_interim_tiles_say_so(template, quick, name) -> None:
    study = template(name)
    data = quick(study, n_raters=4)
    report = analyse(study, data, n_resamples=100)
    assert report.summary.answer.split(":")[0].count("so far") == 1
    assert report.summary.headlines
    assert all("ignificant so far" in headline.sentence for headline in report.summary.headlines)


def test_of_three_systems_the_answer_names_those_that_are_behind() -> None:
    means = {name: Estimate(value, 10, "mean") for name, value in (("Juno", 4.0), ("Kit", 3.8), ("Tak", 2.0))}
    ratings = SimpleNamespace(label="Overall", ends=(1, 5))
    main = SimpleNamespace(lead=Lead("Juno", ("Tak",), ("Kit",)), means=means, ratings=ratings)
    assert _answer(main) == (
        "Dialogues with Juno are rated highest (Overall: 4.00 against 3.80 with Kit and 2.00 with Tak, on the scale from 1 to 5), "
        "significantly higher than those with Tak, but not significantly higher than those with Kit."
    )


def test_the_table_of_hypotheses_says_when_all_tests_point_the_other_way(template, quick) -> None:
    study = template("chat")
    data = quick(study, n_raters=20)
    worse = pl.when(pl.col("system") == "juno").then(1).otherwise(4)
    noise = pl.col("rater").str.slice(1).cast(pl.Int64) % 2 * (pl.col("system") == "juno").cast(pl.Int64)
    turned = data.judgments.with_columns(value=(worse + noise).cast(pl.Float64))
    report = analyse(study, replace(data, judgments=turned), n_resamples=100)
    [*_, second] = report.summary.verdicts
    assert second.tests.startswith("Both tests are significant in the other direction. ")
    assert table_of(report, "hypotheses").rows[1][2] == second.tests
