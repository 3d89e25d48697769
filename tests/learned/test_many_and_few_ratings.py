"""The best recipe on many ratings (inducing dialogues) and on few of a new domain (adapting)."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg

from commands import invoke
from dialometer.cli.learn.evaluate import _advice
from dialometer.errors import DialometerError
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import numbered_gap_pairs
from dialometer.learned.evaluators import load_evaluator
from dialometer.learned.experiments.own_data import check_on_own_data, expected_accuracy
from dialometer.learned.gaussian import training
from dialometer.learned.gaussian.adapting import _joint, _left_out, adapt_gaussian, require_gaussian
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.inducing import InducingProcess
from dialometer.learned.gaussian.kernel import (
    KernelSettings,
    effect_kernel,
    fit_describer,
    fit_process,
    left_out_familiarity,
    likeness,
    own_kernel,
)
from dialometer.learned.gaussian.training import CrossValidation, fit_gaussian, folds_of, save_gaussian
from dialometer.readers.writing import write_dialogues

from .test_gaussian_evaluator import talks

SETTINGS = KernelSettings(effect=1.0)


@pytest.fixture(scope="module")
def problem():
    rated = talks(90, 11, n_users=20)
    table = describe([one.dialogue for one in rated], has_meaning=False)
    described = fit_describer(table, ("words", "behaviour"))(table)
    users = [str(one.user) for one in rated]
    return described, np.array([one.rating for one in rated]), users, folds_of(users, np.random.default_rng(0))


def test_with_all_dialogues_inducing_it_is_the_exact_process(problem):
    described, ratings, users, folds = problem
    noise = np.linspace(2.0, 4.0, len(ratings))
    found = InducingProcess(described, np.arange(len(ratings)), SETTINGS, ratings, noise, users, folds)
    kernel = likeness(described, described).kernel(SETTINGS)
    exact = fit_process(kernel.copy(), ratings, noise, effect_kernel(users))
    posterior = found.posterior()
    assert posterior.mean == pytest.approx(exact.mean)
    assert posterior.unit == pytest.approx(exact.unit)
    np.testing.assert_allclose(posterior.predict(kernel), exact.predict(kernel), atol=1e-5)
    own = own_kernel(described, SETTINGS)
    np.testing.assert_allclose(posterior.deviations(kernel, own), exact.deviations(kernel, own), atol=1e-3)
    inside, outside = np.flatnonzero(folds != 2), np.flatnonzero(folds == 2)
    effects = effect_kernel([users[n] for n in inside])
    part = fit_process(kernel[np.ix_(inside, inside)], ratings[inside], noise[inside], effects)
    np.testing.assert_allclose(
        found.held_out().expected[outside], part.predict(kernel[np.ix_(outside, inside)]), atol=1e-4
    )


def test_how_uncertain_a_dialogue_is_without_its_own_rating(problem):
    described, ratings, users, _ = problem
    kernel = likeness(described, described).kernel(SETTINGS)
    noise, effects = np.full(len(ratings), 3.0), effect_kernel(users)
    found = left_out_familiarity(fit_process(kernel, ratings, noise, effects).factor, kernel, np.diag(kernel))
    rest = np.delete(np.arange(len(ratings)), 7)
    without = fit_process(kernel[np.ix_(rest, rest)], ratings[rest], noise[rest], effects[np.ix_(rest, rest)])
    deviation = without.deviations(kernel[7:8, rest], kernel[7, 7:8])[0]
    assert found[7] == pytest.approx(1 - deviation**2 / kernel[7, 7])
    assert (
        len(left_out_familiarity(fit_process(kernel, ratings, noise, effects).factor, kernel, np.diag(kernel), 10))
        == 10
    )


def test_with_few_inducing_dialogues_it_is_the_projected_process(problem):
    """Rasmussen and Williams (2006), equations 8.26 and 8.27, written out, with the raters' habits in the noise."""
    described, ratings, users, folds = problem
    chosen = np.arange(0, len(ratings), 4)
    noise = np.full(len(ratings), 3.0)
    posterior = InducingProcess(described, chosen, SETTINGS, ratings, noise, users, folds).posterior()
    kernel = likeness(described, described).kernel(SETTINGS)
    inner, cross = kernel[np.ix_(chosen, chosen)], kernel[chosen]
    precision = np.linalg.inv(np.diag(noise) + effect_kernel(users))
    total = inner + cross @ precision @ cross.T
    expected = cross.T @ np.linalg.solve(total, cross @ precision @ (ratings - posterior.mean))
    np.testing.assert_allclose(posterior.predict(kernel[:, chosen]), expected + posterior.mean, atol=1e-4)
    own = np.diag(kernel)
    variance = own - np.einsum("ij,ij->j", cross, np.linalg.solve(inner, cross))
    variance += np.einsum("ij,ij->j", cross, np.linalg.solve(total, cross))
    np.testing.assert_allclose(posterior.deviations(kernel[:, chosen], own), np.sqrt(variance), atol=1e-3)


def test_no_rater_is_cut_in_two_by_the_portions(problem, monkeypatch):
    described, ratings, users, folds = problem
    whole = InducingProcess(described, np.arange(20), SETTINGS, ratings, np.full(90, 3.0), users, folds)
    monkeypatch.setattr("dialometer.learned.gaussian.inducing.ROWS_AT_A_TIME", 7)
    parts = InducingProcess(described, np.arange(20), SETTINGS, ratings, np.full(90, 3.0), users, folds)
    np.testing.assert_allclose(parts.held_out().quality, whole.held_out().quality)
    assert parts.posterior().unit == pytest.approx(whole.posterior().unit)


def test_a_large_set_is_learned_by_inducing_dialogues(monkeypatch, tmp_path):
    monkeypatch.setattr(training, "MAX_DIALOGUES", 150)
    monkeypatch.setattr(training, "N_INDUCING", 60)
    monkeypatch.setattr(training, "N_CHOOSING", 80)
    train, test = talks(200, 13, n_users=50), talks(60, 14)
    fitted = fit_gaussian(train)
    assert fitted.about["n_ratings"] == 200
    assert fitted.about["n_inducing"] == len(fitted.evaluator.known) == 60
    assert len(fitted.verdicts) == 200
    assert fitted.about["meaning_by"] == "words"
    dialogues = [one.dialogue for one in test]
    scores = fitted.evaluator.score(dialogues)
    assert accuracy(scores.values, numbered_gap_pairs(test, 3)) > 0.85
    save_gaussian(tmp_path, fitted)
    again = load_evaluator(tmp_path).score(dialogues)
    np.testing.assert_allclose(again.values, scores.values, rtol=1e-9)
    np.testing.assert_allclose(again.deviations, scores.deviations, rtol=1e-3)
    adapted = adapt_gaussian(fitted.evaluator, test[:20]).evaluator
    assert adapted.word_vectors is fitted.evaluator.word_vectors


@pytest.fixture(scope="module")
def old():
    rated = talks(80, 15, n_users=20)
    table = describe([one.dialogue for one in rated], has_meaning=False)
    return fit_gaussian(rated, aspects=("words", "behaviour"), table=table).evaluator


def test_with_a_correlation_of_one_adapting_is_training_on_both(old):
    new = talks(30, 16, n_users=10)
    described = old.describer(old.describe([one.dialogue for one in new]))
    ratings = np.array([one.rating for one in new])
    root = old.posterior.factor[0]
    projected = linalg.solve_triangular(root, likeness(old.known, described).kernel(old.settings), lower=True)
    own = likeness(described, described).kernel(old.settings) + old.settings.noise * np.eye(30)
    joint = _joint(old, projected, own, ratings, 1.0)
    n = len(old.known)
    covariance = np.block([[root @ root.T, root @ projected], [projected.T @ root.T, own]])
    residual = np.concatenate([root @ root.T @ old.posterior.weights, ratings - joint.mean])
    both = np.linalg.solve(covariance, residual)
    np.testing.assert_allclose(joint.weights, both[n:], atol=1e-6)
    without = np.delete(np.arange(30), 3)
    held_out = _left_out(joint, ratings, [f"d{number}" for number in range(30)])
    part = _joint(old, projected[:, without], own[np.ix_(without, without)], ratings[without], 1.0)
    expected = joint.expected[3] + part.mean
    expected += (own[3, without] - projected[:, 3] @ projected[:, without]) @ part.weights
    assert held_out.expected[3] == pytest.approx(expected)
    assert held_out.quality[3] == pytest.approx(expected - part.mean)


def test_where_nothing_is_learned_held_out_dialogues_are_not_ordered_the_wrong_way_round(old):
    """Without a high rating the mean of the others is lower: expected ratings of several models are worse than chance."""
    rated = talks(30, 16, n_users=10)
    table = describe([one.dialogue for one in rated], has_meaning=False)
    problem = CrossValidation(rated, table, ("words", "behaviour"), np.ones(30), np.random.default_rng(0))
    found = problem.held_out(KernelSettings(noise=1e9))
    assert accuracy(found.expected, numbered_gap_pairs(rated, 3)) < 0.4
    np.testing.assert_allclose(found.quality, 0, atol=1e-6)
    rng = np.random.default_rng(1)
    accuracies = []
    for _ in range(20):
        noise = [replace(one, rating=float(rng.integers(1, 6)), user=f"u{number}") for number, one in enumerate(rated)]
        accuracies += [
            fit_gaussian(noise, aspects=old.describer.aspects, table=table).accuracy,
            adapt_gaussian(old, noise, table=table).accuracy,
        ]
    assert np.mean(accuracies) == pytest.approx(0.5, abs=0.05)


def test_an_adapted_evaluator_follows_the_new_ratings(old, tmp_path):
    """In the new domain people like what was disliked before: the old evaluator is wrong, the adapted one is right."""
    turned = [replace(one, rating=6 - one.rating) for one in talks(80, 17, n_users=20)]
    test = [replace(one, rating=6 - one.rating) for one in talks(60, 18)]
    pairs = numbered_gap_pairs(test, 3)
    dialogues = [one.dialogue for one in test]
    fitted = adapt_gaussian(old, turned)
    assert fitted.about["correlation"] < 0.3
    assert accuracy(old.score(dialogues).values, pairs) < 0.2
    assert accuracy(fitted.evaluator.score(dialogues).values, pairs) > 0.7
    same = adapt_gaussian(old, talks(30, 19, n_users=10))
    assert same.about["correlation"] > fitted.about["correlation"]
    save_gaussian(tmp_path, fitted)
    loaded = require_gaussian(load_evaluator(tmp_path), "")
    np.testing.assert_allclose(loaded.score(dialogues).values, fitted.evaluator.score(dialogues).values, rtol=1e-9)
    twice = adapt_gaussian(loaded, talks(20, 20, n_users=10))
    assert np.isfinite(twice.evaluator.score(dialogues).deviations).all()
    with pytest.raises(DialometerError, match="best recipe"):
        require_gaussian(object(), "x")


def test_an_evaluator_is_measured_on_other_ratings_before_it_is_relied_on(old):
    good = check_on_own_data(old, talks(60, 21, n_users=20))
    assert good.is_useful
    assert good.measured.low > 0.5
    assert good.surest.value > good.measured.value
    assert good.measured.value == pytest.approx(good.expected.value, abs=0.12)
    assert good.share_unlike < 0.3
    rng = np.random.default_rng(3)
    turned = [replace(one, rating=float(rng.integers(1, 6))) for one in talks(60, 22, n_users=20)]
    assert not check_on_own_data(old, turned).is_useful
    strange = [
        replace(
            one, dialogue=replace(one.dialogue, turns=tuple(replace(t, text="zz 77 %%") for t in one.dialogue.turns))
        )
        for one in turned
    ]
    assert check_on_own_data(old, strange).share_unlike > 0.9
    expected = expected_accuracy(old.score([one.dialogue for one in turned]))
    assert 0.5 < expected.low < expected.value < expected.high < 1


def test_commands_adapt_and_measure(old, tmp_path):
    old.save(tmp_path / "old", {"fingerprint": "old"})
    ratings = tmp_path / "ratings.jsonl"
    rated = talks(40, 23, n_users=12)
    write_dialogues(
        ratings, [replace(one.dialogue, metadata={"rating": one.rating, "user": one.user}) for one in rated]
    )
    told = invoke("learn", "adapt", tmp_path / "old", ratings, "--out", tmp_path / "new", "--json")
    about = json.loads(told)
    assert about["n_ratings"] == 40
    assert about["accuracy_before"] > 0.7
    assert 0 < about["correlation"] < 1
    again = invoke("learn", "adapt", tmp_path / "old", ratings, "--out", tmp_path / "new")
    assert "correlation of old and new quality" in again
    told = invoke("learn", "evaluate", ratings, "--evaluator", tmp_path / "new")
    assert "expected by its own probabilities" in told
    scored = invoke("learn", "score", ratings, "--evaluator", tmp_path / "old")
    assert "By its own probabilities" in scored


def test_twenty_ratings_of_nobody_known_have_accuracies_without_an_interval(old, tmp_path):
    """One block of neighbours cannot be drawn from: the numbers are there, and nothing is promised."""
    old.save(tmp_path / "old", {"fingerprint": "old"})
    ratings = tmp_path / "ratings.jsonl"
    write_dialogues(ratings, [replace(one.dialogue, metadata={"rating": one.rating}) for one in talks(24, 23)])
    about = json.loads(invoke("learn", "adapt", tmp_path / "old", ratings, "--out", tmp_path / "new", "--json"))
    assert about["accuracy_before"] > 0.7
    assert about["interval"] == about["interval_before"] == [None, None]
    check = json.loads(invoke("learn", "evaluate", ratings, "--evaluator", tmp_path / "old", "--json"))
    assert check["right"]["value"] > 0.6
    assert check["right"]["low"] is None
    printed = invoke("learn", "evaluate", ratings, "--evaluator", tmp_path / "old")
    assert "nan" not in printed
    assert "1 user or block of neighbours is too few for an interval" in printed
    trained = invoke("learn", "train", ratings, "--aspects", "words,behaviour", "--out", tmp_path / "trained")
    assert "(no interval: too few users or blocks of neighbours)" in " ".join(trained.split())


@pytest.mark.parametrize(
    ("is_useful", "low", "expected", "said"),
    [
        (True, 0.6, 0.65, "order 60 to 70% of pairs right."),
        (True, 0.6, 0.85, "Its probabilities are too high here (it expects 85%)"),
        (False, 0.45, 0.85, "not significantly better than chance. Do not rely on it here"),
        (False, 0.55, 0.85, "not significantly better than taking the longer one"),
    ],
)
def test_what_evaluate_says_where_it_does_not_know(is_useful, low, expected, said):
    estimates = {
        "measured": SimpleNamespace(low=low, high=0.7, has_interval=True),
        "expected": SimpleNamespace(value=expected),
    }
    assert said in _advice(SimpleNamespace(is_useful=is_useful, **estimates))
