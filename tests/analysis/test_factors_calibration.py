"""Over many simulated studies intervals hold the truth as often as they say, and effects that are not there stay unfound."""

import math

import numpy as np
import pytest

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures, rater_rows
from dialometer.analysis.families.ratings.conditions import cell_means
from dialometer.analysis.families.ratings.consistency import difference as consistency_difference
from dialometer.analysis.families.ratings.factor_effects import FactorEffects, contrasts
from dialometer.analysis.families.ratings.spread import _relative, place_effects, session_drift
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import draw_truth

N_STUDIES = 120
OPTIONS = Options(confidence=0.95, n_resamples=200, seed=1, correction="holm")


def band(n, share, sds=3.2):
    """Shares that ``n`` draws of a true share may show; beyond it lies one run in a thousand."""
    half = sds * math.sqrt(share * (1 - share) / n)
    return max(0.0, share - half), min(1.0, share + half)


@pytest.fixture(scope="module")
def tallies(template):
    from dialometer.analysis.base.data import data_from_arrays
    from dialometer.simulate.judgment_arrays import simulate_judgments

    study = template("anchoring", n_items=10)
    habits = Habits(careless_share=0)
    counts = {name: [] for name in ("anchor", "system", "mean", "cell", "layout", "drift", "place", "steady")}
    for seed in range(N_STUDIES):
        truth = draw_truth(study, seed)
        data = data_from_arrays(study, simulate_judgments(study, truth, habits, n_raters=28, seed=seed))
        measures = numeric_measures(data)
        measure = measures.criteria[0]
        quality = truth.systems[measure.name]
        rows = rater_rows(data, measures)
        effects = FactorEffects(study, measure, rows, OPTIONS)
        anchor, layout = (contrasts(factor)[0] for factor in study.spec.design.factors)
        # The truth in the population of items: half of the way to 80, and a slope that the anchor flattens by 15%.
        middle = float(np.mean(list(quality.values())))
        pull = 0.5 * math.log(80 / 55) - 0.15 * habits.slope * middle
        counts["anchor"].append(holds(effects.difference(anchor), pull))
        counts["layout"].append(holds(effects.difference(layout), 0.0))
        ratings = SystemRatings(study, measure, OPTIONS)
        names = measure.book.systems
        slope = habits.slope * (1 + 0.85) / 2
        pair = ratings.compare([(names.index("thred"), names.index("seq2seq"))])[0]
        counts["system"].append(holds(pair.difference, slope * (quality["thred"] - quality["seq2seq"])))
        centre = (math.log(55) + 0.5 * (math.log(55) + math.log(80))) / 2
        own = ratings.means[names.index("hred")]
        counts["mean"].append(own.low <= math.exp(centre + slope * quality["hred"]) <= own.high)
        free = cell_means(rows.y[measure.name], rows, OPTIONS)[0]
        realised = np.mean([truth.quality(i.id, measure.name, s) for i in study.rated_items for s in quality])
        counts["cell"].append(holds(free, math.log(55) + habits.slope * float(realised)))
        rest = _relative(measure)
        counts["drift"].append(session_drift(measure, rest, OPTIONS).p_value >= 0.05)
        counts["place"].append(place_effects(measure, rest, OPTIONS)[0][1].p_value >= 0.05)
        if seed % 3 == 0:
            counts["steady"].append(consistency_difference(measure, rows, layout, OPTIONS).p_value >= 0.05)
    return counts


def holds(estimate, truth):
    return estimate.low <= truth <= estimate.high


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("anchor", id="effect of the anchor"),
        pytest.param("layout", id="effect of the layout, which is none"),
        pytest.param("system", id="difference of two systems, other items and raters"),
        pytest.param("mean", id="mean of a system, other items and raters"),
        pytest.param("drift", id="no drift"),
        pytest.param("place", id="no effect of the place"),
        pytest.param("steady", id="no change in consistency"),
    ],
)
def test_intervals_hold_the_truth(tallies, name):
    share = float(np.mean(tallies[name]))
    low, high = band(len(tallies[name]), 0.95)
    assert low <= share <= high, f"{share:.3f} of {len(tallies[name])}"


@pytest.mark.slow
def test_bootstrap_means_of_few_raters_are_a_little_narrow_as_their_note_says(tallies):
    # 7 raters in a condition: the percentile bootstrap holds about 90%, which is why the report warns below ten.
    share = float(np.mean(tallies["cell"]))
    low, high = band(len(tallies["cell"]), 0.90)
    assert low <= share <= high, f"{share:.3f}"


@pytest.mark.slow
@pytest.mark.parametrize("careless", [0.0, 0.05])
def test_anchoring_that_is_not_there_is_seldom_claimed(template, careless):
    """Size and consistency, any of the four primary tests after correction: at most 5% and two standard errors."""
    from dialometer.analysis.base.data import data_from_arrays
    from dialometer.analysis.families.ratings.factors import Factors
    from dialometer.simulate.judgment_arrays import simulate_judgments

    study = template("anchoring", n_items=8)
    habits = Habits(careless_share=careless, anchor_pull=0, text_anchor_calm=0)
    comparison = study.spec.analysis.comparisons[0]
    n_studies, claims = 60, 0
    for seed in range(n_studies):
        columns = simulate_judgments(study, draw_truth(study, seed), habits, n_raters=24, seed=seed)
        tests = Factors().primary_tests(data_from_arrays(study, columns), comparison, OPTIONS)
        assert len(tests) == 4
        claims += any(test.details["p_adjusted"] < 0.05 for test in tests.values())
    assert claims <= 0.05 * n_studies + 2 * math.sqrt(n_studies * 0.05 * 0.95)
