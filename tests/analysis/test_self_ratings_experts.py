"""Experts beside self-ratings: counted by hand, tested against other software, and as published."""

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import Table

from dialometer.analysis.families.conversations.experts import (
    ExpertPair,
    disagreement_by_gap,
    expert_agreement,
    read_expert_pairs,
)
from dialometer.errors import DialometerError

# Liang, Zou and Yu (ACL 2020), table 2: the rates as published; how many pairs stand behind each is not.
PUBLISHED = {1: (0.45, 100), 2: (0.383, 60), 3: (0.220, 50), 4: (0.157, 51)}


def published_pairs():
    """Pairs with the published rates: one rated 5, the other lower by the gap."""
    ratings, pairs = {}, []
    for gap, (rate, n) in PUBLISHED.items():
        for k in range(n):
            high, low = f"h{gap}-{k}", f"l{gap}-{k}"
            ratings[high], ratings[low] = 5, 5 - gap
            disagrees = k < round(rate * n)
            pairs.append(ExpertPair(high, low, "second" if disagrees else "first"))
    return ratings, pairs


def test_the_published_table_is_reproduced_from_its_pairs():
    ratings, pairs = published_pairs()
    found = disagreement_by_gap(ratings, pairs)
    assert [one.gap for one in found.gaps] == [1, 2, 3, 4]
    assert [one.share.value for one in found.gaps] == pytest.approx([0.45, 0.383, 0.22, 0.157], abs=0.001)
    assert found.overall.value == pytest.approx(1 / 3, abs=0.02)
    assert found.trend.value < 0
    assert found.trend.p_value < 0.001
    assert found.trend.high < 0


def test_the_trend_is_the_test_of_other_software():
    ratings, pairs = published_pairs()
    found = disagreement_by_gap(ratings, pairs)
    table = np.array([[one.n_disagree, one.share.n - one.n_disagree] for one in found.gaps])
    peer = Table(table).test_ordinal_association(row_scores=np.array([1, 2, 3, 4]), col_scores=np.array([1, 0]))
    n = table.sum()
    assert found.trend.statistic == pytest.approx(peer.zscore * np.sqrt(n / (n - 1)))
    x = np.repeat([1, 2, 3, 4], table.sum(axis=1))
    y = np.concatenate([np.repeat([1, 0], row) for row in table])
    assert found.trend.value == pytest.approx(np.polyfit(x, y, 1)[0])


def test_the_order_within_a_pair_does_not_matter():
    ratings = {"a": 5, "b": 2, "c": 3, "d": 3}
    one = disagreement_by_gap(ratings, [ExpertPair("a", "b", "first"), ExpertPair("c", "b", "second")])
    two = disagreement_by_gap(ratings, [ExpertPair("b", "a", "second"), ExpertPair("b", "c", "first")])
    assert [(g.gap, g.n_disagree) for g in one.gaps] == [(g.gap, g.n_disagree) for g in two.gaps] == [(1, 1), (3, 0)]


def test_what_cannot_be_used_is_counted():
    ratings = {"a": 5, "b": 2, "c": 5}
    pairs = [
        ExpertPair("a", "c", "first"),  # equal ratings
        ExpertPair("a", "b", "cannot_tell"),
        ExpertPair("a", "z", "first"),  # no rating
        ExpertPair("b", "c", "first", "e1"),
        ExpertPair("b", "c", "second", "e2"),  # divided
    ]
    found = disagreement_by_gap(ratings, pairs)
    assert (found.n_equal, found.n_undecided, found.n_unrated) == (1, 2, 1)
    assert not found.gaps
    assert not found.overall.is_known
    assert not found.trend.is_known


def test_several_experts_decide_by_majority():
    ratings = {"a": 5, "b": 2}
    pairs = [ExpertPair("a", "b", better, f"e{k}") for k, better in enumerate(("second", "second", "first"))]
    found = disagreement_by_gap(ratings, pairs)
    assert found.overall.value == 1
    assert found.overall.n == 1


def test_wide_scales_are_cut_into_steps():
    ratings = {"a": 90.0, "b": 70.0, "c": 10.0}
    pairs = [ExpertPair("a", "b", "first"), ExpertPair("a", "c", "first"), ExpertPair("b", "c", "second")]
    found = disagreement_by_gap(ratings, pairs, width=25.0)
    assert [(one.gap, one.share.n, one.n_disagree) for one in found.gaps] == [(25, 1, 0), (75, 1, 1), (100, 1, 0)]


def test_experts_among_themselves():
    same = [ExpertPair(f"a{k}", f"b{k}", ("first", "second")[k % 2], e) for k in range(20) for e in ("e1", "e2")]
    assert expert_agreement(same).value == pytest.approx(1)
    turned = [
        ExpertPair(f"a{k}", f"b{k}", "first", "e1") if e == "e1" else ExpertPair(f"b{k}", f"a{k}", "second", "e2")
        for k in range(20)
        for e in ("e1", "e2")
    ]
    assert not expert_agreement(turned).is_known or expert_agreement(turned).value == 1
    three = [*same, *(ExpertPair(f"a{k}", f"b{k}", "first", "e3") for k in range(20))]
    assert "Krippendorff" in expert_agreement(three).method
    assert expert_agreement([ExpertPair("a", "b", "first", "e1")]) is None


def test_files_are_read_and_faults_named_with_their_line(tmp_path):
    path = tmp_path / "expert_pairs.csv"
    path.write_text("first,second,better,expert\nR0001/x,R0002/x,first,e1\nR0003/x,R0002/x,cannot_tell,e1\n")
    assert read_expert_pairs(path)[1] == ExpertPair("R0003/x", "R0002/x", "cannot_tell", "e1")
    for text, told in (
        ("first,second,better\na,b,left\n", "expert_pairs.csv:2"),
        ("first,second,better\na,a,first\n", "two different"),
        ("first,better\na,first\n", "the column 'second' is missing"),
    ):
        path.write_text(text)
        with pytest.raises(DialometerError, match=told):
            read_expert_pairs(path)
