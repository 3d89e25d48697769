"""Measures of retrievers beside a second implementation: lists walked one by one, scikit-learn and scipy."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

from dialometer.errors import DialometerError
from dialometer.retrieval.evaluate_retrievers import relevant_ranks
from dialometer.retrieval.evaluation import (
    Resampling,
    as_json,
    evaluate,
    judges_of,
    metric_names,
    metric_values,
    rated_share,
)
from dialometer.retrieval.labels.crowd_ratings import crowd_ratings
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import make_retriever
from dialometer.stats.retrieval.metrics import ranks_from_scores


def walked(scores, marks, cuts):
    """Every measure of every question by walking down its list, ties in column order; nan without a right answer."""
    rows = []
    for row, right in zip(scores, marks, strict=True):
        wanted = set(np.flatnonzero(right).tolist())
        if not wanted:
            rows.append([np.nan] * (2 * len(cuts) + 2))
            continue
        order = sorted((j for j in range(len(row)) if not np.isnan(row[j])), key=lambda j: (-row[j], j))
        found = [j in wanted for j in order]
        hits = [sum(found[:k]) for k in cuts]
        first = next((rank for rank, is_hit in enumerate(found, 1) if is_hit), None)
        precision = sum(sum(found[:rank]) / rank for rank, is_hit in enumerate(found, 1) if is_hit)
        rows.append(
            [
                *(n / len(wanted) for n in hits),
                1 / first if first else 0.0,
                precision / len(wanted),
                *(float(n > 0) for n in hits),
            ]
        )
    return np.array(rows)


@pytest.mark.parametrize("seed", range(5))
def test_every_measure_agrees_with_walking_down_the_lists(seed):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((60, 40)), 1).astype(np.float32)  # many ties
    scores[rng.random(scores.shape) < 0.2] = np.nan  # not retrieved
    marks = rng.random(scores.shape) < 0.06
    cuts = (1, 2, 5, 10, 100)
    ours = metric_values(ranks_from_scores(scores, marks), cuts)
    assert tuple(ours) == metric_names(cuts)
    np.testing.assert_allclose(np.column_stack(list(ours.values())), walked(scores, marks, cuts), atol=1e-12)


def test_average_precision_is_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    scores = rng.permuted(np.tile(np.arange(50.0), (30, 1)), axis=1)
    marks = rng.random(scores.shape) < 0.1
    marks[:, 0] = True
    ours = metric_values(ranks_from_scores(scores, marks), (1,))["MAP"]
    theirs = [average_precision_score(right, row) for right, row in zip(marks, scores, strict=True)]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.fixture(scope="module")
def found(kb, asked):
    judges = judges_of(asked, len(kb.answers))
    marked = [judge.relevant for judge in judges]
    ranks = {name: relevant_ranks(make_retriever(name).fit(kb), asked, marked) for name in ("random", "bm25", "tfidf")}
    return evaluate(ranks, asked, judges, resampling=Resampling(n_resamples=2000, seed=1))


def test_answerable_and_all_questions_are_told_apart(found):
    assert (found.n_questions, found.n_dialogues, found.judges[0].n_answerable) == (36, 3, 33)
    scored = found.of("tfidf", "maker")
    for name in ("MRR", "MAP", "SR@1", "SR@10"):
        assert scored.answerable[name].n == 33
        assert scored.everything[name].n == 36
        assert scored.everything[name].value == pytest.approx(scored.answerable[name].value * 33 / 36)
    assert "R@1" not in scored.everything  # recall of nothing is no number


def test_the_interval_is_a_bootstrap_over_questions(found):
    scored = found.of("tfidf", "maker")
    values = scored.values["MRR"][~np.isnan(scored.values["MRR"])]
    there = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)
    ).confidence_interval
    ours = scored.answerable["MRR"]
    assert (ours.low, ours.high) == pytest.approx((there.low, there.high), abs=0.015)
    assert "bootstrap" in ours.interval_method
    assert "questions" in ours.interval_method


def test_a_measure_that_never_varies_still_has_an_interval(found):
    nothing = found.of("random", "maker").answerable["SR@1"]
    assert nothing.value == 0
    assert 0 < nothing.high < 0.2  # Wilson's: no resample of zeros could say more than zero


def test_the_paired_test_is_scipys(found):
    pair = next(one for one in found.comparisons if {one.first, one.second} == {"tfidf", "random"})
    one, two = (found.of(name, "maker").values["SR@1"] for name in (pair.first, pair.second))
    difference = (one - two)[~np.isnan(one - two)]
    theirs = stats.permutation_test(
        (difference,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    )
    assert pair.difference.value == pytest.approx(difference.mean())
    assert pair.difference.p_value == pytest.approx(theirs.pvalue, abs=0.004)
    assert pair.difference.details["p_adjusted"] >= pair.difference.p_value


def test_the_better_retriever_stands_first_and_every_pair_once(found):
    assert len(found.comparisons) == 3
    for pair in found.comparisons:
        own = [found.of(name, "maker").answerable["SR@1"].value for name in (pair.first, pair.second)]
        assert own[0] >= own[1]


def test_drawing_dialogues_widens_what_differs_between_them():
    """Two dialogues, one all right and one all wrong: over questions that looks precise, over dialogues nothing is known."""
    queries = tuple(Query(f"q{n}", (), f"q{n}") for n in range(40))
    asked = QuerySet(queries, tuple("a" if n < 20 else "b" for n in range(40)), ((0,),) * 40, ("",) * 40)
    scores = np.zeros((40, 2))
    scores[:20, 0], scores[20:, 1] = 1.0, 1.0
    judges = judges_of(asked, 2)
    ranks = {"r": [ranks_from_scores(scores, judges[0].relevant)]}
    by = {
        way: evaluate(ranks, asked, judges, resampling=Resampling(way)).of("r", "maker").answerable["SR@1"]
        for way in ("questions", "dialogues")
    }
    assert by["questions"].value == by["dialogues"].value == 0.5
    assert by["dialogues"].high - by["dialogues"].low == 1.0
    assert by["questions"].high - by["questions"].low < 0.4


def test_signs_are_flipped_by_dialogue_when_dialogues_are_drawn(kb, asked):
    judges = judges_of(asked, len(kb.answers))
    ranks = {
        name: relevant_ranks(make_retriever(name).fit(kb), asked, [judges[0].relevant]) for name in ("random", "tfidf")
    }
    pair = evaluate(ranks, asked, judges, resampling=Resampling("dialogues")).comparisons[0]
    # Three dialogues have eight sign patterns, and the two extreme ones are always as extreme as what was seen.
    assert pair.difference.p_value >= 2 / 8
    assert (pair.difference.p_value * 8) % 1 == 0


def test_three_judges(kb, asked):
    right = asked.right[0][0]
    wrong = next(number for number in range(len(kb.answers)) if number not in asked.right[0])
    first = asked.queries[0].id
    ratings = [(first, right, 2.0), (first, right, 3.0), (first, wrong, 3.0), (first, wrong, 4.0)]
    maker, crowd, both = judges_of(asked, len(kb.answers), crowd_ratings(ratings))
    assert (maker.name, crowd.name, both.name) == ("maker", "crowd", "both")
    assert np.flatnonzero(crowd.relevant[0]).tolist() == [wrong]  # 3.5 is right, 2.5 is not
    assert np.flatnonzero(both.relevant[0]).tolist() == sorted((right, wrong))
    assert crowd.has_judged.sum() == 1
    strict = judges_of(asked, len(kb.answers), crowd_ratings(ratings), good_from=4.0)[1]
    assert strict.n_answerable == 0


def test_ratings_of_other_questions_are_refused(kb, asked):
    with pytest.raises(DialometerError, match="no rating belongs to a question"):
        judges_of(asked, len(kb.answers), crowd_ratings([("nobody-asked", 0, 5.0)]))


def test_nobody_has_judged(kb, asked):
    silent = QuerySet(asked.queries, asked.dialogues, ((),) * len(asked), asked.replies)
    with pytest.raises(DialometerError, match="nobody has said"):
        judges_of(silent, len(kb.answers))


def test_how_much_of_the_lists_was_rated():
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    is_rated = np.array([[True, False, True], [False, False, False]])
    share = rated_share(ranks_from_scores(scores, is_rated), np.array([True, False]), (1, 2, 3))
    assert share == {1: 1.0, 2: 0.5, 3: pytest.approx(2 / 3)}


def test_as_json_nothing_unknown_becomes_a_number(found):
    plain = as_json(found)
    assert plain["judges"][0] == {
        "name": "maker",
        "right": "an answer is right if the maker of the avatar marked it",
        "n_judged": 36,
        "n_answerable": 33,
    }
    assert "MRR credits answers that nobody hears" in plain["where_measures_mislead"]
    assert {row["measure"] for row in plain["comparisons"]} == {"SR@1"}


def test_an_unknown_measure_to_compare_on(found, asked):
    with pytest.raises(DialometerError, match="compare on one of R@1"):
        evaluate({}, asked, found.judges, compare_on="precision")
