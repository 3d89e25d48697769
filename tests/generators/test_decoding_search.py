"""Decoding: beam search beside trying out everything and beside a plain second implementation; draws beside their shares."""

import itertools
import math

import pytest
import torch

from dialometer.errors import DialometerError
from dialometer.generators.batches import Window, batch_of
from dialometer.generators.decoding import Decoding
from dialometer.generators.generator import Shape, build
from dialometer.generators.speak import beam_search, drawn, speak
from dialometer.generators.vocabulary import END, PAD, START

N_TOKENS = 6  # three marks and three words
LENGTH = 4
EVERYTHING = torch.tensor([False, False, True, True, True, True])


@pytest.fixture(scope="module", params=["seq2seq", "transformer"])
def tiny(request):
    torch.manual_seed(7)
    sizes = {"embedding": 8, "hidden": 12, "n_layers": 1, "n_heads": 2, "n_turns": 2, "dropout": 0.0}
    model = build(request.param, Shape(n_tokens=N_TOKENS, **sizes)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0)  # decided opinions, so that the search has something to find
    return model


@pytest.fixture(scope="module")
def batch():
    return batch_of([[[3, 4]], [[5], [4, 4, 3]], [[3]]], [0, 0, 0], Window(2, 64))


def log_prob(model, one, tokens):
    """Of tokens with their end mark, by teacher forcing."""
    row = batch_of([one], [0], Window(2, 64), [tokens])
    with torch.no_grad():
        scores = torch.log_softmax(model(row)[0], dim=-1)
    return sum(scores[t, y].item() for t, y in enumerate([*tokens, END]))


CONTEXTS = [[[3, 4]], [[5], [4, 4, 3]], [[3]]]


def every_response(min_tokens):
    for n in range(min_tokens, LENGTH):
        yield from (list(row) for row in itertools.product([3, 4, 5], repeat=n))


@pytest.mark.parametrize("penalty", [0.0, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("min_tokens", [0, 2])
def test_a_wide_beam_finds_what_trying_out_everything_finds(tiny, batch, penalty, min_tokens):
    decoding = Decoding(
        "beam", n_beams=60, length_penalty=penalty, min_tokens=min_tokens, max_tokens=LENGTH, no_repeat=0
    )
    found = beam_search(tiny, batch, decoding, EVERYTHING)
    for one, best in zip(CONTEXTS, found, strict=True):
        scored = {
            tuple(row): log_prob(tiny, one, row) / (len(row) + 1) ** penalty for row in every_response(min_tokens)
        }
        expected = sorted(scored, key=lambda row: -scored[row])
        assert [h.tokens for h in best[:10]] == expected[:10]
        assert best[0].score == pytest.approx(scored[expected[0]], abs=1e-4)
        assert best[0].log_prob == pytest.approx(log_prob(tiny, one, list(expected[0])), abs=1e-4)


def plain_beam(model, one, n_beams, penalty, diversity):
    """A beam of lists, one prefix at a time, no batches and no tensors kept."""
    beams, finished = [((), 0.0)], []
    for n_said in range(1, LENGTH + 1):
        candidates = []
        for prefix, total in beams:
            row = batch_of([one], [0], Window(2, 64), [list(prefix)])
            with torch.no_grad():
                scores = torch.log_softmax(model(row)[0, len(prefix)], dim=-1)
            allowed = [END] if n_said == LENGTH else [2, 3, 4, 5]
            ranked = sorted(allowed, key=lambda y: -scores[y].item())[: 2 * n_beams]
            for rank, token in enumerate(ranked):
                value = total + scores[token].item()
                candidates.append((value - diversity * rank, value, prefix, token))
        candidates.sort(key=lambda c: -c[0])
        best = candidates[: 2 * n_beams]
        for _, value, prefix, token in best[:n_beams]:
            if token == END:
                finished.append((value / n_said**penalty, prefix))
        going = sorted((c for c in best if c[3] != END), key=lambda c: -c[1])[:n_beams]
        beams = [((*prefix, token), value) for _, value, prefix, token in going]
    return [prefix for _, prefix in sorted(finished, key=lambda f: -f[0])[:n_beams]]


@pytest.mark.parametrize(
    ("n_beams", "penalty", "diversity"), [(1, 0.0, 0.0), (2, 1.0, 0.0), (3, 1.0, 0.5), (2, 0.6, 2.0)]
)
def test_a_narrow_beam_does_the_steps_of_a_plain_one(tiny, batch, n_beams, penalty, diversity):
    decoding = Decoding(
        "beam",
        n_beams=n_beams,
        length_penalty=penalty,
        diversity_penalty=diversity,
        min_tokens=0,
        max_tokens=LENGTH,
        no_repeat=0,
    )
    found = beam_search(tiny, batch, decoding, EVERYTHING)
    for one, best in zip(CONTEXTS, found, strict=True):
        assert best[0].tokens == plain_beam(tiny, one, n_beams, penalty, diversity)[0]


def test_greedy_takes_the_likeliest_token_each_time(tiny, batch):
    decoding = Decoding("greedy", min_tokens=0, max_tokens=LENGTH, no_repeat=0)
    for one, said in zip(CONTEXTS, speak(tiny, batch, decoding, EVERYTHING, [0, 1, 2]), strict=True):
        prefix = []
        while len(prefix) < LENGTH - 1:
            row = batch_of([one], [0], Window(2, 64), [prefix])
            with torch.no_grad():
                scores = tiny(row)[0, len(prefix)]
            scores[[PAD, START]] = -math.inf
            token = int(scores.argmax())
            if token == END:
                break
            prefix.append(token)
        assert said.tokens == tuple(prefix)
        assert said.log_prob == pytest.approx(log_prob(tiny, one, prefix), abs=1e-4)


def test_draws_follow_the_cut_shares():
    """Nucleus by hand: of 0.5, 0.3, 0.15, 0.05 a share of 0.7 keeps the first two, drawn 5 to 3; top-k 3 keeps three."""
    shares = torch.tensor([0.15, 0.5, 0.05, 0.3])
    uniform = torch.linspace(0.0005, 0.9995, 1000)
    rows = shares.log().expand(1000, 4)
    nucleus = drawn(rows, uniform, Decoding("sample", top_p=0.7))
    assert torch.bincount(nucleus, minlength=4).tolist() == pytest.approx([0, 625, 0, 375], abs=1)
    top = drawn(rows, uniform, Decoding("sample", top_p=1.0, top_k=3))
    assert torch.bincount(top, minlength=4).tolist() == pytest.approx([158, 526, 0, 316], abs=1)
    cold = drawn(rows, uniform, Decoding("sample", top_p=1.0, temperature=0.5))
    squared = shares.double() ** 2 / (shares.double() ** 2).sum()
    assert torch.bincount(cold, minlength=4).tolist() == pytest.approx((1000 * squared).tolist(), abs=1.5)


def test_a_draw_depends_on_its_own_seed_alone(tiny, batch):
    decoding = Decoding("sample", min_tokens=6, max_tokens=30, no_repeat=0, top_p=1.0, temperature=2.0)
    together = speak(tiny, batch, decoding, EVERYTHING, [11, 12, 13])
    alone = [
        speak(tiny, batch_of([one], [0], Window(2, 64)), decoding, EVERYTHING, [seed])[0]
        for one, seed in zip(CONTEXTS, [11, 12, 13], strict=True)
    ]
    assert [said.tokens for said in together] == [said.tokens for said in alone]
    other = speak(tiny, batch, decoding, EVERYTHING, [21, 22, 23])
    assert [said.tokens for said in other] != [said.tokens for said in together]


@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample"])
def test_forbidden_tokens_and_repeated_runs_are_never_said(tiny, batch, strategy):
    allowed = EVERYTHING.clone()
    allowed[4] = False
    decoding = Decoding(strategy, min_tokens=3, max_tokens=12, no_repeat=2, n_beams=3)
    for said in speak(tiny, batch, decoding, allowed, [1, 2, 3]):
        assert set(said.tokens) <= {3, 5}
        assert 3 <= len(said.tokens) < 12
        pairs = list(itertools.pairwise(said.tokens))
        assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize(
    "options",
    [{"strategy": "gready"}, {"n_beams": 0}, {"top_p": 0.0}, {"temperature": 0.0}, {"max_tokens": 1}, {"top_k": -1}],
)
def test_options_without_sense_are_refused(options):
    with pytest.raises(DialometerError):
        Decoding(**options)
