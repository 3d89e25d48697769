"""Agreement on spans: by hand, and against the package krippendorff."""

import krippendorff
import numpy as np
import pytest

from dialometer.stats.agreement.spans import MarkedText, labels_of, span_alpha, span_f1

KINDS = ("false", "rude")
FEW = {"n_resamples": 50, "seed": 1}
BY_HAND = MarkedText(10, {"a": [(0, 4, "false")], "b": [(2, 6, "false")]})


def drawn(seed, n_texts=12):
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n_texts):
        n = int(rng.integers(30, 80))
        by_rater = {}
        for rater in range(int(rng.integers(2, 5))):
            starts = rng.integers(0, n - 10, int(rng.integers(0, 3)))
            by_rater[str(rater)] = [
                (int(s), int(s) + int(rng.integers(2, 9)), KINDS[int(rng.integers(2))]) for s in starts
            ]
        texts.append(MarkedText(n, by_rater))
    return texts


def test_the_values_of_the_docstring():
    twice = [BY_HAND, BY_HAND]
    assert span_f1(twice, KINDS, **FEW).value == pytest.approx(0.5)
    assert span_f1(twice, KINDS, is_corrected=True, **FEW).value == pytest.approx(1 / 6)
    one = [BY_HAND, MarkedText(10, {"c": []})]  # a text that one rater read says nothing
    assert not span_alpha(one, KINDS, **FEW).is_known
    labels = np.minimum(labels_of(BY_HAND, KINDS), 1)
    assert krippendorff.alpha(labels, level_of_measurement="nominal") == pytest.approx(1 - 152 / 192)


@pytest.mark.parametrize("by_category", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_that_of_the_package_over_all_characters(seed, by_category):
    texts = drawn(seed)
    most = max(len(text.by_rater) for text in texts)
    columns = []
    for text in texts:
        labels = labels_of(text, KINDS).astype(float)
        labels = labels if by_category else np.minimum(labels, 1)
        columns.append(np.vstack([labels, np.full((most - len(labels), text.n_characters), np.nan)]))
    expected = krippendorff.alpha(np.hstack(columns), level_of_measurement="nominal")
    found = span_alpha(texts, KINDS, by_category=by_category, **FEW)
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high


def test_chance_is_the_mean_over_all_shifts():
    text = MarkedText(12, {"a": [(1, 4, "false"), (8, 10, "rude")], "b": [(3, 9, "false")]})
    labels = labels_of(text, KINDS)
    for by_category in (False, True):
        shared = []
        for shift in range(12):
            moved = np.roll(labels[1], shift)
            same = (labels[0] == moved) if by_category else np.ones(12, dtype=bool)
            shared.append(2 * np.sum(same & (labels[0] > 0) & (moved > 0)) / np.sum(labels > 0))
        plain = span_f1([text, text], KINDS, by_category=by_category, **FEW).value
        corrected = span_f1([text, text], KINDS, by_category=by_category, is_corrected=True, **FEW).value
        assert corrected == pytest.approx((plain - np.mean(shared)) / (1 - np.mean(shared)))


def test_perfect_agreement_and_no_marks():
    text = MarkedText(20, {"a": [(2, 5, "rude")], "b": [(2, 5, "rude")]})
    assert span_alpha([text, text], KINDS, **FEW).value == 1
    assert span_f1([text, text], KINDS, by_category=True, is_corrected=True, **FEW).value == pytest.approx(1)
    empty = MarkedText(20, {"a": [], "b": []})
    assert "nobody marked anything" in span_alpha([empty, empty], KINDS, **FEW).notes[0]
    assert "nobody marked anything" in span_f1([empty, empty], KINDS, **FEW).notes[0]
