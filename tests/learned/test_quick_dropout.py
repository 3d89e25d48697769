"""Dropout drawn four states at a time does what torch's does."""

import pytest
import torch
from torch import nn

from dialometer.learned.cmade.encoder import QuickDropout, use_quick_dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_that_is_dropped_and_the_mean_that_stays(dtype):
    layer = QuickDropout(0.1).train()
    states = torch.ones(300, 1001, dtype=dtype, requires_grad=True)
    torch.manual_seed(0)
    result = layer(states)
    found = result.detach()
    assert found.dtype == dtype
    assert float((found == 0).float().mean()) == pytest.approx(0.1, abs=0.003)  # five standard errors
    assert float(found.float().mean()) == pytest.approx(1.0, abs=0.005)
    assert float((found == 0).float().mean(0).std()) == pytest.approx((0.09 / 300) ** 0.5, rel=0.1)
    result.sum().backward()
    assert torch.equal(states.grad, found)
    torch.manual_seed(0)
    assert torch.equal(layer(states), found)
    assert not torch.equal(layer(states), found)


def test_nothing_is_dropped_in_use_or_at_zero():
    states = torch.randn(5, 7)
    assert torch.equal(QuickDropout(0.5).eval()(states), states)
    assert torch.equal(QuickDropout(0.0).train()(states), states)


def test_an_encoder_has_it_everywhere(make_encoder):
    network = nn.Sequential(nn.Dropout(0.3), nn.ModuleDict({"inner": nn.Dropout(0.1), "none": nn.Dropout(0.0)}))
    network[0].eval()
    use_quick_dropout(network)
    assert isinstance(network[0], QuickDropout)
    assert not network[0].training
    assert network[0].p == 0.3
    assert isinstance(network[1]["inner"], QuickDropout)
    assert type(network[1]["none"]) is nn.Dropout
    kinds = {type(one) for one in make_encoder().network.modules() if isinstance(one, nn.Dropout) and one.p}
    assert kinds == {QuickDropout}
