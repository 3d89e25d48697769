"""Whole steps of an analysis in one call: the same numbers as the parts they are made of, and sentences where they cannot."""

import inspect

import numpy as np
import polars as pl
import pytest

import dialometer as dm
from dialometer.errors import DialometerError, NotEnoughData, UnknownName
from dialometer.stats.agreement.gwet import gwet_coefficient
from dialometer.stats.clustered.clustered import clustered_mean, clustered_preference
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.icc.icc import icc as icc_of_matrix


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "replies"
    study = dm.new_study("anchoring", folder)
    assert repr(study) == "Study('anchoring': 51 items, 3 systems, 2 criteria)"
    return folder, dm.simulate_raters(folder, 6, seed=2)


@pytest.fixture(scope="module")
def choices(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "pairs"
    dm.new_study("strategies", folder)
    return dm.simulate_raters(folder, 8, seed=2)


def table(**columns):
    return pl.DataFrame({"criterion": ["c"] * len(columns["rater"]), **columns})


def test_judgments_are_those_that_count(ratings):
    folder, judgments = ratings
    assert not judgments["is_practice"].any()
    assert judgments.equals(dm.read_judgments(folder))
    assert not len(dm.read_judgments(folder, sources=["person"]))
    report = dm.analyse_folder(folder, n_resamples=100)
    assert report.provenance["n_judgments"] == len(judgments)


def test_gold_items_are_left_out_as_in_reports(tmp_path):
    gold = dm.new_study("mqm", tmp_path / "marks").gold_ids
    judgments = dm.simulate_raters(tmp_path / "marks", 4, seed=2)
    everything = dm.read_judgments(tmp_path / "marks", with_gold=True)
    assert gold
    assert gold <= set(everything["item"])
    assert judgments.equals(everything.filter(~pl.col("item").is_in(list(gold))))


def test_icc_of_complete_ratings_is_that_of_the_matrix():
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(12, 1)) + rng.normal(0, 0.4, (1, 5)) + rng.normal(0, 0.7, (12, 5))
    item, rater = (index.ravel() for index in np.indices(matrix.shape))
    rows = table(rater=[f"R{n}" for n in rater], item=[f"i{n}" for n in item], value=matrix.ravel())
    for form in ("ICC(1,1)", "ICC(2,1)", "ICC(2,k)", "ICC(3,k)"):
        classical = dm.icc(rows, form=form, method="classical")
        expected = icc_of_matrix(matrix, form)
        for field in ("value", "low", "high", "p_value"):
            assert getattr(classical, field) == pytest.approx(getattr(expected, field), abs=1e-9)
        found = dm.icc(rows, form=form)
        assert found.value == classical.value
        assert found.low < classical.low  # raters may be unequal


def test_icc_is_the_number_of_the_report(ratings):
    """Magnitudes with all raters in one condition each: by condition in the report, and from its rows by hand."""
    folder, judgments = ratings
    study = dm.load_study(folder)
    report = dm.analyse_folder(folder, n_resamples=100)
    table = next(table for table in report.tables() if table.name == "consistency_by_condition")
    names = [column.name for column in table.columns]
    cells = {tuple(cell.items()): number for number, cell in enumerate(study.cells)}
    factors = [factor.name for factor in study.spec.design.factors]
    n_checked = 0
    for row in table.rows:
        shown = dict(zip(names, row, strict=True))
        criterion = next(c.name for c in study.spec.criteria if c.label == shown["criterion"])
        place = [r for r in table.rows if r[0] == row[0]].index(row)
        condition = next(dict(cell) for cell, number in cells.items() if number == place)
        rows = judgments.filter(*(pl.col(f"factor_{name}") == condition[name] for name in factors))
        if not shown["icc_single"].is_known:
            continue
        found = dm.icc(rows, criterion)
        for field in ("value", "low", "high"):
            assert getattr(found, field) == pytest.approx(getattr(shown["icc_single"], field), abs=1e-9)
        average = dm.icc(rows, criterion, form=found.method.replace(",1)", ",k)").split(" by ")[0])
        assert average.value == pytest.approx(shown["icc_average"].value, abs=1e-9)
        assert average.details["k"] == pytest.approx(shown["k"])
        n_checked += 1
    assert n_checked


def test_gwet_of_a_table():
    rows = table(rater=list("abab"), item=["1", "1", "2", "2"], value=[1.0, 2.0, 5.0, 5.0])
    found = dm.gwet(rows, weights="ordinal", labels=[1, 2, 3, 4, 5])
    expected = gwet_coefficient([[1, 2], [5, 5]], [1, 2, 3, 4, 5], weights="ordinal")
    assert found.value == pytest.approx(expected.value)
    assert found.value > dm.gwet(rows).value
    with pytest.raises(DialometerError, match="not a label"):
        dm.gwet(rows, weights="ordinal", labels=[1, 2, 3])


def test_icc_tells_systems_of_one_item_apart(ratings):
    _, judgments = ratings
    found = dm.icc(judgments, "readability")
    rows = judgments.filter(pl.col("criterion") == "readability")
    assert found.n == rows.select("item", "system").unique().height
    assert found.label == "readability"


def test_systems_that_raters_saw_both_are_compared_within_raters(ratings):
    _, judgments = ratings
    found = dm.compare(judgments, "thred", "hred", "coherence")
    wide = (
        judgments.filter((pl.col("criterion") == "coherence") & pl.col("system").is_in(["thred", "hred"]))
        .pivot(on="system", index=["rater", "item"], values="value")
        .drop_nulls()
    )
    expected = clustered_mean(wide["thred"] - wide["hred"], wide["rater"], null=0.0)
    assert (found.value, found.low, found.p_value) == pytest.approx((expected.value, expected.low, expected.p_value))
    assert dm.compare(judgments, "hred", "thred", "coherence").value == pytest.approx(-found.value)


def test_systems_of_different_raters_are_compared_between_raters():
    rows = table(
        rater=["a", "a", "b", "c", "d", "d"],
        item=["1", "2", "1", "1", "1", "2"],
        system=["x", "x", "x", "y", "y", "y"],
        value=[4.0, 5.0, 3.0, 2.0, 2.0, 1.0],
    )
    expected = welch_t([4.5, 3.0], [2.0, 1.5])
    found = dm.compare(rows, "x", "y")
    assert (found.value, found.p_value) == pytest.approx((expected.value, expected.p_value))


def test_choices_give_the_share_that_prefers_the_first(choices):
    criterion = choices["criterion"][0]
    rows = choices.filter(pl.col("criterion") == criterion)
    first, second = sorted(rows["order"][0].split("|"))
    found = dm.compare(choices, first, second, criterion)
    asked = rows.filter(pl.col("order").is_in([f"{first}|{second}", f"{second}|{first}"]))
    signed = asked["choice"].replace_strict({first: 1.0, second: -1.0, "tie": 0.0}, default=None).to_list()
    signed = [np.nan if sign is None else sign for sign in signed]
    assert found.value == pytest.approx(clustered_preference(signed, asked["rater"]).value)


def test_what_cannot_be_done_is_a_sentence(ratings, tmp_path):
    folder, judgments = ratings
    with pytest.raises(UnknownName, match="did you mean 'readability'"):
        dm.icc(judgments, "readabilty")
    with pytest.raises(DialometerError, match="name one of: readability, coherence"):
        dm.icc(judgments)
    with pytest.raises(UnknownName, match="there is no system 'nobody'"):
        dm.compare(judgments, "thred", "nobody", "coherence")
    with pytest.raises(DialometerError, match="compared with itself"):
        dm.compare(judgments, "thred", "thred", "coherence")
    with pytest.raises(DialometerError, match="no column 'rater'"):
        dm.icc(pl.DataFrame({"value": [1.0]}))
    with pytest.raises(DialometerError, match="holds sessions already"):
        dm.simulate_raters(folder, 2)
    assert (folder / "simulation.json").is_file()  # the truth is kept, as on the command line
    dm.new_study("chat", tmp_path / "chat")
    with pytest.raises(NotEnoughData, match="nothing has been collected"):
        dm.read_judgments(tmp_path / "chat")
    with pytest.raises(DialometerError):
        dm.new_study("nonsense", tmp_path / "x")


@pytest.mark.slow
def test_sample_size_comes_as_a_report(tmp_path):
    dm.new_study("strategies", tmp_path / "pairs")
    report = dm.power(tmp_path / "pairs", raters=[6], n_simulations=20)
    assert report.figures()
    assert report.tables()


def test_retrievers_come_as_one_table(tmp_path):
    dm.new_study("avatar", tmp_path / "avatar")
    kb, asked = tmp_path / "avatar" / "knowledge_base.jsonl", tmp_path / "avatar" / "dialogues.jsonl"
    found = dm.evaluate_retrievers(kb, asked, ["random", "tfidf"], cuts=[1, 5], n_resamples=200)
    assert [column.name for column in found.columns] == ["retriever", "R@1", "R@5", "MRR", "MAP", "SR@1", "SR@5"]
    by_name = {row[0]: row for row in found.rows}
    assert len(by_name) == 2
    mrr = [row[3].value for row in found.rows]
    assert mrr[1] > mrr[0], "words beat chance"


def test_an_evaluator_is_trained_kept_and_asked(tmp_path):
    given = dm.simulate_ratings(90, seed=3)
    assert repr(given) == "RatingSet(90 rated dialogues)"
    fit = dm.train_evaluator(given, aspects=["behaviour"], out=tmp_path / "evaluator")
    assert repr(fit).startswith("GaussianFit(evaluator of 90 ratings by behaviour; right on ")
    dialogues = [one.dialogue for one in given.rated[:5]]
    scores = dm.score_dialogues(fit, dialogues)
    assert scores.columns == ["id", "score", "deviation"]
    again = dm.score_dialogues(dm.load_evaluator(tmp_path / "evaluator"), dialogues)
    assert again["score"].to_list() == pytest.approx(scores["score"].to_list(), abs=1e-6)
    assert len(dm.score_dialogues(fit, [])) == 0


def test_a_missing_extra_is_told(monkeypatch):
    from dialometer.public import evaluators

    def lacking(*_, **__):
        raise ModuleNotFoundError("No module named 'transformers'", name="transformers")

    monkeypatch.setattr(evaluators, "fit_gaussian", lacking)
    with pytest.raises(DialometerError, match=r"needs transformers.*pip install 'dialometer\[learn\]'"):
        dm.train_evaluator(dm.simulate_ratings(30))


@pytest.mark.parametrize("name", [name for name in dm.__all__ if name != "__version__"])
def test_types_and_docstrings_are_complete(name):
    thing = getattr(dm, name)
    assert inspect.getdoc(thing), name
    if inspect.isclass(thing):
        functions = [
            member
            for member_name, member in inspect.getmembers(thing, inspect.isfunction)
            if not member_name.startswith("_") and member.__module__.startswith("dialometer")
        ]
        assert all(inspect.getdoc(member) for member in functions)
    else:
        functions = [thing]
    for function in functions:
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, f"{name}.{function.__name__}"
        for parameter in signature.parameters.values():
            is_typed = parameter.annotation is not inspect.Parameter.empty
            assert is_typed or parameter.name in ("self", "cls"), f"{name}.{function.__name__}: {parameter.name}"
