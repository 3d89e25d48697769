"""How a model is trained, and where a training stands."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dialometer.errors import DialometerError


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is trained. All of it stands in the bot's record."""

    n_epochs: int = 12
    batch_size: int = 512
    learning_rate: float = 1e-3
    n_warmup_steps: int = 200
    label_smoothing: float = 0.1
    max_gradient: float = 1.0
    weight_decay: float = 0.01
    patience: int = 2
    seed: int = 0
    device: str = "auto"
    is_mixed: bool | None = None
    is_compiled: bool | None = None
    is_bucketed: bool = True
    save_every_n_steps: int = 500
    max_minutes: float = math.inf

    def __post_init__(self) -> None:
        if self.n_epochs < 1 or self.batch_size < 1 or self.learning_rate <= 0 or self.patience < 1:
            raise DialometerError("epochs, batch size, learning rate and patience must be positive")
        if not 0 <= self.label_smoothing < 1:
            raise DialometerError("label smoothing lies between 0 and 1", remedy="0.1 is usual")


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training stands."""

    epoch: int
    n_epochs: int
    step: int
    n_steps: int
    loss: float
    tokens_per_s: float
    validation_perplexity: float | None = None
