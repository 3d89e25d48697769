"""Work in parts gives the same numbers in this process and on a Ray of two workers."""

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.learned.cmade.shapley import knn_shapley
from dialometer.neural.engines import LOCAL, open_engine


def tripled(shared, part):
    return shared * part


def test_local_results_come_in_order_and_as_they_are_asked_for():
    seen = []
    results = LOCAL.run(lambda shared, part: seen.append(part) or shared + part, 10, [1, 2, 3])
    assert next(results) == 11
    assert seen == [1]
    assert list(results) == [12, 13]


def test_unknown_engines_are_told_with_the_known_ones():
    assert open_engine("local") is LOCAL
    with pytest.raises(DialometerError, match=r"unknown engine 'rays' — did you mean 'ray'\?"):
        open_engine("rays")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_ray_workers_give_the_numbers_of_one_process(two_workers):
    assert two_workers.n_workers == 2
    assert list(two_workers.run(tripled, 3, range(9))) == [3 * n for n in range(9)]
    rng = np.random.default_rng(0)
    features, development = rng.normal(size=(600, 12)), rng.normal(size=(400, 12))
    ratings = rng.integers(1, 6, 600).astype(float)
    pairs = [(n, n + 200) for n in range(200)]
    told = []
    on_ray = knn_shapley(
        features, ratings, development, pairs, 25, engine=two_workers, report=lambda *now: told.append(now)
    )
    np.testing.assert_array_equal(on_ray, knn_shapley(features, ratings, development, pairs, 25))
    assert told[-1] == (400, 400)
    assert len(told) == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scores_on_ray_are_those_of_one_process(two_workers, tmp_path, make_dialogues, make_encoder):
    from dialometer.learned.cmade.evaluator import Member, RankNetEvaluator, save_evaluator
    from dialometer.learned.cmade.ranknet import RankNet
    from dialometer.learned.evaluators import PART, score_dialogues

    members = [Member(RankNet(make_encoder(seed), seed=seed), 0.1 * seed, 1.0) for seed in (0, 1)]
    save_evaluator(tmp_path, RankNetEvaluator(members), {})
    dialogues, _ = make_dialogues(PART + 40)
    here = score_dialogues(tmp_path, dialogues, device="cpu")
    there = score_dialogues(tmp_path, dialogues, device="cpu", engine=two_workers)
    np.testing.assert_allclose(there.values, here.values, atol=1e-6)
    np.testing.assert_allclose(there.members, here.members, atol=1e-6)


def slowly(shared, part):
    """Long enough that a worker can be killed while it works."""
    import time

    time.sleep(1.0)
    return part * part


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_changes_no_number(one_dies):
    assert list(one_dies.run(slowly, None, range(6))) == [n * n for n in range(6)]
    assert one_dies.n_begun() > 6, "a part was begun twice"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_power_on_ray_is_that_of_one_process(two_workers):
    from dialometer.analysis.planning.power import PowerAnalysis
    from dialometer.design.load import load_study
    from dialometer.design.templates import template_folder

    study = load_study(template_folder("best-worst"))
    here, there = (
        PowerAnalysis(study, 1.0, n_simulations=20, seed=3, engine=engine).run([12]) for engine in (LOCAL, two_workers)
    )
    assert there == here


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_report_on_ray_is_that_of_one_process(two_workers):
    from dialometer.analysis.base.choose import analyse
    from dialometer.analysis.planning.simulated_study import planted, simulated_data
    from dialometer.design.load import load_study
    from dialometer.design.templates import template_folder

    study = load_study(template_folder("best-worst"))
    truth, habits, _ = planted(study, 0.8, 3)
    data = simulated_data(study, truth, habits, n_raters=12, seed=3)
    here, there = (analyse(study, data, n_resamples=200, engine=engine) for engine in (LOCAL, two_workers))
    assert repr(there) == repr(here)  # as written: a number that is missing equals no other
