"""The quick encoder gives what torch gives: exactly in single precision, the same ranking in 8 bits."""

from pathlib import Path

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.learned.cmade.encoder import QuickEncoder, load_encoder, quick_features
from dialometer.learned.cmade.tokens import batch_of
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural import fast_encoding
from dialometer.neural.encoder import TextEncoder
from dialometer.neural.fast_encoding import BertShape, QuickBert, QuickTextEncoder, bert_graph, is_supported, n_levels
from dialometer.neural.pretrained import PACKAGED, model_path
from dialometer.neural.work import Work

WORDS = [
    "hello", "thanks", "weather", "tomorrow", "music", "guitar", "awful", "great", "sorry", "boring",
    "repeat", "again", "movie", "actor", "dog", "running", "coffee", "book", "teacher", "why", "where",
    "never", "always", "please", "stop", "lovely", "rain", "Paris", "football", "five", "stars", "answer",
]  # fmt: skip


def dialogues(n, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        turns = []
        for place in range(int(rng.integers(4, 14))):
            text = " ".join(rng.choice(WORDS, int(rng.integers(2, 12)))) + "."
            turns.append(Turn("User" if place % 2 else "Bot", text, "user" if place % 2 else "agent"))
        made.append(Dialogue(f"d{number}", tuple(turns)))
    return made


@pytest.fixture(scope="module")
def encoder():
    import torch

    torch.manual_seed(0)
    encoder = load_encoder(device="cpu", window=64)
    torch.nn.init.normal_(encoder.speaker.weight, std=0.02)
    return encoder


def ranks(values):
    return np.argsort(np.argsort(values))


def test_single_precision_graph_equals_torch(encoder):
    tokens = encoder.tokens(dialogues(6))
    assert max(len(one.chunks) for one in tokens) > 1
    weights = {name: value.numpy() for name, value in encoder.network.state_dict().items()}
    shape = BertShape.of(encoder.network.config.to_dict())
    quick = QuickBert(bert_graph(weights, shape, encoder.speaker.weight.detach().numpy(), n_levels=None))
    batch = batch_of(tokens, np.arange(6), encoder.tokeniser.pad)
    sums, firsts = quick.run(batch.ids, batch.mask, batch.speakers)
    import torch

    with torch.inference_mode():
        words = encoder.network.get_input_embeddings()(torch.from_numpy(batch.ids))
        words += encoder.speaker(torch.from_numpy(batch.speakers))
        mask = torch.from_numpy(batch.mask)
        hidden = encoder.network(inputs_embeds=words, attention_mask=mask.long()).last_hidden_state
    np.testing.assert_allclose(sums, (hidden * mask.unsqueeze(-1)).sum(1).numpy(), atol=2e-3)
    np.testing.assert_allclose(firsts, hidden[:, 0].numpy(), atol=1e-4)


@pytest.mark.parametrize("pooling", ["mean", pytest.param("first", marks=pytest.mark.slow)])
def test_eight_bits_rank_dialogues_as_single_precision_does(encoder, pooling):
    encoder.pooling = pooling
    tokens = encoder.tokens(dialogues(80))
    told = []
    exact, quick = (
        encoder.features(tokens),
        QuickEncoder(encoder).features(tokens, report=lambda *now: told.append(now)),
    )
    assert told[-1] == (80, 80)
    cosine = (exact * quick).sum(axis=1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(quick, axis=1)
    assert cosine.min() > 0.95
    # Scores as a linear head gives them, along the directions in which dialogues differ most.
    centred = exact - exact.mean(axis=0)
    for direction in np.linalg.svd(centred, full_matrices=False)[2][:3]:
        assert np.corrcoef(ranks(exact @ direction), ranks(quick @ direction))[0, 1] > 0.98
    encoder.pooling = "mean"


def test_torch_does_the_work_where_the_quick_form_is_missing(encoder, monkeypatch):
    tokens = encoder.tokens(dialogues(5))
    quick = quick_features(encoder, tokens)
    monkeypatch.setattr(fast_encoding, "is_available", lambda: False)
    plain = quick_features(encoder, tokens)
    np.testing.assert_array_equal(plain, encoder.features(tokens))
    assert 0 < np.abs(plain - quick).max() < 0.3


def test_texts_get_the_vectors_of_the_usual_encoder():
    texts = [turn.text for dialogue in dialogues(10) for turn in dialogue.turns] + ["word " * 600, ""]
    usual = TextEncoder(PACKAGED).encode(texts)
    quick = QuickTextEncoder(Path(model_path(PACKAGED))).encode(texts)
    np.testing.assert_allclose(np.linalg.norm(quick, axis=1), 1, atol=1e-5)
    assert (usual * quick).sum(axis=1).min() > 0.95


def test_a_text_has_the_same_vector_whatever_is_encoded_beside_it():
    quick = QuickTextEncoder(Path(model_path(PACKAGED)))
    texts = [turn.text for dialogue in dialogues(4) for turn in dialogue.turns] + ["WHAT?!?!?!", "word " * 300, ""]
    together = quick.encode(texts)
    np.testing.assert_array_equal(together[::-1], quick.encode(texts[::-1]))
    for row in (0, 1, 5, len(texts) - 3, len(texts) - 1):
        np.testing.assert_array_equal(quick.encode([texts[row]])[0], together[row])


def test_vectors_in_8_bits_have_a_cache_of_their_own(tmp_path):
    work = Work(device="cpu", cache=tmp_path)
    exact, rounded = TextEncoder(work=work), TextEncoder(work=work, in_8_bits=True)
    one, two = (encoder.encode(["Where are you from?"])[0] for encoder in (exact, rounded))
    assert 0.95 < one @ two < 0.9999
    assert exact.cache.path != rounded.cache.path
    np.testing.assert_array_equal(exact.encode(["Where are you from?"])[0], one)


def test_a_dialogue_has_the_same_features_whatever_is_encoded_beside_it(encoder):
    quick = QuickEncoder(encoder)
    tokens = encoder.tokens(dialogues(12))
    together = quick.features(tokens)
    alone = np.concatenate([quick.features([one]) for one in tokens])
    np.testing.assert_allclose(alone, together, atol=1e-4)


def test_other_architectures_have_no_quick_form(encoder, monkeypatch):
    assert not is_supported({"model_type": "roberta", "hidden_act": "gelu"})
    assert not is_supported({"model_type": "bert", "hidden_act": "relu"})
    monkeypatch.setattr(encoder.network.config, "hidden_act", "relu")
    with pytest.raises(DialometerError, match="no quick form"):
        QuickEncoder(encoder)
    tokens = encoder.tokens(dialogues(2))
    np.testing.assert_array_equal(quick_features(encoder, tokens), encoder.features(tokens))


def test_old_processors_get_a_smaller_range(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("flags : sse avx2")
    assert n_levels(file) == 64
    file.write_text("flags : sse avx2 avx512_vnni")
    assert n_levels(file) == 127
    assert n_levels(tmp_path / "none") == 64
