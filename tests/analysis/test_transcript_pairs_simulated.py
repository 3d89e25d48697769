"""From simulated raters to a written report, by the same path as people: the truth behind the choices comes out."""

import numpy as np
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.analysis.families.pairs.choices import pair_choices
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.report.render import render
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

START_MS = 1_800_000_000_000


def simulated(folder, *, n_raters, spread, habits):
    study = load_study(folder)
    truth = draw_truth(study, 1, spread=spread)
    store = Store.open(folder / "study.db")
    flow = Flow(study, store, clock=lambda: START_MS)
    simulate(study, EngineAccess(flow), truth, n_raters=n_raters, seed=1, start_ms=START_MS, habits=habits)
    return study, truth, store


@pytest.mark.parametrize("name", ["strategies", "acute", "best-worst"])
def test_a_template_is_simulated_and_reported(tmp_path, name):
    copy_template(name, tmp_path / name)
    study, _, store = simulated(tmp_path / name, n_raters=12, spread=0.8, habits=Habits(careless_share=0))
    with store:
        report = analyse(study, store, n_resamples=200)
    assert not [section for section in report.sections if section.problem]
    assert any(section.is_confirmatory for section in report.sections)
    assert "simulated" in report.summary.warnings[0]
    (path,) = render(report, tmp_path / "report", formats=["markdown"])
    text = path.read_text(encoding="utf-8")
    assert report.summary.answer.split()[0] in text
    assert "nan" not in text.lower().split()


def test_shares_of_simulated_raters_hold_the_truth(tmp_path):
    """The chance that a rater prefers the better version follows from the truth and the noise of perception."""
    from scipy.stats import norm

    copy_template("strategies", tmp_path / "s")
    habits = Habits(careless_share=0)
    study, truth, store = simulated(tmp_path / "s", n_raters=40, spread=0.3, habits=habits)
    with store:
        choices = pair_choices(load_data(study, store))
    inside = []
    for k, item_id in enumerate(choices.items):
        for q, question in enumerate(choices.questions):
            here = (choices.item == k) & (choices.question == q)
            gap = truth.quality(item_id, question, "experimental") - truth.quality(item_id, question, "control")
            expected = norm.cdf(gap / (habits.noise_sd * np.sqrt(2)))
            n = int(here.sum())
            found = float(choices.share[here].mean())
            inside.append(abs(found - expected) < 3 * np.sqrt(max(expected * (1 - expected), 0.02) / n))
    assert np.mean(inside) > 0.95
