"""An evaluator of several models: its scores, its probabilities, and the same after saving and loading."""

import json

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.learned.cmade.evaluator import calibrated, save_evaluator
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.data.calibration import posterior
from dialometer.learned.data.evaluator import read_about
from dialometer.learned.evaluators import load_evaluator


@pytest.fixture
def evaluator(make_encoder, make_dialogues):
    models = [RankNet(make_encoder(seed=seed, window=32), seed=seed).eval() for seed in (1, 2, 3)]
    dialogues, quality = make_dialogues(40)
    tokens = models[0].encoder.tokens(dialogues)
    scores = [model.scores(tokens) for model in models]
    order = np.argsort(np.mean(scores, axis=0) + 0.02 * quality)
    pairs = np.column_stack([order[20:], order[:20]])
    return calibrated(models, scores, scores, pairs)


def test_scores_are_centred_and_uncertainty_is_over_models(evaluator, make_dialogues):
    dialogues, _ = make_dialogues(40)
    told = []
    found = evaluator.score(dialogues, report=lambda n, total: told.append((n, total)))
    assert told[-1] == (120, 120)
    assert found.members.shape == (3, 40)
    np.testing.assert_allclose(found.values, found.members.mean(axis=0))
    np.testing.assert_allclose(found.deviations, found.members.std(axis=0, ddof=1))
    assert abs(found.values.mean()) < 1e-4
    one = evaluator.compare(dialogues[0], dialogues[1])
    assert one.probability == pytest.approx(float(posterior(found.values[0], found.values[1])), abs=1e-4)
    assert one.low <= one.probability <= one.high
    other = evaluator.compare(dialogues[1], dialogues[0])
    assert one.probability + other.probability == pytest.approx(1, abs=1e-4)


def test_saved_and_loaded_it_says_the_same(evaluator, make_dialogues, tmp_path):
    dialogues, _ = make_dialogues(12, seed=4)
    save_evaluator(tmp_path / "e", evaluator, {"n_ratings": 40})
    loaded = load_evaluator(tmp_path / "e", device="cpu")
    np.testing.assert_array_equal(loaded.score(dialogues).members, evaluator.score(dialogues).members)
    assert read_about(tmp_path / "e")["about"] == {"n_ratings": 40}
    assert loaded.members[0].model.encoder.window == 32


def test_classes_are_saved_too(make_encoder, make_dialogues, tmp_path):
    model = RankNet(make_encoder(), levels=(1.0, 3.0, 5.0), seed=1).eval()
    dialogues, _ = make_dialogues(10)
    scores = model.scores(model.encoder.tokens(dialogues))
    assert (scores >= 1).all()
    assert (scores <= 5).all()
    single = calibrated([model], [scores], [scores], np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]))
    save_evaluator(tmp_path / "e", single, {})
    found = load_evaluator(tmp_path / "e", device="cpu").score(dialogues)
    np.testing.assert_allclose(found.values, single.score(dialogues).values)
    assert np.isnan(found.deviations).all()


def test_what_is_no_evaluator_is_refused(evaluator, tmp_path):
    with pytest.raises(DialometerError, match="no evaluator here"):
        load_evaluator(tmp_path)
    save_evaluator(tmp_path / "e", evaluator, {})
    (tmp_path / "e" / "member-2.safetensors").write_bytes(b"broken")
    with pytest.raises(DialometerError, match="damaged"):
        load_evaluator(tmp_path / "e", device="cpu")
    content = json.loads((tmp_path / "e" / "evaluator.json").read_text())
    (tmp_path / "e" / "evaluator.json").write_text(json.dumps({**content, "form": 99}))
    with pytest.raises(DialometerError, match="another form"):
        load_evaluator(tmp_path / "e", device="cpu")
