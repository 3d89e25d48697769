"""Gwet's AC1 and AC2 against published values and another implementation."""

import numpy as np
import pytest

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.stats.agreement.fleiss import label_counts
from dialometer.stats.agreement.gwet import gwet_coefficient, gwet_of_judgments, gwet_weights

NA = np.nan
# cac.raw4raters of R irrCAC: 12 subjects, 4 raters, missing ratings.
FOUR_RATERS = [
    [1, 1, NA, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4], [1, 1, 2, 1],
    [2, 2, 2, 2], [NA, 5, 5, 5], [NA, NA, 1, 1], [NA, NA, 3, NA],
]  # fmt: skip


@pytest.mark.parametrize(
    ("weights", "value", "error", "observed", "chance", "low"),
    [
        # Python irrCAC 0.4: CAC(frame, weights=..., digits=8).gwet(); "nominal" also as R's vignette prints it.
        ("nominal", 0.77544407, 0.14294995, 0.81818182, 0.19032118, 0.46081335),
        ("ordinal", 0.89893977, 0.10690352, 0.96818182, 0.68515625, 0.6636467),
        ("linear", 0.85873914, 0.11732902, 0.93939394, 0.57096354, 0.6004997),
        ("quadratic", 0.91400072, 0.10396224, 0.97537879, 0.71370443, 0.68518137),
    ],
)
def test_against_irrcac(weights, value, error, observed, chance, low):
    found = gwet_coefficient(FOUR_RATERS, [1, 2, 3, 4, 5], weights=weights)
    assert found.value == pytest.approx(value, abs=1e-8)
    assert found.details["standard_error"] == pytest.approx(error, abs=1e-8)
    assert found.details["observed"] == pytest.approx(observed, abs=1e-8)
    assert found.details["chance"] == pytest.approx(chance, abs=1e-8)
    assert found.low == pytest.approx(low, abs=1e-7)
    assert found.high == 1
    if weights == "nominal":
        assert found.p_value == pytest.approx(0.000208721, abs=1e-9)


def test_against_the_printed_table_of_two_abstractors():
    """R irrCAC 1.0, vignette: gwet.ac1.table(cont3x3abstractors) gives 0.8493305, standard error 0.04321747."""
    table = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    pairs = [(i, j) for i in range(3) for j in range(3) for _ in range(table[i][j])]
    found = gwet_coefficient(pairs, [0, 1, 2])
    assert found.value == pytest.approx(0.8493305, abs=1e-7)
    # The table form divides by n where the form for raw ratings divides by n - 1.
    assert found.details["standard_error"] * np.sqrt(99 / 100) == pytest.approx(0.04321747, abs=1e-8)


def test_weights_are_those_printed():
    """R irrCAC 1.0, vignette on weighting, for three labels."""
    assert gwet_weights([1, 2, 3], "ordinal")[0].tolist() == pytest.approx([1, 2 / 3, 0])
    assert gwet_weights([1, 2, 3], "linear")[0].tolist() == pytest.approx([1, 0.5, 0])
    assert gwet_weights([1, 2, 3], "quadratic")[0].tolist() == pytest.approx([1, 0.75, 0])
    assert gwet_weights(["low", "mid", "high"], "quadratic")[0].tolist() == pytest.approx([1, 0.75, 0])
    assert gwet_weights([0, 1, 10], "linear")[0].tolist() == pytest.approx([1, 0.9, 0])
    with pytest.raises(UnknownName, match="unknown weights"):
        gwet_weights([1, 2], "cubic")


def test_nearly_all_alike_is_agreement():
    """Where 95 of 100 items get the same label twice, Gwet's coefficient stays high while kappa and alpha fall."""
    from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha

    ratings = np.array([[1, 1]] * 95 + [[1, 2], [2, 1], [1, 2], [2, 1], [2, 2]])
    assert gwet_coefficient(ratings, [1, 2]).value > 0.9
    assert krippendorff_alpha(ratings, "nominal", n_resamples=0).value < 0.5


def test_rows_and_matrix_agree():
    target, rater = np.nonzero(~np.isnan(np.array(FOUR_RATERS)))
    values = np.array(FOUR_RATERS)[target, rater]
    for weights in ("nominal", "quadratic"):
        rows = gwet_of_judgments(target, values, weights=weights)
        assert rows.value == pytest.approx(gwet_coefficient(FOUR_RATERS, [1, 2, 3, 4, 5], weights=weights).value)


def test_too_little_says_so():
    assert "at least 2 are needed" in gwet_coefficient([[1, NA], [2, NA]], [1, 2]).notes[0]
    same = gwet_coefficient([[1, 1], [1, 1]], [1, 2])
    assert same.value == 1
    assert not same.has_interval
    with pytest.raises(NotEnoughData, match="not a label"):
        label_counts([[9, 9]], [1, 2])
