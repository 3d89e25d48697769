"""Dawid-Skene and MACE against crowd-kit, and against the truth of simulated raters.

Expected values were computed once by crowd-kit 1.4.2 in an environment of its own (it is no dependency), on the labels that
``simulated_labels()`` gives, sorted by rater, label and item: ``DawidSkene(n_iter=3000, tol=-1).fit(df)`` and
``MACE(n_restarts=1, n_iter=3000, method="vb" or "em", random_state=0).fit(df)``.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.stats.agreement.label_models import code_labels, dawid_skene, mace


def simulated_labels():
    """Six raters, 60 items, three classes; rater r4 says 'a' whatever is shown."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 3, 60)
    accuracy = [0.9, 0.85, 0.75, 0.6, 0.34, 0.8]
    rows = []
    for item in range(60):
        for rater in range(6):
            if rng.random() < 0.8:
                is_right = rng.random() < accuracy[rater]
                label = truth[item] if is_right else (rng.integers(0, 3) if rater != 4 else 0)
                if rater == 4:
                    label = 0 if rng.random() < 0.8 else rng.integers(0, 3)
                rows.append((f"r{rater}", f"i{item:02}", "abc"[label]))
    return truth, code_labels(*zip(*rows, strict=True))


def rows_of(labels, matrix, names=("i00", "i07", "i33")):
    return matrix[[labels.items.index(name) for name in names]]


def test_dawid_skene_equals_crowd_kit():
    _, labels = simulated_labels()
    result = dawid_skene(labels, tolerance=1e-13, max_iterations=5000)
    assert result.is_converged
    assert result.prior == pytest.approx([0.25010032847628466, 0.349719505074309, 0.4001801664494064], abs=1e-9)
    expected = [[0.9999999999999392, 0, 0], [0.9999999999999887, 0, 0], [0, 0, 0.9999999999606941]]
    assert rows_of(labels, result.posterior) == pytest.approx(np.array(expected), abs=1e-9)
    # Raters by true class by given class: what r4 calls 'a', whatever is true.
    assert result.confusion[4, :, 0] == pytest.approx([0.909111, 0.941093, 1.0], abs=1e-6)
    assert result.confusion[4, :, 2] == pytest.approx([0.090889, 0.058907, 0.0], abs=1e-6)
    assert result.confusion.sum(axis=2) == pytest.approx(np.ones((6, 3)))


def test_mace_by_variational_bayes_equals_crowd_kit():
    _, labels = simulated_labels()
    result = mace(labels, tolerance=1e-13, max_iterations=5000)
    weights = [result.competence[name].details["weight"] for name in labels.raters]
    expected = [
        0.9357788575047067,
        0.8742879004987221,
        0.7219985876712317,
        0.553650843895248,
        0.003978008864345886,
        0.7116339655546332,
    ]
    assert weights == pytest.approx(expected, abs=1e-9)
    habit = np.array([0.7083836270318712, 0.12598791393799047, 0.15248171211599917])
    assert result.habit[4] == pytest.approx(habit / habit.sum(), abs=1e-9)
    assert rows_of(labels, result.posterior)[2] == pytest.approx(
        [0.01728530246825558, 0.010218129256990064, 0.9724965682747544], abs=1e-9
    )


def test_mace_by_plain_em_equals_crowd_kit():
    _, labels = simulated_labels()
    result = mace(labels, fitting="em", tolerance=1e-13, max_iterations=5000)
    expected = [
        0.9363635696387432,
        0.8853870065220969,
        0.7450524877217956,
        0.5664068580812368,
        9.873739853559675e-05,
        0.7097365138915553,
    ]
    assert [estimate.value for estimate in result.competence.values()] == pytest.approx(expected, abs=1e-9)
    assert result.habit[4] == pytest.approx([0.9563882208974422, 7.244992269198244e-05, 0.043539329179865804], abs=1e-9)
    assert all(estimate.low <= estimate.value <= estimate.high for estimate in result.competence.values())


@pytest.mark.parametrize("model", [dawid_skene, mace])
def test_the_truth_is_found_and_the_careless_rater_with_it(model):
    truth, labels = simulated_labels()
    result = model(labels)
    right = np.mean([result.consensus[f"i{k:02}"] == "abc"[truth[k]] for k in range(60)])
    votes = np.zeros((60, 3))
    np.add.at(votes, (labels.item, labels.label), 1)
    assert right >= np.mean(votes.argmax(axis=1) == truth)
    assert right > 0.9
    quality = result.accuracy if model is dawid_skene else result.competence
    assert min(quality, key=lambda name: quality[name].value) == "r4"
    assert quality["r4"].high < quality["r0"].low
    assert quality["r0"].n == labels.labels_per_rater[0]
    assert result.posterior.sum(axis=1) == pytest.approx(np.ones(60))


def test_likelihood_of_dawid_skene_never_falls():
    _, labels = simulated_labels()
    path = [dawid_skene(labels, max_iterations=k).log_likelihood for k in range(1, 30)]
    assert (np.diff(path) > -1e-9).all()


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(3)), seed=st.integers(0, 100))
def test_renaming_classes_and_shuffling_rows_change_nothing(order, seed):
    _, labels = simulated_labels()
    shuffle = np.random.default_rng(seed).permutation(labels.n)
    turned = code_labels(
        [labels.raters[k] for k in labels.rater[shuffle]],
        [labels.items[k] for k in labels.item[shuffle]],
        ["xyz"[order[k]] for k in labels.label[shuffle]],
    )
    base, again = dawid_skene(labels), dawid_skene(turned)
    base_mace, again_mace = mace(labels, n_starts=3).competence, mace(turned, n_starts=3).competence
    assert again.posterior[:, list(order)] == pytest.approx(base.posterior, abs=1e-6)
    for name in labels.raters:
        assert again.accuracy[name].value == pytest.approx(base.accuracy[name].value, abs=1e-6)
        assert again_mace[name].value == pytest.approx(base_mace[name].value, abs=1e-5)


def test_smoothing_draws_confusions_towards_even():
    _, labels = simulated_labels()
    sharp, smooth = dawid_skene(labels), dawid_skene(labels, smoothing=5)
    assert smooth.confusion.max() < sharp.confusion.max()


def test_the_same_seed_gives_the_same_mace_and_too_few_rounds_are_told():
    _, labels = simulated_labels()
    assert mace(labels, seed=3).log_likelihood == mace(labels, seed=3).log_likelihood
    assert not mace(labels, max_iterations=2).is_converged
    hurried = dawid_skene(labels, max_iterations=2)
    assert not hurried.is_converged
    assert hurried.accuracy["r0"].notes == ("not settled after 2 rounds",)
    with pytest.raises(DialometerError, match="0 starts"):
        mace(labels, n_starts=0)


@pytest.mark.parametrize("model", [dawid_skene, mace])
@pytest.mark.parametrize(
    ("rater", "item", "label", "message"),
    [
        (["r", "r"], ["i", "j"], ["a", "b"], "one rater"),
        (["r", "s"], ["i", "i"], ["a", "a"], "every label is 'a'"),
        (["r", "s"], ["i", "j"], ["a", "b"], "no item was labelled by two raters"),
    ],
)
def test_nothing_to_learn_from_is_an_error(model, rater, item, label, message):
    with pytest.raises(NotEnoughData, match=message):
        model(code_labels(rater, item, label))


def test_labels_are_checked():
    with pytest.raises(NotEnoughData, match="no labels"):
        code_labels([], [], [])
    with pytest.raises(DialometerError, match="unknown label 'yess'"):
        code_labels(["r"], ["i"], ["yess"], classes=["yes", "no"])
    with pytest.raises(DialometerError, match="2 labels"):
        code_labels(["r"], ["i"], ["a", "b"])
    assert code_labels(["r"], ["i"], ["no"], classes=["yes", "no"]).label.tolist() == [1]


def test_known_classes_anchor_the_tables_of_raters():
    """A judge that always says the opposite is read rightly as soon as some true classes are known."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 200)
    says = {"opposite": 1 - truth, "reverse": np.where(rng.random(200) < 0.9, 1 - truth, truth)}
    rows = [(judge, str(i), "ab"[label]) for judge, given in says.items() for i, label in enumerate(given)]
    labels = code_labels(*zip(*rows, strict=True))
    known = {str(i): "ab"[truth[i]] for i in range(40)}
    anchored, alone = dawid_skene(labels, known=known).consensus, dawid_skene(labels).consensus
    right = [np.mean([found[str(i)] == "ab"[truth[i]] for i in range(40, 200)]) for found in (anchored, alone)]
    assert right[0] > 0.95
    assert right[1] < 0.2
    assert all(anchored[item] == label for item, label in known.items())
