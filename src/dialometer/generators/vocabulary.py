"""Subword vocabulary: byte-level pairs, so that every text can be written and no token is ever "unknown".

Three tokens are not text: padding, the start of a response, and the end of a turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError

PAD, START, END = 0, 1, 2
SPECIAL = ("<pad>", "<start>", "<end>")
_N_BYTES = 256
_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """Text on one line with single spaces: what models read and write."""
    return _SPACE.sub(" ", text).strip()


class Vocabulary:
    """A trained tokenizer. Two vocabularies with the same ``fingerprint`` number their tokens alike."""

    def __init__(self, description: str) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - only where texts are encoded

        self.description = description
        try:
            self._tokenizer: Any = Tokenizer.from_str(description)
        except BaseException as error:  # the library raises bare Exception, and panics at some damaged descriptions
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise DialometerError(f"not a vocabulary: {error}", remedy="prepare the corpus again") from error
        self.fingerprint = hashlib.sha256(description.encode()).hexdigest()[:16]

    @classmethod
    def train(cls, texts: Iterable[str], n_tokens: int) -> Vocabulary:
        """The ``n_tokens`` most useful pieces of the texts; texts are only counted, never held."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415

        if n_tokens < _N_BYTES + len(SPECIAL):
            raise DialometerError(
                f"a vocabulary of {n_tokens} tokens is too small", remedy=f"ask for {_N_BYTES + len(SPECIAL)} or more"
            )
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=n_tokens,
            special_tokens=list(SPECIAL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer.to_str())

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without an end mark. Words that look like a special token are read as plain text."""
        cleaned = [_without_marks(plain(text)) for text in texts]
        return [row.ids for row in self._tokenizer.encode_batch(cleaned, add_special_tokens=False)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens up to the first end mark."""
        row = [int(token) for token in tokens]
        row = row[: row.index(END)] if END in row else row
        return str(self._tokenizer.decode(row, skip_special_tokens=True)).strip()

    @cached_property
    def pieces(self) -> list[str]:
        """Each token as text; a token that is only a part of a character has U+FFFD in it."""
        return [str(self._tokenizer.decode([token], skip_special_tokens=False)) for token in range(len(self))]

    @cached_property
    def may_be_said(self) -> npt.NDArray[np.bool_]:
        """Tokens allowed in output: the end mark and whole text; never other marks, blanks, controls or parts of characters."""
        allowed = np.array(["�" not in piece and piece.isprintable() and piece.strip() != "" for piece in self.pieces])
        allowed[[PAD, START]] = False
        allowed[END] = True
        return allowed

    @cached_property
    def is_word(self) -> npt.NDArray[np.bool_]:
        """Tokens that are a whole lower- or upper-case word with its space before it: the candidates for topic words."""
        names = [str(self._tokenizer.id_to_token(token)) for token in range(len(self))]
        return np.array([name[:1] == "Ġ" and name[1:].isalpha() and len(name) > 3 for name in names])


def _without_marks(text: str) -> str:
    for mark in SPECIAL:
        text = text.replace(mark, mark.strip("<>"))
    return text
