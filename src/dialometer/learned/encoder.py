"""The dialogue encoder phi: a transformer over all utterances, with a learned embedding of who speaks.

Liang et al. 2020, section 6. Three deviations, each with its reason:

* The packaged encoder is MiniLM instead of BERT, six layers of width 384, so that training needs no download and takes
  minutes on a small machine; any Hugging Face name or folder takes its place.
* A dialogue's feature is the mean over its tokens, since MiniLM was trained for that; ``pooling="first"`` takes [CLS].
  Chunks of a long dialogue count by their tokens, so the mean is over all tokens of the dialogue.
* The paper adds the speaker's embedding through BERT's two segments. Not every model has those, so it is a layer of its own,
  zero at the start: an encoder that was not trained yet gives the features of its pretraining.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialometer.errors import DialometerError
from dialometer.learned.tokens import N_SPEAKERS, Batch, Tokeniser, Tokens, batch_of, bucketed
from dialometer.model.dialogue import Dialogue
from dialometer.retrieval.text_encoder import PACKAGED, device_of, load_model

Pooling = Literal["mean", "first"]
Report = Callable[[int, int], None]
SMALLEST_WINDOW = 8
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet")  # their first position is number 2
_UNBOUNDED = 10**6  # what tokenizers say when they know no limit


class DialogueEncoder(nn.Module):
    """Dialogues in, one vector each out."""

    def __init__(self, tokenizer: Any, network: Any, *, window: int = 0, pooling: Pooling = "mean") -> None:
        super().__init__()
        largest = largest_window(tokenizer, network.config)
        if window and not SMALLEST_WINDOW <= window <= largest:
            raise DialometerError(
                f"a window of {window} tokens does not suit the encoder",
                remedy=f"take {SMALLEST_WINDOW} to {largest}, or an encoder with a longer context",
            )
        self.tokeniser = Tokeniser(tokenizer, window or largest)
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # a layer over [CLS] that nothing here uses
        self.network = network
        self.pooling = pooling
        self.width = int(network.config.hidden_size)
        self.speaker = nn.Embedding(N_SPEAKERS, self.width)
        nn.init.zeros_(self.speaker.weight)

    @property
    def window(self) -> int:
        """How many tokens are read at once."""
        return self.tokeniser.window

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.speaker.weight.device

    def forward(self, batch: Batch) -> Tensor:
        """Features of the batch's dialogues, in single precision."""
        ids = self._moved(batch.ids)
        mask = self._moved(batch.mask)
        words = self.network.get_input_embeddings()(ids) + self.speaker(self._moved(batch.speakers))
        hidden = self.network(inputs_embeds=words, attention_mask=mask.long()).last_hidden_state.float()
        weights = mask.float().unsqueeze(-1)
        sums = (hidden * weights).sum(1) if self.pooling == "mean" else hidden[:, 0] * weights.sum(1)
        n = len(batch.rows)
        owners = self._moved(batch.owners)
        totals = torch.zeros(n, self.width, device=sums.device).index_add(0, owners, sums)
        return totals / torch.zeros(n, 1, device=sums.device).index_add(0, owners, weights.sum(1))

    def tokens(self, dialogues: Sequence[Dialogue]) -> list[Tokens]:
        """The dialogues as this encoder reads them."""
        return self.tokeniser.tokens(dialogues)

    def batch(self, tokens: Sequence[Tokens], rows: NDArray[np.int64]) -> Batch:
        """The dialogues ``rows`` in one padded batch."""
        return batch_of(tokens, rows, self.tokeniser.pad)

    @torch.inference_mode()
    def features(
        self, tokens: Sequence[Tokens], *, tokens_per_batch: int = 16_384, report: Report | None = None
    ) -> NDArray[np.float32]:
        """Features of all dialogues, without dropout and in bounded memory."""
        was_training = self.training
        self.eval()
        out = np.empty((len(tokens), self.width), dtype=np.float32)
        n_done = 0
        for rows in bucketed(tokens, np.arange(len(tokens)), tokens_per_batch):
            with half_precision(self.device.type, "auto"):
                out[rows] = self(self.batch(tokens, rows)).cpu().numpy()
            n_done += len(rows)
            if report is not None:
                report(n_done, len(tokens))
        self.train(was_training)
        return out

    def _moved(self, array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor


Precision = Literal["auto", "float32", "bfloat16", "float16"]


def half_precision(device: str, precision: Precision) -> Any:
    """Computes in 16 bits where asked; ``auto`` asks on a GPU, where it is quicker and memory goes further."""
    kinds = {"bfloat16": torch.bfloat16, "float16": torch.float16}
    if precision == "auto":
        precision = "bfloat16" if device == "cuda" else "float32"
    return torch.autocast(device, kinds.get(precision, torch.bfloat16), enabled=precision in kinds)


def largest_window(tokenizer: Any, config: Any) -> int:
    """The most tokens that an encoder can read at once."""
    positions = getattr(config, "max_position_embeddings", None) or _UNBOUNDED
    if config.model_type in _OFFSET_POSITIONS:
        positions -= 2
    return int(min(positions, tokenizer.model_max_length, _UNBOUNDED))


def load_encoder(
    model: str | Path = PACKAGED, *, device: str = "auto", window: int = 0, pooling: Pooling = "mean"
) -> DialogueEncoder:
    """A pretrained encoder: the packaged one, a folder, or a Hugging Face name."""
    place = device_of(device)
    tokenizer, network = load_model(str(model), place)
    return DialogueEncoder(tokenizer, network, window=window, pooling=pooling).to(place)
