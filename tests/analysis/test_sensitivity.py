"""Other choices: each row is the family's own test on other data or settings, recomputed here by hand or by scipy."""

import time
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import ALTERNATIVES, Options, OtherChoice
from dialometer.analysis.families.common import sensitivity
from dialometer.analysis.families.common.other_choices import (
    DECLARED,
    REPORTED,
    ChoiceOutcome,
    all_outcomes,
    changed,
    contested,
    exclusion_choices,
    is_same,
    untested,
)
from dialometer.analysis.families.common.sensitivity import NAME, Sensitivity, _changes, sensitivity_section
from dialometer.analysis.families.votes.vote_alternatives import _log_odds
from dialometer.analysis.shared.comparisons import deciding_family, primary_comparison
from dialometer.design.templates import template_names
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth
from report_parts import rows_of, section_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=1, correction="holm")


def outcomes_of(data, options=OPTIONS):
    declared, others = all_outcomes(data, primary_comparison(data.study), options)
    return declared, {outcome.name: outcome for outcome in others}


def with_flags(data, excluded, flagged):
    """The same data where rules exclude some raters and flag others."""
    rows = [(rater, rule, "exclude", "") for rule, raters in excluded.items() for rater in raters]
    rows += [(rater, rule, "flag", "") for rule, raters in flagged.items() for rater in raters]
    findings = pl.DataFrame(rows, schema=data.findings.schema, orient="row")
    out = pl.col("rater").is_in([rater for raters in excluded.values() for rater in raters])
    return replace(
        data, findings=findings, judgments=data.judgments.filter(~out), set_aside=data.judgments.filter(out),
        sessions=data.sessions.with_columns(out.alias("is_excluded")),
    )  # fmt: skip


def test_exclusions_are_made_one_by_one(template, quick):
    study = template("likert")
    everyone = quick(study, n_raters=20)
    names = sorted(everyone.judgments["rater"].unique())
    data = with_flags(everyone, {"gold": names[:2], "attention": names[1:4]}, {"speed": names[5:7]})
    comparison = primary_comparison(study)
    choices = {choice.label: choice.tests() for choice in exclusion_choices(data, comparison, OPTIONS)}
    expected = {
        "nobody excluded": names,
        "only by the rule gold": names[2:],
        "only by the rule attention": [names[0], *names[4:]],
        "raters flagged by the rule speed excluded too": [names[4], *names[7:]],
    }
    assert set(choices) == set(expected)
    family = deciding_family(study)
    for label, raters in expected.items():
        rows = everyone.judgments.filter(pl.col("rater").is_in(raters))
        own = family.primary_tests(replace(everyone, judgments=rows), comparison, OPTIONS)
        assert {k: e.p_value for k, e in choices[label].items()} == pytest.approx(
            {k: e.p_value for k, e in own.items()}
        )


def test_the_declared_row_is_the_result_of_the_report(template, quick):
    data = quick(template("likert"), n_raters=20)
    declared, _ = outcomes_of(data)
    section = next(section for section in analyse(data.study, data, n_resamples=100).sections if section.name == NAME)
    row = section.parts[1].rows[0]
    assert row[0] == DECLARED
    assert row[1].value in [test.value for test in declared.tests.values()]


def test_without_a_declared_comparison_the_first_row_is_the_answer_of_the_report(template, quick):
    made = quick(template("likert"), n_raters=12)
    analysis = made.study.spec.analysis.model_copy(update={"comparisons": [], "primary": None})
    study = replace(made.study, spec=made.study.spec.model_copy(update={"analysis": analysis}))
    report = analyse(study, replace(made, study=study), n_resamples=100)
    row = table_of(report, NAME).rows[0]
    assert row[0] == REPORTED
    pairs = rows_of(table_of(report, "system_pairs"))
    pairs = [cells for cells in pairs if cells["criterion"].startswith("All criteria")]
    assert row[1].value in [pytest.approx(sign * cells["estimate"].value) for cells in pairs for sign in (1, -1)]
    assert row[2] in [pytest.approx(cells["p_adjusted"]) for cells in pairs]
    assert not any("confirmatory" in text for text in section_of(report, NAME).paragraphs)


def test_simpler_models_are_t_tests_of_raters_and_items(template, quick):
    study = template("likert")
    data = quick(study, n_raters=16)
    _, others = outcomes_of(data)
    rows = data.judgments.filter(
        (pl.col("criterion") == "helpfulness")
        & pl.col("item").is_in([item.id for item in study.rated_items if item.id not in study.gold_ids])
    )
    wide = rows.pivot(on="system", index=["rater", "item"], values="value", aggregate_function="mean")
    for key, name in (
        ("rater", "raters' means, t-test (these items only)"),
        ("item", "items' means, t-test (these raters only)"),
    ):
        gaps = wide.group_by(key).agg((pl.col("neural") - pl.col("rules")).mean().alias("gap"))["gap"].drop_nulls()
        tests = others[f"Model: {name}"].tests
        test = next(test for label, test in tests.items() if "Neural" in label and "Rules" in label)
        peer = stats.ttest_1samp(gaps.to_numpy(), 0)
        sign = 1 if test.details["first"] == "neural" else -1
        assert sign * test.statistic == pytest.approx(peer.statistic)
        assert test.p_value == pytest.approx(peer.pvalue)
    assert "Model: mean difference within screens, two-way jackknife" in others, (
        "not that of a declared model of ratings"
    )


def test_shares_of_raters_in_pairs_and_in_direct_votes(template, quick):
    study = template("strategies")
    data = quick(study, n_raters=20)
    declared, others = outcomes_of(data)
    tests = others["Model: raters' means, t-test (these items only)"].tests
    assert set(tests) == set(declared.tests)
    block = study.blocks[0]
    rows = data.judgments.filter(
        pl.col("item").is_in([item.id for item in study.block_items(block)])
        & pl.col("choice").is_in(["control", "experimental"])
    )
    shares = rows.group_by("rater").agg((pl.col("choice") == "experimental").mean().alias("share"))["share"]
    assert tests[block.name].p_value == pytest.approx(stats.ttest_1samp(shares.to_numpy(), 0.5).pvalue)

    data = quick(template("acute"), n_raters=20)
    declared, others = outcomes_of(data)
    tests = others["Direct votes: raters' means, t-test (these items only)"].tests
    assert set(tests) == set(declared.tests)
    rows = data.judgments.filter(
        (pl.col("criterion") == "engagingness") & pl.col("order").is_in(["fern|moss", "moss|fern"])
        & pl.col("item").is_in([item.id for item in data.study.rated_items if item.id not in data.study.gold_ids])
    )  # fmt: skip
    points = pl.when(pl.col("choice") == "fern").then(1.0).when(pl.col("choice") == "moss").then(0.0).otherwise(0.5)
    shares = rows.group_by("rater").agg(points.mean().alias("share"))["share"].to_numpy()
    test = tests["Fern against Moss"]
    assert test.p_value == pytest.approx(stats.ttest_1samp(shares, 0.5).pvalue)
    assert test.value == pytest.approx(np.log(shares.mean() / (1 - shares.mean())))


def test_log_odds_of_direct_votes_have_the_ends_of_their_share(template, quick):
    """What a test rejects its interval excludes; an interval of shares beyond 0 or 1 has no end as log odds."""
    share = Estimate(0.84, 30, "share", low=0.52, high=1.16, p_value=0.03, details={"standard_error": 0.13})
    shown = _log_odds(share)
    assert (shown.value, shown.low) == (pytest.approx(np.log(0.84 / 0.16)), pytest.approx(np.log(0.52 / 0.48)))
    assert shown.high == np.inf
    assert shown.p_value == share.p_value
    assert "standard_error" not in shown.details
    assert not _log_odds(replace(share, low=-0.1)).has_interval

    data = quick(template("pairs"), n_raters=20)
    _, others = outcomes_of(data)
    for name, outcome in others.items():
        for test in outcome.tests.values() if name.startswith("Direct votes") else ():
            assert (test.p_value <= 1 - test.confidence) == (not test.low <= 0 <= test.high)
    means = next(iter(others["Direct votes: items' means, t-test (these raters only)"].tests.values()))
    assert means.method == "mean of items' means, t-test of 0.5"


def test_only_the_best_counts(template, quick):
    data = quick(template("best-worst"), n_raters=20)
    declared, others = outcomes_of(data, replace(OPTIONS, has_fixed_items=True))
    assert set(others["Choices: only the best counts"].tests) == set(declared.tests)
    rows = data.judgments.filter(
        (pl.col("criterion") == "quality")
        & pl.col("item").is_in([item.id for item in data.study.rated_items if item.id not in data.study.gold_ids])
    )
    gap = (pl.col("choice") == "template").cast(pl.Float64) - (pl.col("choice") == "retrieval").cast(pl.Float64)
    means = rows.group_by("rater").agg(gap.mean().alias("gap"))["gap"].to_numpy()
    test = others["Choices: only the best counts"].tests["Template against Retrieval"]
    assert test.statistic == pytest.approx(stats.ttest_1samp(means, 0).statistic)


def test_z_scores_come_back_in_points(template, quick):
    """Raters who use the scale alike: z scores rescaled by the spread within raters give nearly the same difference."""
    data = quick(template("likert"), n_raters=30)
    declared, others = outcomes_of(data)
    for label, test in others["Ratings: z within raters"].tests.items():
        assert test.value == pytest.approx(declared.tests[label].value, abs=0.15)


def test_agreement_and_change_in_words(template, quick):
    study = template("likert")
    means = {"rules": -1.0, "retrieval": 0.0, "neural": 1.0}
    truth = Truth({c.name: means for c in study.spec.criteria}, item_sd=0.0)
    clear = sensitivity_section(quick(study, n_raters=30, truth=truth), OPTIONS)
    assert any("All 4 other choices that make the same claim agree" in text for text in clear.paragraphs)
    equal = quick(study, n_raters=20, truth=Truth({}, item_sd=0.0))
    # Eight raters who give one system the best mark and another the worst: without them the systems do not differ.
    names = sorted(equal.judgments["rater"].unique())[:8]
    mine = pl.col("rater").is_in(names)
    spoilt = equal.judgments.with_columns(
        pl.when(mine & (pl.col("system") == "rules")).then(5.0)
        .when(mine & (pl.col("system") == "neural")).then(1.0)
        .otherwise(pl.col("value")).alias("value")
    )  # fmt: skip
    data = with_flags(replace(equal, judgments=spoilt), {}, {"straight_lining": names})
    words = " ".join(sensitivity_section(data, OPTIONS).paragraphs)
    assert (
        "The answer changes under: Exclusions: raters flagged by the rule straight lining excluded too, where “Helpfulness"
        in words
    )
    assert "from significantly higher to not significant" in words


def test_changes_and_the_contested_test():
    def made(p, value=1.0):
        return Estimate(value, 10, "t", details={"p_adjusted": p})

    declared = ChoiceOutcome(DECLARED, "", {"a": made(0.01), "b": made(0.2)})
    same = ChoiceOutcome("Model", "x", {"a": made(0.04), "b": made(0.9)})
    weaker = ChoiceOutcome("Model", "y", {"a": made(0.06), "b": made(0.9)})
    turned = ChoiceOutcome("Model", "z", {"a": made(0.01, -1.0), "b": made(0.9)})
    narrow = ChoiceOutcome("Model", "w", {"a": made(0.01), "b": made(0.001)}, claim="these items only")
    assert changed(declared, same) == []
    assert changed(declared, weaker) == ["a"]
    assert changed(declared, turned) == ["a"]
    blind = ChoiceOutcome("Direct votes", "v", {"a": made(float("nan")), "b": made(0.9)})
    assert (changed(declared, blind), untested(declared, blind)) == ([], ["a"]), "no test is no other answer"
    assert contested(declared, [same]) == "a"
    assert contested(declared, [same, weaker, narrow]) == "a"
    assert contested(declared, [same, narrow]) == "b"


def test_choices_that_change_the_same_are_named_together():
    def made(p):
        return Estimate(1.0, 10, "t", details={"p_adjusted": p})

    declared = ChoiceOutcome(DECLARED, "", {"a": made(0.2)})
    others = [ChoiceOutcome("Model", name, {"a": made(0.01)}) for name in "xyz"]
    assert _changes(declared, others) == (
        "Model: x, Model: y and Model: z, where “a” turns from not significant to significantly higher"
    )


def test_of_many_tests_that_change_alike_the_rest_is_counted():
    declared = outcome(DECLARED, "", **{name: (1.0, 0.2, {}) for name in "abcd"})
    other = outcome("Model", **{name: (1.0, 0.01, {}) for name in "abcd"})
    assert _changes(declared, [other]) == (
        "Model: x, where “a”, “b”, “c” and 1 other test turn from not significant to significantly higher"
    )


def test_a_test_that_the_choices_have_a_bearing_on_is_shown(template):
    """A model of the size of ratings leaves the consistency of raters as it is: its row would say nothing."""
    declared = outcome(DECLARED, "", size=(1.0, 0.6, {}), consistency=(0.3, 0.2, {}))
    others = [
        outcome("Model", "raters' means", size=(1.1, 0.5, {}), consistency=(0.3, 0.2, {})),
        outcome("Ratings", "as given", size=(1.2, 0.5, {}), consistency=(0.4, 0.3, {})),
    ]
    assert contested(declared, others) == "size"
    comparison = primary_comparison(template("likert"))
    words = " ".join(sensitivity._paragraphs(comparison, declared, others, "size"))
    assert "Shown is the clearest of the tests that most choices have a bearing on: “size”." in words


def test_what_the_declared_analysis_cannot_test_yet_is_not_compared(template, quick, monkeypatch):
    data = quick(template("likert"), n_raters=12)
    declared = outcome(DECLARED, "", a=(1.0, float("nan"), {}), b=(1.0, 0.2, {}))
    other = outcome("Model", a=(1.0, 0.01, {}), b=(1.0, 0.3, {}))
    monkeypatch.setattr(sensitivity, "all_outcomes", lambda *_: (declared, [other]))
    words = " ".join(sensitivity_section(data, OPTIONS).paragraphs)
    assert "The one other choice that makes the same claim agrees" in words
    monkeypatch.setattr(sensitivity, "all_outcomes", lambda *_: (declared.only("a"), [other.only("a")]))
    with pytest.raises(NotEnoughData, match="has no test yet"):
        sensitivity_section(data, OPTIONS)


def test_other_packages_add_rows(template, quick, monkeypatch):
    def plain(data, comparison, options):
        tests = deciding_family(data.study, comparison).primary_tests(data, comparison, options)
        return [OtherChoice("Model", "of another package", lambda: tests)]

    ALTERNATIVES.names()
    monkeypatch.setitem(ALTERNATIVES._parts, "another", plain)
    _, others = outcomes_of(quick(template("likert"), n_raters=10))
    assert "Model: of another package" in others


@pytest.mark.parametrize("name", template_names())
def test_every_template_has_its_figure_in_time_or_says_that_no_choice_applies(template, quick, name):
    study = template(name)
    data = quick(study, n_raters=24, habits=Habits(careless_share=0.1))
    before = time.process_time()
    section = sensitivity_section(data, OPTIONS)
    taken = time.process_time() - before
    assert taken < 15, "many times what it takes, for slow machines"
    if not section.parts:
        assert name in ("avatar", "chat", "judged", "wizard")  # no judge takes part in quickly simulated data
        assert section.paragraphs[0].startswith("No other choice applies to the comparison “")
        return
    figure, table = section.parts
    assert len(table.rows) >= 2
    assert figure.alt
    names = [row[0] for row in table.rows]
    assert len(set(names)) == len(names)


def test_a_choice_that_gives_the_same_numbers_up_to_rounding_is_no_other_choice():
    first = Estimate(0.1 + 0.2, 30, "t-test", p_value=0.1)
    same, other = replace(first, value=0.3), replace(first, p_value=0.2)
    declared = ChoiceOutcome(DECLARED, "", {"a": first})
    assert is_same(declared, ChoiceOutcome("Model", "raters' means", {"a": same}))
    assert not is_same(declared, ChoiceOutcome("Model", "raters' means", {"a": other}))


def test_zeros_are_decided_otherwise(template, quick):
    study = template("anchoring")
    data = quick(study, n_raters=16)
    _, others = outcomes_of(data)
    assert not any(name.startswith("Zeros") for name in others)
    rng = np.random.default_rng(1)
    is_zero = pl.Series(rng.random(len(data.judgments)) < 0.05)
    zeros = data.judgments.with_columns(pl.when(is_zero).then(0.0).otherwise(pl.col("value")).alias("value"))
    declared, others = outcomes_of(replace(data, judgments=zeros))
    other = others["Zeros: excluded"].tests
    assert {test.value for test in other.values()} != {test.value for test in declared.tests.values()}


def outcome(kind, label="x", claim="", **tests):
    """A choice with tests of given p-values and values, significant below .05."""
    made = {
        name: Estimate(value, 10, "t", p_value=p, details={"p_adjusted": p, **details})
        for name, (value, p, details) in tests.items()
    }
    return ChoiceOutcome(kind, label, made, claim=claim)


def test_two_choices_that_disagree_are_neither(template):
    comparison = primary_comparison(template("likert"))
    declared = outcome(DECLARED, "", a=(1.0, 0.01, {}), b=(1.0, 0.2, {}))
    others = [outcome("Model", n, a=(1.0, 0.3, {}), b=(1.0, 0.2, {})) for n in "yz"]
    words = " ".join(sensitivity._paragraphs(comparison, declared, others, "a"))
    assert "Neither of the 2 other choices that make the same claim agrees with the confirmatory analysis." in words
    assert "under the largest number of the choices that make the same claim: “a”." in words


def test_the_caption_names_other_units_only_where_there_are_any():
    declared = outcome(DECLARED, "", a=(1.0, 0.01, {}))
    plain = sensitivity._table(declared, [outcome("Ties", a=(1.1, 0.01, {}))], "a", "holm")
    assert "rescaled" not in plain.caption
    assert "Direct votes" not in plain.caption
    scaled = sensitivity._table(declared, [outcome("Ratings", a=(1.1, 0.01, {"rescaled_by": 2.0}))], "a", "holm")
    assert "rescaled to the unit of the first row" in scaled.caption
    votes = outcome("Direct votes", a=(1.1, 0.01, {}))
    votes = replace(votes, tests={"a": replace(votes.tests["a"], unit="log odds")})
    caption = sensitivity._table(declared, [votes], "a", "holm").caption
    assert "log odds of the share of points" in caption
    assert "rescaled" not in caption


def test_z_scores_are_rescaled_and_subtracted_means_are_not(template, quick):
    _, others = outcomes_of(quick(template("likert"), n_raters=12))
    assert all("rescaled_by" in test.details for test in others["Ratings: z within raters"].tests.values())
    assert not any("rescaled_by" in t.details for t in others["Ratings: each rater's mean subtracted"].tests.values())


def test_a_colour_means_the_same_in_every_report(template, quick):
    """One test of several: the groups say so, the column speaks of all, and no group takes the colour of another."""
    domains = []
    for name in ("likert", "compare"):
        figure, table = sensitivity_section(quick(template(name), n_raters=24), OPTIONS).parts
        layer = next(one for one in figure.spec["layer"] if "shape" in one.get("encoding", {}))
        domain = layer["encoding"]["color"]["scale"]["domain"]
        domains.append((domain, next(column.label for column in table.columns if column.name == "agrees")))
    (several, of_all), (one, of_one) = domains
    assert several == [DECLARED, "This test: other answer", "This test: same answer"]
    assert of_all == "Same answer in all 3 tests"
    assert (one, of_one) == ([DECLARED, "Other answer", "Same answer"], "Same answer")


def test_the_key_names_only_what_is_drawn(template, quick):
    figure, table = sensitivity_section(quick(template("compare"), n_raters=24), OPTIONS).parts
    layer = next(one for one in figure.spec["layer"] if "shape" in one.get("encoding", {}))
    verdicts = {row[[column.name for column in table.columns].index("agrees")] for row in table.rows}
    assert verdicts == {"declared", "yes"}
    assert layer["encoding"]["shape"]["legend"]["values"] == [DECLARED, "Same answer"]
    assert layer["encoding"]["color"]["legend"]["values"] == [DECLARED, "Same answer"]


def test_the_axis_names_its_unit(template, quick):
    titles = {}
    for name in ("likert", "acute", "best-worst"):
        declared, _ = outcomes_of(quick(template(name), n_raters=12))
        titles[name] = sensitivity._difference(next(iter(declared.tests.values())))
    assert titles == {
        "likert": "difference, points",
        "acute": "difference, log odds",
        "best-worst": "difference, score",
    }


def test_the_method_names_the_choices_that_were_made(template, quick):
    data = quick(template("likert"), n_raters=12)
    (method,) = Sensitivity().run(data, OPTIONS).methods
    assert method.method.endswith("at a time: items, ratings, model")


def test_a_choice_with_equal_numbers_is_named(template, quick):
    """In chat nothing is a sample of items: items as they are give the declared numbers, which has no row but is said."""
    section = sensitivity_section(quick(template("chat"), n_raters=24), OPTIONS)
    words = next(text for text in section.paragraphs if text.startswith("Without a row"))
    assert "Items: fixed (these items only)" in words
