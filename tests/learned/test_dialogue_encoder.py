"""Every token of a dialogue is read, padding and batches change nothing, and speakers make a difference."""

import numpy as np
import pytest
import torch

from dialometer.errors import DialometerError
from dialometer.learned.cmade.encoder import load_encoder
from dialometer.learned.cmade.ranknet import RankNet, expected_rating
from dialometer.learned.cmade.tokens import SYSTEM, USER, batch_of, bucketed
from dialometer.learned.cmade.training import AllPairs, CmadeTrainingOptions, train_ranknet
from dialometer.learned.data.calibration import posterior
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural.device import autocast


def test_the_form_of_the_paper(make_encoder):
    encoder = make_encoder()
    dialogue = Dialogue("d", (Turn("S", "hello you", "agent"), Turn("U", "tell", "user")))
    (tokens,) = encoder.tokens([dialogue])
    (chunk,) = tokens.chunks
    words = encoder.tokeniser.tokenizer.convert_ids_to_tokens(chunk.ids)
    assert words == ["[CLS]", "hello", "you", "[SEP]", "tell", "[SEP]"]
    assert list(chunk.speakers) == [0, SYSTEM, SYSTEM, SYSTEM, USER, USER]


def test_a_long_dialogue_is_read_to_its_end(make_encoder, make_dialogues):
    encoder = make_encoder(window=16)
    dialogues, _ = make_dialogues(5, n_turns=(15, 20))
    monologue = Dialogue("m", (Turn("S", "hello " * 40, "agent"), Turn("U", "stop", "user")))
    for dialogue, tokens in zip([*dialogues, monologue], encoder.tokens([*dialogues, monologue]), strict=True):
        assert all(len(chunk.ids) <= 16 for chunk in tokens.chunks)
        assert all(chunk.ids[0] == encoder.tokeniser.start for chunk in tokens.chunks)
        read = np.concatenate([chunk.ids[1:] for chunk in tokens.chunks])
        whole = encoder.tokeniser.tokenizer(" [SEP] ".join(t.text for t in dialogue.turns), add_special_tokens=False)
        assert list(read) == [*whole["input_ids"], encoder.tokeniser.end]


def test_the_end_of_a_long_dialogue_counts(make_encoder):
    encoder = make_encoder(window=16).eval()
    turns = tuple(Turn("S", "hello you like films", "agent") for _ in range(12))
    other = (*turns[:-1], Turn("S", "hello you nonsense films", "agent"))
    features = encoder.features(encoder.tokens([Dialogue("a", turns), Dialogue("b", other)]))
    assert np.abs(features[0] - features[1]).max() > 1e-5


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_batches_change_nothing(make_encoder, make_dialogues, pooling):
    encoder = make_encoder(window=24, pooling=pooling).train()
    dialogues, _ = make_dialogues(30, n_turns=(2, 12))
    tokens = encoder.tokens(dialogues)
    together = encoder.features(tokens)
    told = []
    apart = encoder.features(tokens, tokens_per_batch=1, report=lambda done, n: told.append((done, n)))
    np.testing.assert_allclose(together, apart, atol=1e-5)
    assert told[-1] == (30, 30)
    assert encoder.training


def test_the_mean_is_over_all_tokens(make_encoder, make_dialogues):
    encoder = make_encoder(window=12).eval()
    (dialogue,), _ = make_dialogues(1, n_turns=(9, 10))
    (tokens,) = encoder.tokens([dialogue])
    assert len(tokens.chunks) > 2
    states = []
    for chunk in tokens.chunks:
        words = encoder.network.get_input_embeddings()(torch.from_numpy(chunk.ids)[None])
        states.append(encoder.network(inputs_embeds=words).last_hidden_state[0])
    expected = torch.cat(states).mean(0).detach().numpy()
    np.testing.assert_allclose(encoder.features([tokens])[0], expected, atol=1e-5)


def test_who_speaks_makes_a_difference_once_learned(make_encoder):
    encoder = make_encoder().eval()
    said = [("hello you", "tell"), ("films", "yes")]
    one = Dialogue("a", tuple(Turn("x", t, r) for pair in said for t, r in zip(pair, ("agent", "user"), strict=True)))
    other = Dialogue("b", tuple(Turn("x", t, r) for pair in said for t, r in zip(pair, ("user", "agent"), strict=True)))
    tokens = encoder.tokens([one, other])
    before = encoder.features(tokens)
    np.testing.assert_allclose(before[0], before[1], atol=1e-6)
    encoder(encoder.batch(tokens, np.arange(2)))[0].pow(2).sum().backward()
    assert encoder.speaker.weight.grad.abs().min() > 0
    with torch.no_grad():
        encoder.speaker.weight.normal_()
    after = encoder.features(tokens)
    assert np.abs(after[0] - after[1]).max() > 1e-3


def test_batches_hold_every_dialogue_once_within_the_limit(make_encoder, make_dialogues):
    encoder = make_encoder(window=24)
    tokens = encoder.tokens(make_dialogues(50, n_turns=(2, 15))[0])
    rows = np.arange(3, 50)
    batches = bucketed(tokens, rows, 200)
    assert sorted(np.concatenate(batches)) == list(rows)
    made = [batch_of(tokens, batch, 0) for batch in batches]
    assert all(one.ids.size <= 200 or len(one.rows) == 1 for one in made)
    assert sum(one.ids.size for one in made) < 1.25 * sum(tokens[row].n_tokens for row in rows)
    for one in made:
        assert [tokens[row].n_tokens for row in one.rows] == [
            int(one.mask[one.owners == place].sum()) for place in range(len(one.rows))
        ]
    unpadded = bucketed(tokens, rows, 200, is_padded=False)
    assert sorted(np.concatenate(unpadded)) == list(rows)
    assert len(unpadded) <= len(batches)
    assert all(len(encoder.batch(tokens, batch).ids) <= 200 for batch in unpadded)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_without_padding_the_same(make_encoder, make_dialogues, monkeypatch, pooling):
    """On a GPU a kernel does what is done here text by text."""
    encoder = make_encoder(window=24, pooling=pooling, dropout=0.0)
    assert encoder.can_pack
    assert not encoder.is_packed
    tokens = encoder.tokens(make_dialogues(20, n_turns=(2, 12))[0])
    found = []
    for is_packed in (False, True):
        monkeypatch.setattr(type(encoder), "is_packed", is_packed)
        encoder.zero_grad()
        features = encoder(encoder.batch(tokens, np.arange(20)))
        features.pow(2).sum().backward()
        found.append((features.detach(), encoder.network.get_input_embeddings().weight.grad.clone()))
    for padded, packed in zip(*found, strict=True):
        torch.testing.assert_close(padded, packed, rtol=1e-4, atol=5e-5)
    assert encoder.network.config._attn_implementation == "sdpa"


def test_what_does_not_suit_is_refused(make_encoder):
    with pytest.raises(DialometerError, match="does not suit"):
        make_encoder(window=65)
    with pytest.raises(DialometerError, match="cannot be loaded"):
        load_encoder("/no/such/model", device="cpu")
    with pytest.raises(DialometerError, match="nothing is said"):
        make_encoder().tokens([Dialogue("empty", ())])


def test_posterior_and_expected_rating():
    assert posterior(1.0, 0.0) == pytest.approx(1 / (1 + np.exp(-1)))
    assert posterior(800.0, -800.0) == 1.0
    assert posterior(1.0, 0.0, temperature=2.0) == pytest.approx(1 / (1 + np.exp(-0.5)))
    outputs = np.log([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    np.testing.assert_allclose(expected_rating(outputs + 700, np.array([1.0, 2.0, 3.0])), [2.6, 1.75])


def test_the_packaged_encoder_before_training_gives_its_own_features():
    encoder = load_encoder(device="cpu")
    assert (encoder.window, encoder.width) == (512, 384)
    dialogue = Dialogue("d", (Turn("S", "hello there", "agent"), Turn("U", "hi", "user")))
    tokenizer = encoder.tokeniser.tokenizer
    inputs = tokenizer("hello there [SEP] hi", return_tensors="pt")
    with torch.inference_mode():
        expected = encoder.network(**inputs).last_hidden_state[0].mean(0).numpy()
    np.testing.assert_allclose(encoder.features(encoder.tokens([dialogue]))[0], expected, atol=1e-5)
    assert RankNet(encoder, seed=3).outputs(encoder.tokens([dialogue])).shape == (1, 1)


def test_attention_weights_are_never_dropped_out_other_states_are(make_encoder):
    from torch import nn

    network = make_encoder(dropout=0.3).network
    rates = {name: module.p for name, module in network.named_modules() if isinstance(module, nn.Dropout)}
    assert {p for name, p in rates.items() if "attention.self" in name} == {0.0}
    assert {p for name, p in rates.items() if "attention.self" not in name} == {0.3}


def test_the_packaged_encoder_can_be_trained(make_dialogues):
    encoder = load_encoder(device="cpu")
    model = RankNet(encoder)
    tokens = encoder.tokens(make_dialogues(6, n_turns=(2, 3))[0])
    before = model.scores(tokens)
    history = train_ranknet(
        model, AllPairs(tokens, np.arange(6.0), 6), CmadeTrainingOptions(n_epochs=2, learning_rate=1e-4)
    )
    assert history.n_steps == 2
    assert np.abs(model.scores(tokens) - before).max() > 1e-3


def test_sixteen_bits_on_a_processor_need_no_padding(make_encoder, make_dialogues):
    """Features in 16 bits are packed, and near those in 32 bits, which are padded."""
    encoder = make_encoder()
    tokens = encoder.tokens(make_dialogues(30, n_turns=(2, 12))[0])
    exact = encoder.features(tokens)
    half = encoder.features(tokens, precision="bfloat16")
    with autocast("cpu", "bfloat16"):
        assert encoder.is_packed
    assert not encoder.is_packed
    assert np.abs(half - exact).max() > 0
    np.testing.assert_allclose(half, exact, atol=0.05)
