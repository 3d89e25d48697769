"""Examples put together for one step: batches of alike lengths, so that little is computed on padding.

The order is a function of seed and epoch alone, which is what lets an interrupted training go on as if nothing had been.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dialometer.generators.corpus import CorpusSplit
from dialometer.generators.vocabulary import END, PAD, START

Ints = npt.NDArray[np.int64]
Tokens = Sequence[int] | npt.NDArray[np.uint16]
_N_BATCHES_SORTED_TOGETHER = 64
_ROUND_TO = 4  # lengths are rounded up, so that fewer different shapes arise


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a conversation a model sees, and how long a turn or response may be (end mark included)."""

    n_turns: int = 5
    n_turn_tokens: int = 64


@dataclass(frozen=True, slots=True)
class ExampleBatch:
    """B examples with up to N context turns of up to L tokens, and responses of up to T tokens.

    ``source`` is the context as one line of tokens: its turns in order, each with its end mark. Lengths stay in the main
    memory, where the recurrent kernels want them.
    """

    turns: Tensor  # (B, N, L) oldest first, absent turns at the end
    turn_lengths: Tensor  # (B, N) tokens with the end mark; 0 for an absent turn; never on the device
    source: Tensor  # (B, S)
    source_lengths: Tensor  # (B,) never on the device
    topics: Tensor  # (B,) dominant topic of the context
    inputs: Tensor  # (B, T) start mark and the response without its end mark
    targets: Tensor  # (B, T) the response with its end mark, padded
    n_targets: int  # tokens that are predicted

    def __len__(self) -> int:
        return len(self.topics)

    def to(self, device: torch.device) -> ExampleBatch:
        """The same on a device; copying goes on while the device still works on the step before."""
        if device.type == "cpu":
            return self
        return self._changed(lambda tensor: moved_to(tensor, device))

    def pinned(self, device: torch.device) -> ExampleBatch:
        """The same in memory that a GPU can fetch by itself; done ahead, by another thread."""
        if device.type != "cuda":
            return self
        return self._changed(lambda tensor: tensor.pin_memory())

    def _changed(self, change: Callable[[Tensor], Tensor]) -> ExampleBatch:
        """Everything that goes to the device, changed."""
        return replace(
            self,
            turns=change(self.turns),
            source=change(self.source),
            topics=change(self.topics),
            inputs=change(self.inputs),
            targets=change(self.targets),
        )


def moved_to(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on the device that nobody waits for."""
    return tensor.to(device, non_blocking=True)


def examples_of(split: CorpusSplit, rows: Ints, window: Window) -> ExampleBatch:
    """The batch of some examples of a split, gathered without a loop over them."""
    n_shown = np.minimum(np.asarray(split.places[rows], dtype=np.int64), window.n_turns)  # (B,)
    place = np.arange(n_shown.max())  # (N,)
    numbers = np.minimum(rows[:, None] - n_shown[:, None] + place, rows[:, None])  # (B, N) turns of the corpus
    is_shown = place < n_shown[:, None]
    lengths = np.where(is_shown, np.minimum(split.lengths[numbers], window.n_turn_tokens), 0)
    ends = np.asarray(split.starts[numbers + 1], dtype=np.int64)
    n_spoken = np.minimum(split.lengths[rows], window.n_turn_tokens)  # (B,)
    targets = _gather(split.tokens, np.asarray(split.starts[rows], dtype=np.int64), n_spoken)
    targets[np.arange(len(rows)), n_spoken - 1] = END  # also where the response was cut
    turns = _gather(split.tokens, (ends - lengths).ravel(), lengths.ravel()).reshape(*lengths.shape, -1)
    return _batch(turns, lengths, targets, np.asarray(split.topics[rows]))


def batch_of(
    contexts: Sequence[Sequence[Tokens]],
    topics: Sequence[int] | npt.NDArray[np.int64],
    window: Window,
    responses: Sequence[Tokens] | None = None,
) -> ExampleBatch:
    """The batch of free conversations, turns without end marks; without responses there is only a start mark to go on from.

    Only the last turns of the window are read, and of a long turn its last tokens.
    """
    n_kept = window.n_turn_tokens - 1
    shown = [[[*map(int, turn[-n_kept:]), END] for turn in context[-window.n_turns :]] for context in contexts]
    lengths = np.zeros((len(shown), max(map(len, shown))), dtype=np.int64)
    turns = np.full((*lengths.shape, max(len(turn) for context in shown for turn in context)), PAD, dtype=np.int64)
    for i, context in enumerate(shown):
        for k, turn in enumerate(context):
            turns[i, k, : len(turn)] = turn
            lengths[i, k] = len(turn)
    ended = [[*map(int, response[:n_kept]), END] for response in responses or [[]] * len(shown)]
    targets = np.full((len(ended), max(map(len, ended))), PAD, dtype=np.int64)
    for i, row in enumerate(ended):
        targets[i, : len(row)] = row
    return _batch(turns, lengths, targets, np.asarray(topics))


def order(
    split: CorpusSplit, *, size: int, seed: int, epoch: int, n_turns: int, is_bucketed: bool = True
) -> list[Ints]:
    """The batches of one epoch as rows of the split: shuffled, then sorted by length within some dozens of batches.

    ``n_turns`` is how many turns of the context the model reads.
    """
    rng = np.random.default_rng([seed, epoch])
    rows = rng.permutation(split.examples)
    if not is_bucketed:
        return [rows[start : start + size] for start in range(0, len(rows), size)]
    batches = []
    reach = size * _N_BATCHES_SORTED_TOGETHER
    for start in range(0, len(rows), reach):
        alike = _sorted(split, rows[start : start + reach], n_turns)
        batches += [alike[first : first + size] for first in range(0, len(alike), size)]
    batches = [batches[i] for i in rng.permutation(len(batches))]
    # The largest one first: memory that does not suffice is noticed at once, and what suffices is not asked for again.
    largest = max(range(len(batches)), key=lambda i: int(split.lengths[batches[i]].max()))
    batches[0], batches[largest] = batches[largest], batches[0]
    return batches


def by_length(split: CorpusSplit, rows: Ints, size: int, n_turns: int) -> Iterator[Ints]:
    """Rows in batches of alike lengths, each row once: for measuring, where the order is no matter."""
    alike = _sorted(split, rows, n_turns)
    for start in range(0, len(alike), size):
        yield alike[start : start + size]


def _sorted(split: CorpusSplit, rows: Ints, n_turns: int) -> Ints:
    """By the response's length, rounded as it will be padded, and among equals by the length of the context.

    Contexts grow within one class of responses and shrink within the next, so that a batch that spans two classes still
    holds contexts of one length.
    """
    first = rows - np.minimum(np.asarray(split.places[rows], dtype=np.int64), n_turns)
    context = split.starts[rows].astype(np.int64) - split.starts[first].astype(np.int64)
    response = _rounded(split.lengths[rows])
    grows = response // _ROUND_TO % 2 == 0
    return rows[np.lexsort((np.where(grows, context, -context), response))]


def _gather(tokens: npt.NDArray[np.uint16], starts: Ints, lengths: Ints) -> Ints:
    """Stretches of the token array as rows of a padded table."""
    column = np.arange(int(_rounded(lengths.max())))
    is_token = column < lengths[:, None]
    places = np.where(is_token, starts[:, None] + column, 0)
    return np.where(is_token, tokens[places].astype(np.int64), PAD)


def _batch(turns: Ints, lengths: Ints, targets: Ints, topics: npt.NDArray[np.integer]) -> ExampleBatch:
    inputs = np.concatenate([np.full((len(targets), 1), START), targets[:, :-1]], axis=1)
    inputs[inputs == END] = PAD  # nothing follows an end mark
    source_lengths = lengths.sum(axis=1)
    source = np.full((len(turns), int(_rounded(source_lengths.max()))), PAD, dtype=np.int64)
    column = np.arange(turns.shape[2])
    is_token = column < lengths[:, :, None]  # (B, N, L)
    offsets = np.cumsum(lengths, axis=1) - lengths  # (B, N) where each turn begins in the line
    row = np.broadcast_to(np.arange(len(turns))[:, None, None], is_token.shape)[is_token]
    source[row, (offsets[:, :, None] + column)[is_token]] = turns[is_token]
    return ExampleBatch(
        turns=torch.from_numpy(turns),
        turn_lengths=torch.from_numpy(lengths),
        source=torch.from_numpy(source),
        source_lengths=torch.from_numpy(source_lengths),
        topics=torch.from_numpy(topics.astype(np.int64)),
        inputs=torch.from_numpy(inputs),
        targets=torch.from_numpy(targets),
        n_targets=int((targets != PAD).sum()),
    )


def _rounded(lengths: Ints) -> Ints:
    return -(-lengths // _ROUND_TO) * _ROUND_TO


# Work done ahead of time by another thread, in order: batches are put together while the device computes.


A = TypeVar("A")
B = TypeVar("B")
_N_AHEAD = 4


def made_ahead(make: Callable[[A], B], wanted: Sequence[A]) -> Iterator[B]:
    """``make`` of each, a few ahead of the one that is asked for."""
    waiting: deque[Future[B]] = deque()
    with ThreadPoolExecutor(max_workers=2) as pool:
        try:
            for position in range(len(wanted) + _N_AHEAD):
                if position < len(wanted):
                    waiting.append(pool.submit(make, wanted[position]))
                if position >= _N_AHEAD and waiting:
                    yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
