"""Frozen features: means of utterance vectors by side, kept in the cache."""

import numpy as np

from dialometer.learned.gaussian.features import frozen_features
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural import fast_encoding
from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.work import Work

DIALOGUES = [
    Dialogue(
        "a", (Turn("Bot", "Hello there.", "agent"), Turn("Me", "Hi!", "user"), Turn("Bot", "Do you like tea?", "agent"))
    ),
    Dialogue("b", (Turn("Bot", "Hello there.", "agent"),)),
]


def test_each_side_has_its_mean_and_silence_is_zero(tmp_path, monkeypatch):
    told = []
    work = Work(device="cpu", cache=tmp_path, report=lambda *now: told.append(now))
    features = frozen_features(DIALOGUES, work)
    width = features.shape[1] // 2
    hello, tea, hi = packaged_vectors(["Hello there.", "Do you like tea?", "Hi!"], work)
    np.testing.assert_allclose(features[0, :width], hi, atol=1e-6)
    np.testing.assert_allclose(features[0, width:], (hello + tea) / 2, atol=1e-6)
    assert not features[1, :width].any()
    np.testing.assert_allclose(features[1, width:], hello, atol=1e-6)
    assert told[0][2] == 3
    # All texts are known now: nothing is encoded a second time.
    n_told = len(told)
    packaged_vectors(["Hi!", "Hello there."], work)
    assert len(told) == n_told
    monkeypatch.setattr(fast_encoding, "is_available", lambda: False)
    plain = frozen_features(DIALOGUES, Work(device="cpu"))
    cosine = (plain * features).sum(axis=1) / np.linalg.norm(plain, axis=1) / np.linalg.norm(features, axis=1)
    assert cosine.min() > 0.95
