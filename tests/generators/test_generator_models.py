"""The models: speaking token by token equals reading a known response; attention and topic bias beside plain sums."""

import math

import numpy as np
import pytest
import torch

from dialometer.errors import DialometerError
from dialometer.generators.batches import Window, batch_of, examples_of
from dialometer.generators.generator import GENERATORS, Shape, build, reordered, shape_of
from dialometer.generators.recurrent import AdditiveAttention, along, recurrent_layer
from dialometer.generators.topics import TopicModel
from dialometer.generators.training import losses
from dialometer.generators.vocabulary import PAD

MODELS = ("seq2seq", "hred", "thred", "transformer")
SIZES = {"embedding": 16, "hidden": 24, "n_layers": 2, "n_heads": 2, "n_topic_words": 6, "n_turns": 3, "dropout": 0.3}


OTHER_BUILDS = (
    ("seq2seq", {"cell": "lstm", "attention": "none"}),
    ("hred", {"attention": "none"}),
    ("hred", {"cell": "lstm", "attention": "none"}),
    ("thred", {"cell": "lstm"}),
)


@pytest.fixture(
    params=[*((name, {}) for name in MODELS), *OTHER_BUILDS], ids=lambda p: "-".join([p[0], *p[1].values()])
)
def model(request, corpus):
    torch.manual_seed(3)
    name, chosen = request.param
    return build(name, Shape(n_tokens=len(corpus.vocabulary), **SIZES, **chosen), corpus.topics).eval()


@pytest.fixture
def batch(corpus):
    split = corpus.split("train")
    rows = np.random.default_rng(2).choice(split.examples, 9, replace=False)
    return examples_of(split, rows, Window(3, 64))


def test_every_model_is_found_by_its_file():
    assert GENERATORS.names() == sorted(MODELS)


def test_speaking_token_by_token_gives_the_scores_of_teacher_forcing(model, batch):
    scores = model(batch)
    state = model.start(batch)
    for t in range(batch.inputs.shape[1]):
        stepped, state = model.step(batch.inputs[:, t], state)
        is_text = batch.targets[:, t] != PAD
        torch.testing.assert_close(stepped[is_text], scores[is_text, t], atol=2e-5, rtol=1e-4)


def test_a_conversation_does_not_depend_on_its_neighbours(model, corpus):
    contexts = [[[5, 6, 7]], [[9] * 20, [8, 7], [3, 4, 5, 6]], [[4, 5], [6, 7, 8]]]
    responses = [[7, 8], [9, 10, 11, 12], [5]]
    together = model(batch_of(contexts, [0, 1, 2], Window(3, 64), responses))
    for k in range(3):
        alone = model(batch_of([contexts[k]], [k], Window(3, 64), [responses[k]]))
        n_said = len(responses[k]) + 1
        torch.testing.assert_close(together[k, :n_said], alone[0, :n_said], atol=2e-5, rtol=1e-4)


def test_a_token_depends_on_the_past_alone(model, batch):
    scores = model(batch)
    changed = batch.inputs.clone()
    changed[:, 3:] = 17
    again = model(type(batch)(**{name: getattr(batch, name) for name in batch.__slots__} | {"inputs": changed}))
    torch.testing.assert_close(scores[:, :3], again[:, :3], atol=2e-5, rtol=1e-4)
    assert (scores[:, 3:] - again[:, 3:]).abs().max() > 1e-4


@pytest.mark.parametrize("name", ["hred", "thred", "transformer"])
def test_earlier_turns_are_read(name, corpus):
    torch.manual_seed(0)
    model = build(name, Shape(n_tokens=len(corpus.vocabulary), **SIZES), corpus.topics).eval()
    one = model(batch_of([[[5, 6], [7]]], [0], Window(3, 64), [[9]]))
    other = model(batch_of([[[20, 21], [7]]], [0], Window(3, 64), [[9]]))
    assert (one - other).abs().max() > 1e-4


def test_states_can_be_reordered(model, batch):
    state = model.start(batch)
    tokens = batch.inputs[:, 0]
    scores, _ = model.step(tokens, state)
    rows = torch.tensor([4, 4, 0])
    again, _ = model.step(tokens[rows], reordered(state, rows))
    torch.testing.assert_close(again, scores[rows], atol=2e-5, rtol=1e-4)


def test_additive_attention_is_the_sum_that_the_paper_writes():
    """Eq. 3 of Santhanam et al., written out with plain loops over numpy arrays."""
    torch.manual_seed(1)
    attention = AdditiveAttention(4, 3, 5)
    queries, memory = torch.randn(2, 2, 4), torch.randn(2, 3, 3)
    present = torch.tensor([[True, True, True], [True, False, True]])
    ours = attention(queries, attention.keys(memory), memory, present).detach().numpy()
    w, u, b, v = (
        p.detach().numpy()
        for p in (attention.of_query.weight, attention.of_key.weight, attention.of_key.bias, attention.energy.weight)
    )
    for i in range(2):
        for t in range(2):
            energies = {
                s: float(v[0] @ np.tanh(w @ queries[i, t].numpy() + u @ memory[i, s].numpy() + b))
                for s in range(3)
                if present[i, s]
            }
            total = sum(math.exp(e) for e in energies.values())
            context = sum(math.exp(e) / total * memory[i, s].numpy() for s, e in energies.items())
            np.testing.assert_allclose(ours[i, t], context, rtol=1e-5, atol=1e-6)


def test_topic_words_get_their_second_term_and_all_is_normalised_together(corpus):
    """p(w) ∝ exp Ψ_V(w) + [w is a topic word] exp Ψ_K(w), as in Xing et al. 2017, from the parts of the model."""
    torch.manual_seed(2)
    model = build("thred", Shape(n_tokens=len(corpus.vocabulary), **SIZES), corpus.topics).eval()
    batch = batch_of([[[5, 6], [7]]], [1], Window(3, 64), [[9, 10]])
    state = model.start(batch)
    embedded = model._embed(batch.inputs)
    followed = model.decoder.follow(embedded, state)
    about = state["summary"][:, None].expand_as(followed[1])
    topic = model.topic_attention(
        torch.cat([followed[1], about], dim=-1),
        state["topic_keys"],
        state["topic_memory"],
        torch.ones_like(state["words"], dtype=torch.bool),
    )
    vectors, _ = model.decoder(embedded, followed, state, topic)
    language = torch.exp(vectors @ model.embedding.weight.T + model.bias)
    topical = model.topic_out(torch.cat([followed[0], topic], dim=-1))
    weights = language.clone()
    for word in corpus.topics.top_words(6)[1].tolist():
        weights[..., word] += torch.exp(topical @ model.embedding.weight[word])
    expected = weights / weights.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(torch.softmax(model(batch), dim=-1), expected, atol=1e-6, rtol=1e-4)


def test_loss_is_the_smoothed_cross_entropy_without_padding():
    """Label smoothing written out: (1 − ε) times the target's loss plus ε times the mean loss over the vocabulary."""
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 7)
    targets = torch.tensor([[3, 2, PAD], [5, PAD, PAD]])
    log_probs = torch.log_softmax(scores, dim=-1)
    kept = [(0, 0, 3), (0, 1, 2), (1, 0, 5)]
    plain = [-log_probs[i, t, y].item() for i, t, y in kept]
    spread = [-log_probs[i, t].mean().item() for i, t, _ in kept]
    expected = np.mean([0.9 * a + 0.1 * b for a, b in zip(plain, spread, strict=True)])
    assert losses(scores, targets, label_smoothing=0.1).item() == pytest.approx(expected, rel=1e-5)
    assert losses(scores, targets, reduction="sum").item() == pytest.approx(sum(plain), rel=1e-5)


def test_sizes_that_do_not_fit_are_refused(corpus):
    with pytest.raises(DialometerError, match="did you mean 'hidden'"):
        Shape.from_json({"n_tokens": 400, "hiden": 3})
    with pytest.raises(DialometerError, match="heads do not divide"):
        build("transformer", Shape(n_tokens=400, embedding=30, n_heads=4))
    with pytest.raises(DialometerError, match="needs topics"):
        build("thred", Shape(n_tokens=400))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("name", ["seq2seq", "hred", "thred"])
def test_recurrent_layers_stay_in_single_precision(name, cell, corpus, batch):
    """Mixed precision halves the rest; what recurrent layers give out, and the gradients there, keep all their digits."""
    torch.manual_seed(0)
    model = build(name, Shape(n_tokens=len(corpus.vocabulary), cell=cell, **SIZES), corpus.topics)
    seen = {}

    def note(layer, inputs, outputs):
        def hear(gradient):
            seen[layer] = (outputs[0].dtype, gradient.dtype)

        outputs[0].register_hook(hear)

    layers = [part for part in model.modules() if isinstance(part, torch.nn.GRU | torch.nn.LSTM)]
    for layer in layers:
        layer.register_forward_hook(note)
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(batch)
    assert name == "thred" or scores.dtype == torch.bfloat16  # thred adds two terms in single precision
    losses(scores, batch.targets).backward()
    assert set(seen) == set(layers)
    assert set(seen.values()) == {(torch.float32, torch.float32)}


def test_an_lstm_carries_its_memory_as_the_equations_say():
    """Hochreiter and Schmidhuber's cell with forget gates written out in numpy, from a given state and memory."""
    torch.manual_seed(4)
    layer = recurrent_layer("lstm", 3, 4)
    assert layer.bias_ih_l0[4:8].tolist() == [1.0] * 4
    inputs, first, memory = torch.randn(2, 5, 3), torch.randn(2, 4), torch.randn(2, 4)
    ours = along(layer, inputs, first, memory)
    w, u, b = (
        p.detach().numpy() for p in (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0 + layer.bias_hh_l0)
    )

    def squash(x):
        return 1 / (1 + np.exp(-x))

    h, c = first.numpy(), memory.numpy()
    for t in range(5):
        enter, forget, new, out = np.split(inputs[:, t].numpy() @ w.T + h @ u.T + b, 4, axis=1)
        c = squash(forget) * c + squash(enter) * np.tanh(new)
        h = squash(out) * np.tanh(c)
        np.testing.assert_allclose(ours.states[:, t].detach().numpy(), h, atol=1e-5)
    np.testing.assert_allclose(ours.cell.detach().numpy(), c, atol=1e-5)


def test_without_attention_the_context_reaches_the_decoder_by_its_first_state_alone(corpus, batch):
    shape = Shape(n_tokens=len(corpus.vocabulary), **SIZES, cell="lstm", attention="none")
    model = build("hred", shape).eval()
    state = model.start(batch)
    assert set(state) == {"lower", "upper", "lower_cell", "upper_cell"}
    _, summary, _ = model.read(batch)
    torch.testing.assert_close(
        state["lower"], torch.tanh(model.decoder.first_lower(summary))
    )  # d_0 = tanh(D_0 c + b_0)
    assert not any("attention" in name for name, _ in model.named_parameters())


def test_what_a_model_does_not_have_is_refused():
    kinds = {name: GENERATORS.get(name) for name in MODELS}
    assert shape_of(kinds["hred"], 400, {"cell": "lstm", "attention": "none"}).cell == "lstm"
    with pytest.raises(DialometerError, match="there is no cell 'rnn' — use gru or lstm"):
        shape_of(kinds["hred"], 400, {"cell": "rnn"})
    with pytest.raises(DialometerError, match="--attention: THRED has no attention 'none' — use additive"):
        shape_of(kinds["thred"], 400, {"attention": "none"})
    with pytest.raises(DialometerError, match="Transformer has no cell 'lstm' — leave --cell out"):
        shape_of(kinds["transformer"], 400, {"cell": "lstm"})


def test_a_topic_with_few_words_leaves_the_rest_as_it_is(corpus):
    """Places without a word get no attention and add nothing to any score, whatever stands there."""
    torch.manual_seed(2)
    weights = np.zeros((2, 4), dtype=np.float32)
    weights[0] = 1.0
    weights[1, :2] = 1.0
    short = TopicModel(weights, np.array([270, 280, 290, 300]), 0.5)
    assert short.top_words(4)[1].tolist()[2:] == [PAD, PAD]
    shape = Shape(n_tokens=len(corpus.vocabulary), **{**SIZES, "n_topic_words": 4})
    model = build("thred", shape, short).eval()
    asked = batch_of([[[5, 6], [7]]], [1], Window(3, 64), [[9, 10]])
    scores = model(asked)
    model.topic_words = model.topic_words[:, :2]
    torch.testing.assert_close(model(asked), scores)


def test_scores_begin_at_the_frequencies_of_the_corpus(model, corpus):
    """The counts beside a plain loop over the turns; topic words aside, the bias alone gives each token its share."""
    split = corpus.split("train")
    counts = split.frequencies(len(corpus.vocabulary))
    said = [int(token) for number in range(len(split.places)) for token in (*split.turn(number), 2)]
    assert counts.tolist() == np.bincount(said, minlength=len(corpus.vocabulary)).tolist()
    model.begin_with_frequencies(counts)
    shares = torch.softmax(model.bias.double(), dim=0).detach().numpy()
    np.testing.assert_allclose(shares, (counts + 1) / (counts + 1).sum(), rtol=1e-5)
    assert model.bias.exp().sum().item() == pytest.approx(len(counts), rel=1e-4)
