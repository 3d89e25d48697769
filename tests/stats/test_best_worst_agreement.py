"""Agreement on best-worst choices: alpha against another implementation, halves against Cronbach's alpha."""

import itertools

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import pytest

from dialometer.stats.ranking.best_worst_agreement import agreeing_picks, best_worst_alpha, split_half
from ranking_data import code_best_worst


def simulated(n_raters=12, n_items=20, n=5, size=5, sharpness=1.5, seed=2):
    """Raters who see the same quality of every response, with noise; sets hold ``size`` of ``n`` systems."""
    rng = np.random.default_rng(seed)
    quality = sharpness * rng.normal(size=(n_items, n))
    shown, best, worst, rater, item = [], [], [], [], []
    for who, thing in itertools.product(range(n_raters), range(n_items)):
        members = np.sort(rng.choice(n, size, replace=False))
        seen = quality[thing, members] + rng.normal(size=size)
        shown.append([f"s{k}" for k in members])
        best.append(f"s{members[seen.argmax()]}")
        worst.append(f"s{members[seen.argmin()]}")
        rater.append(f"r{who:02}")
        item.append(f"i{thing:02}")
    return code_best_worst(shown, best, worst, rater=rater, item=item, systems=[f"s{k}" for k in range(n)])


def by_rater(choices):
    """Marks as raters by (item, system)."""
    table = np.full((len(choices.raters), int(choices.item.max()) + 1, len(choices.systems)), np.nan)
    table[choices.rater, choices.item] = choices.marks()
    return table.reshape(len(table), -1)


@pytest.mark.parametrize("size", [5, 3])
def test_alpha_of_the_marks_is_that_of_another_implementation(size):
    choices = simulated(size=size)
    alpha = best_worst_alpha(choices, n_resamples=200)
    assert alpha.value == pytest.approx(
        krippendorff.alpha(by_rater(choices), level_of_measurement="interval"), abs=1e-12
    )
    assert alpha.low < alpha.value < alpha.high
    assert alpha.n == 20  # items are drawn, not single marks


def test_raters_who_choose_at_random_agree_by_chance():
    choices = simulated(n_items=300, sharpness=0.0)
    assert best_worst_alpha(choices, n_resamples=100).value == pytest.approx(0, abs=0.02)
    for end in ("best", "worst"):
        assert agreeing_picks(choices, end, n_resamples=100).value == pytest.approx(1 / 5, abs=0.02)
    assert abs(split_half(choices, of="responses").details["correlation"]) < 0.1


@pytest.mark.parametrize("end", ["best", "worst"])
def test_the_share_of_agreeing_raters_counts_pairs_with_the_same_systems(end):
    choices = simulated(n=4, size=3, n_items=8)
    sets = np.sort(choices.shown, axis=1).tolist()
    picked = getattr(choices, end)
    shares = {}
    for a, b in itertools.combinations(range(choices.n), 2):
        if choices.item[a] == choices.item[b] and sets[a] == sets[b]:
            shares.setdefault((int(choices.item[a]), *sets[a]), []).append(picked[a] == picked[b])
    expected = np.mean([np.mean(pairs) for pairs in shares.values()])
    assert agreeing_picks(choices, end, n_resamples=50).value == pytest.approx(expected)


def test_full_agreement_is_one():
    one = simulated(n_raters=1, n_items=6)
    choices = code_best_worst(
        [[one.systems[k] for k in row] for row in one.shown.tolist()] * 6,
        [one.systems[k] for k in one.best] * 6,
        [one.systems[k] for k in one.worst] * 6,
        rater=[f"r{k}" for k in range(6) for _ in range(6)],
        item=[f"i{k}" for k in range(6)] * 6,
    )
    assert best_worst_alpha(choices, n_resamples=20).value == pytest.approx(1)
    assert agreeing_picks(choices, "best", n_resamples=20).value == 1
    assert split_half(choices, of="responses").value == pytest.approx(1)


def test_the_mean_of_the_halves_is_close_to_cronbachs_alpha():
    choices = simulated(n_raters=12, n_items=60)
    halves = split_half(choices, of="responses")
    peer, _ = pingouin.cronbach_alpha(pd.DataFrame(by_rater(choices).T))
    assert halves.value == pytest.approx(peer, abs=0.005)
    plain = halves.details["correlation"]
    assert halves.value == pytest.approx(2 * plain / (1 + plain))
    assert halves.details["n_splits"] == 200


def test_too_few_raters_or_systems_say_so():
    assert "four raters" in split_half(simulated(n_raters=3), of="responses").notes[0]
    assert not split_half(simulated(n=2, size=2), of="systems").is_known
    assert not best_worst_alpha(simulated(n_raters=1)).is_known
