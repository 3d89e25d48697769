"""How a response is chosen: the most probable token each time, the best of several beams, or a draw."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from dialometer.errors import DialometerError
from dialometer.generators.vocabulary import END
from dialometer.registry import did_you_mean

Strategy = Literal["greedy", "beam", "sample"]


@dataclass(frozen=True, slots=True)
class Decoding:
    """Options of decoding; all of them stand in the provenance of a response.

    ``length_penalty`` is the power of the length by which a beam's log probability is divided (0: none). ``diversity_penalty``
    is taken off a beam's candidates by their rank among those of the same beam (Li, Monroe, Jurafsky 2016), so that beams do
    not all grow from one. ``top_p`` and ``top_k`` (0: all) cut what is drawn from. ``no_repeat`` forbids to say the same run
    of so many tokens twice (0: allowed).
    """

    strategy: Strategy = "beam"
    n_beams: int = 5
    length_penalty: float = 1.0
    diversity_penalty: float = 0.0
    top_k: int = 0
    top_p: float = 0.9
    temperature: float = 1.0
    min_tokens: int = 2
    max_tokens: int = 40
    no_repeat: int = 3

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            remedy = did_you_mean(str(self.strategy), list(get_args(Strategy)))
            raise DialometerError(f"unknown way of decoding '{self.strategy}'", remedy=remedy)
        wrong = {
            "n_beams": self.n_beams < 1,
            "temperature": self.temperature <= 0,
            "top_p": not 0 < self.top_p <= 1,
            "top_k": self.top_k < 0,
            "length_penalty": self.length_penalty < 0,
            "diversity_penalty": self.diversity_penalty < 0,
            "min_tokens": not 0 <= self.min_tokens < self.max_tokens,
            "no_repeat": self.no_repeat < 0,
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise DialometerError(
                    f"decoding with {name} = {getattr(self, name)} makes no sense", remedy="see 'bots respond --help'"
                )

    def as_json(self) -> dict[str, Any]:
        """Only the options that the strategy looks at."""
        common = {"strategy", "min_tokens", "max_tokens", "no_repeat"}
        own = {
            "greedy": set(),
            "beam": {"n_beams", "length_penalty", "diversity_penalty"},
            "sample": {"top_k", "top_p", "temperature"},
        }[self.strategy]
        return {name: value for name, value in asdict(self).items() if name in common | own}


def allowed_log_probs(scores: Tensor, spoken: Tensor, may_be_said: Tensor, decoding: Decoding) -> Tensor:
    """Log probabilities (R, V) of the next token after what was said (R, t); what may not be said has none.

    The probabilities are those of the model: forbidding a token takes its share away and gives it to no other, so that
    beams of different lengths stay comparable.
    """
    log_probs = torch.log_softmax(scores.float(), dim=-1)
    n_said = spoken.shape[1]
    banned = ~may_be_said.expand_as(log_probs)
    if n_said < decoding.min_tokens:
        banned = banned.clone()
        banned[:, END] = True
    if decoding.no_repeat and n_said >= decoding.no_repeat:
        banned = banned | _repeats(spoken, decoding.no_repeat, log_probs.shape[1])
    if n_said == decoding.max_tokens - 1:  # the last place belongs to the end mark
        banned = torch.ones_like(banned)
        banned[:, END] = False
    return log_probs.masked_fill(banned, float("-inf"))


def _repeats(spoken: Tensor, n: int, n_tokens: int) -> Tensor:
    """Tokens (R, V) that would finish a run of ``n`` that was said before."""
    runs = spoken.unfold(1, n, 1)  # (R, t - n + 1, n)
    begun = spoken[:, spoken.shape[1] - n + 1 :] if n > 1 else spoken[:, :0]  # (R, n - 1)
    is_again = (runs[..., : n - 1] == begun[:, None]).all(dim=-1)  # (R, t - n + 1)
    banned = torch.zeros((len(spoken), n_tokens), dtype=torch.bool, device=spoken.device)
    rows, places = is_again.nonzero(as_tuple=True)
    banned[rows, runs[rows, places, n - 1]] = True
    banned[:, END] = False
    return banned
