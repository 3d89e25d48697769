"""Adaptive assignment in a running study: raters at once, a restart, the weights of the analysis, an export, on both databases."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data, load_exported
from dialometer.analysis.base.measures import numeric_measures
from dialometer.design.adaptive import chances, open_by_ratings, sets_of
from dialometer.design.assign import build_plan
from dialometer.exchange.exports.export import export_study
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import Truth, gold_overrides
from dialometer.storage.store import Store
from report_parts import table_of

START_MS = 1_800_000_000_000
MEANS = {"helpfulness": {"rules": 0.8, "retrieval": 0.7, "neural": -1.0}}


@pytest.fixture
def study(shorten):
    per_rater = "  items_per_rater: 10\n  judgments_per_item: 5\n"
    return shorten(
        "likert", 6, replace={per_rater: "  items_per_rater: 6\n  systems_per_item: 2\n  assignment: adaptive\n"}
    )


def test_raters_go_where_it_is_open_and_answers_weigh_by_their_draw(study, study_url, tmp_path):
    with Store.open(study_url) as store:
        flow = Flow(study, store, clock=lambda: START_MS)
        truth = Truth(MEANS, item_sd=0.2, overrides=gold_overrides(study))
        simulate(study, EngineAccess(flow), truth, n_raters=12, seed=3, start_ms=START_MS)
        openness = flow._openness("simulated")
        counted = store.records.rating_counts("helpfulness", "simulated")
        assert openness == open_by_ratings(study, study.spec.scales["helpfulness_7"], counted)
        assert openness["rules", "retrieval"] > openness["rules", "neural"]
        with ThreadPoolExecutor(4) as pool:
            arrived = list(pool.map(lambda n: flow.arrive(external_id=f"p{n}", source="simulated"), range(6)))
        assert sorted(one.session.ordinal for one in arrived) == list(range(13, 19))
        likely = chances(sets_of(study, study.items[3]), openness, 0.5)
        for one in arrived:
            assert {pair.probability for pair in one.session.draw.pairs.values()} <= {
                round(p, 9) for p in likely.tolist()
            }
        data = load_data(study, store)
        report = analyse(study, store, n_resamples=100)
        export_study(study, store, tmp_path / "export")
    with Store.open(study_url) as store:  # a restart
        again = {session.id: session for session in store.sessions.all()}
        for one in arrived:
            assert build_plan(study, again[one.session.id].draw) == build_plan(study, one.session.draw)
    pairs = {(s.ordinal, item): pair for s in again.values() for item, pair in s.draw.pairs.items()}
    for rater, item, systems, probability, weight in data.draws.rows():
        pair = pairs[int(rater[1:]), item]
        assert (systems, probability) == ("|".join(pair.systems), pair.probability)
        assert weight == pytest.approx((3 * pair.probability) ** -0.5)
    screens, book = numeric_measures(data).criteria[0].screens, numeric_measures(data).book
    named = zip(screens.rater, screens.item, screens.weight, strict=True)
    wanted = {(rater, item): weight for rater, item, _, _, weight in data.draws.rows()}
    assert all(wanted[book.raters[r], book.items[i]] == weight for r, i, weight in named)
    exported = load_exported(study, tmp_path / "export")
    assert exported.draws.sort("rater", "item").equals(data.draws.sort("rater", "item"))
    assert len(set(screens.weight.tolist())) > 3
    drawn = table_of(report, "assigned_pairs").rows
    assert sum(row[2] for row in drawn) == 6 * len(data.used_sessions().filter(state="completed"))
    assert max(drawn, key=lambda row: row[2])[:2] == ("Rules", "Retrieval")
    assert "Assignment of raters" in [method.what for method in report.methods]
