"""A dialogue as the encoder reads it: ``[CLS] S1 [SEP] U1 [SEP] …``, who says each token, and batches of similar length.

Liang et al. 2020, section 6. The paper takes only dialogues that fit into BERT's 512 tokens; here a longer one is cut into
chunks between utterances (inside one only if it alone is longer than the window), so that every token is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue, Turn

Ints = NDArray[np.int64]
NOBODY, SYSTEM, USER = 0, 1, 2
N_SPEAKERS = 3


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a dialogue that fits into the encoder's window."""

    ids: Ints
    speakers: Ints


@dataclass(frozen=True, slots=True)
class Tokens:
    """A whole dialogue in chunks."""

    chunks: tuple[Chunk, ...]

    @property
    def n_tokens(self) -> int:
        """Of all chunks together, their special tokens counted."""
        return sum(len(chunk.ids) for chunk in self.chunks)

    @property
    def longest(self) -> int:
        """Of its chunks; dialogues of equal value fill a batch without padding."""
        return max(len(chunk.ids) for chunk in self.chunks)


class Tokeniser:
    """Cuts dialogues into tokens; each distinct text is cut once."""

    def __init__(self, tokenizer: Any, window: int) -> None:
        self.tokenizer = tokenizer
        self.window = window
        self.start = _special(tokenizer, "cls", "bos")
        self.end = _special(tokenizer, "sep", "eos")
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.end)
        self._known: dict[str, Ints] = {}

    def tokens(self, dialogues: Sequence[Dialogue]) -> list[Tokens]:
        """Every dialogue with all that is said in it."""
        self._learn({turn.text for dialogue in dialogues for turn in dialogue.turns})
        return [self._cut(dialogue) for dialogue in dialogues]

    def _learn(self, texts: set[str]) -> None:
        new = sorted(texts - self._known.keys())
        if new:
            cut = self.tokenizer(new, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
            self._known |= {text: np.asarray(ids, dtype=np.int64) for text, ids in zip(new, cut, strict=True)}

    def _cut(self, dialogue: Dialogue) -> Tokens:
        pieces = [piece for turn in dialogue.turns for piece in self._pieces(turn)]
        chunks: list[list[tuple[Ints, int]]] = [[]]
        used = 1
        for piece, speaker in pieces:
            if used + len(piece) > self.window:
                chunks.append([])
                used = 1
            chunks[-1].append((piece, speaker))
            used += len(piece)
        if not pieces:
            raise DialometerError(f"nothing is said in dialogue '{dialogue.id}'", remedy="leave it out")
        return Tokens(tuple(self._chunk(parts) for parts in chunks))

    def _pieces(self, turn: Turn) -> list[tuple[Ints, int]]:
        """An utterance with its [SEP], in as few parts as fit into a window beside [CLS]."""
        ids = np.append(self._known[turn.text], self.end)
        room = self.window - 1
        speaker = SYSTEM if turn.role == "agent" else USER
        return [(ids[start : start + room], speaker) for start in range(0, len(ids), room)]

    def _chunk(self, parts: list[tuple[Ints, int]]) -> Chunk:
        ids = np.concatenate([[self.start], *(piece for piece, _ in parts)]).astype(np.int64)
        speakers = np.concatenate([[NOBODY], *(np.full(len(piece), speaker) for piece, speaker in parts)])
        return Chunk(ids, speakers.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Strip:
    """Some dialogues' chunks one after the other, without padding.

    ``lengths`` are those of the chunks; ``owners`` says for each token to which of the ``rows`` it belongs, by place;
    ``is_first`` marks each chunk's first token.
    """

    ids: Ints
    speakers: Ints
    positions: Ints
    owners: Ints
    lengths: Ints
    rows: Ints

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether a token begins a chunk."""
        return np.asarray(self.positions == 0)

    def padded(self, values: Ints, fill: int) -> Ints:
        """One number per token as a table, chunks × tokens of the longest."""
        table = np.full((len(self.lengths), int(self.lengths.max())), fill, dtype=np.int64)
        table[np.arange(table.shape[1]) < self.lengths[:, None]] = values
        return table


def strip_of(tokens: Sequence[Tokens], rows: Ints) -> Strip:
    """The chunks of the dialogues ``rows``."""
    chunks = [chunk for row in rows for chunk in tokens[row].chunks]
    lengths = np.array([len(chunk.ids) for chunk in chunks], dtype=np.int64)
    return Strip(
        np.concatenate([chunk.ids for chunk in chunks]),
        np.concatenate([chunk.speakers for chunk in chunks]),
        np.concatenate([np.arange(length) for length in lengths]),
        np.repeat(np.arange(len(rows)), [tokens[row].n_tokens for row in rows]),
        lengths,
        np.asarray(rows),
    )


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """The same as tables, padded to the longest chunk. ``owners`` says to which of the ``rows`` a chunk belongs, by place."""

    ids: Ints
    speakers: Ints
    mask: NDArray[np.bool_]
    owners: Ints
    rows: Ints


def batch_of(tokens: Sequence[Tokens], rows: Ints, pad: int) -> PaddedBatch:
    """The chunks of the dialogues ``rows``, padded to the longest."""
    strip = strip_of(tokens, rows)
    owners = strip.padded(strip.owners, -1)
    return PaddedBatch(
        strip.padded(strip.ids, pad), strip.padded(strip.speakers, 0), owners >= 0, owners[:, 0], strip.rows
    )


def bucketed(tokens: Sequence[Tokens], rows: Ints, n_tokens: int, *, is_padded: bool = True) -> list[Ints]:
    """The dialogues ``rows`` in batches of similar length, none larger than ``n_tokens`` (padding counted where there is any).

    A dialogue that is larger by itself is a batch of its own.
    """
    order = sorted((int(row) for row in rows), key=lambda row: (-tokens[row].longest, row))
    batches: list[list[int]] = []
    size = width = 0
    for row in order:
        n_chunks = len(tokens[row].chunks)
        more = n_chunks * width if is_padded else tokens[row].n_tokens
        if not batches or size + more > n_tokens:
            batches.append([])
            width = tokens[row].longest
            size, more = 0, n_chunks * width if is_padded else tokens[row].n_tokens
        batches[-1].append(row)
        size += more
    return [np.array(batch, dtype=np.int64) for batch in batches]


def _special(tokenizer: Any, *kinds: str) -> int:
    for kind in kinds:
        number = getattr(tokenizer, f"{kind}_token_id", None)
        if number is not None:
            return int(number)
    raise DialometerError(
        f"the encoder's tokenizer has no {' or '.join(kinds)} token",
        remedy="name a model with such tokens, as BERT has",
    )
