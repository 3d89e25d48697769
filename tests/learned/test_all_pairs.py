"""One weighted backward pass equals autograd over all pairs, with and without kept activations."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from dialometer.learned.cmade import ranknet as all_pairs
from dialometer.learned.cmade.ranknet import RankNet, backward, pairwise_loss


def over_all_pairs(outputs, ratings):
    """The loss written out pair by pair."""
    losses = [
        functional.softplus(outputs[j] - outputs[i])
        for i in range(len(ratings))
        for j in range(len(ratings))
        if ratings[i] > ratings[j]
    ]
    return torch.stack(losses).mean()


def gradients(model):
    return {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}


def grouped(model, tokens, ratings, **options):
    model.zero_grad()
    loss = backward(
        model,
        tokens,
        np.arange(len(ratings)),
        lambda o: pairwise_loss(o[:, 0], ratings),
        seed=7,
        precision="float32",
        **options,
    )
    return float(loss), gradients(model)


@pytest.mark.parametrize("direct_up_to", [1000, 0])
def test_equal_to_autograd_over_all_pairs(make_encoder, make_dialogues, monkeypatch, direct_up_to):
    monkeypatch.setattr(all_pairs, "DIRECT_UP_TO", direct_up_to)
    model = RankNet(make_encoder(dropout=0.0, window=24))
    tokens = model.encoder.tokens(make_dialogues(30)[0])
    ratings = np.random.default_rng(0).integers(1, 6, 30).astype(float)
    outputs = model(model.encoder.batch(tokens, np.arange(30)))[:, 0]
    expected_loss = over_all_pairs(outputs, ratings)
    expected_loss.backward()
    expected = gradients(model)
    for options in ({}, {"tokens_per_batch": 60}, {"tokens_per_batch": 60, "tokens_kept": 0}):
        loss, found = grouped(model, tokens, ratings, **options)
        assert loss == pytest.approx(float(expected_loss.detach()), rel=1e-5)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-7)


def test_activations_computed_again_have_the_same_dropout(make_encoder, make_dialogues):
    model = RankNet(make_encoder(dropout=0.3))
    model.train()
    tokens = model.encoder.tokens(make_dialogues(20)[0])
    ratings = np.random.default_rng(1).integers(1, 6, 20).astype(float)
    kept_loss, kept = grouped(model, tokens, ratings, tokens_per_batch=80)
    again_loss, again = grouped(model, tokens, ratings, tokens_per_batch=80, tokens_kept=0)
    assert kept_loss == again_loss
    for name, value in kept.items():
        torch.testing.assert_close(again[name], value, rtol=0, atol=0)
    other = backward(model, tokens, np.arange(20), lambda o: pairwise_loss(o[:, 0], ratings), seed=8)
    assert float(other) != kept_loss


def test_shares_of_several_processes_add_up(make_encoder, make_dialogues):
    """Two processes in turn, each with the other's outputs given, leave gradients that sum to those of one."""
    model = RankNet(make_encoder(dropout=0.2))
    model.train()
    tokens = model.encoder.tokens(make_dialogues(24)[0])
    ratings = np.random.default_rng(2).integers(1, 6, 24).astype(float)
    whole_loss, whole = grouped(model, tokens, ratings, tokens_per_batch=70)
    seen = []
    for number in range(2):  # first round: what each process would send to the others
        grouped(model, tokens, ratings, tokens_per_batch=70, share=(number, 2), add_up=lambda o: seen.append(o) or o)
    everything = seen[0] + seen[1]
    total = {name: torch.zeros_like(value) for name, value in whole.items()}
    for number in range(2):
        loss, part = grouped(
            model, tokens, ratings, tokens_per_batch=70, share=(number, 2), add_up=lambda o: everything.clone()
        )
        assert loss == pytest.approx(whole_loss, rel=1e-6)
        for name, value in part.items():
            total[name] += value
    for name, value in whole.items():
        torch.testing.assert_close(total[name], value, rtol=1e-4, atol=1e-7)


def test_memory_does_not_grow_with_the_group(make_encoder, make_dialogues):
    """No graph is alive for more than one batch where activations are computed again."""
    model = RankNet(make_encoder())
    model.train()
    tokens = model.encoder.tokens(make_dialogues(40)[0])
    ratings = np.arange(40.0)
    alive = []
    original = model.encoder.network.forward

    def watched(*args, **kwargs):
        result = original(*args, **kwargs)
        alive.append(torch.is_grad_enabled())
        return result

    model.encoder.network.forward = watched
    grouped(model, tokens, ratings, tokens_per_batch=60, tokens_kept=0)
    n = len(alive) // 2
    assert n > 3
    assert alive == [False] * n + [True] * n


def test_no_pairs_no_gradient(make_encoder, make_dialogues):
    model = RankNet(make_encoder())
    tokens = model.encoder.tokens(make_dialogues(5)[0])
    loss, found = grouped(model, tokens, np.ones(5))
    assert loss == 0.0
    assert all(float(value.abs().max()) == 0.0 for value in found.values())


def test_activations_are_kept_as_far_as_memory_goes(make_encoder, make_dialogues, tmp_path, monkeypatch):
    """With little memory free they are computed twice, and the gradient is the same."""
    encoder = make_encoder()
    dialogues, quality = make_dialogues(40)
    tokens = encoder.tokens(dialogues)
    memory = tmp_path / "meminfo"
    monkeypatch.setattr(all_pairs, "_MEMORY", memory)
    found, seen = [], []
    forward = RankNet.forward
    monkeypatch.setattr(RankNet, "forward", lambda self, batch: seen.append(len(batch.rows)) or forward(self, batch))
    for kilobytes, n_passes in ((10_000_000, 1), (100, 2)):
        memory.write_text(f"MemTotal: 1 kB\nMemAvailable: {kilobytes} kB\n")
        model = RankNet(encoder)
        model.zero_grad()
        seen.clear()
        backward(
            model,
            tokens,
            np.arange(40),
            lambda outputs: pairwise_loss(outputs[:, 0], quality),
            seed=3,
            tokens_per_batch=300,
            precision="float32",
        )
        assert sum(seen) == n_passes * 40
        found.append(encoder.network.get_input_embeddings().weight.grad.clone())
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    memory.unlink()
    assert all_pairs._tokens_that_fit(model, torch.device("cpu")) == np.inf
