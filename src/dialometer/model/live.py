"""How live conversations are shown: word by word or whole, and whether at one pace for all systems."""

from __future__ import annotations

from pydantic import Field

from dialometer.model.part import Part


class Live(Part):
    """Responses of agents in chat studies. A pace that is the same for all keeps speed from giving a system away."""

    streaming: bool = Field(default=True, description="Show responses word by word, where the agent gives them so.")
    first_word_s: float | None = Field(
        default=None,
        ge=0,
        le=60,
        description="Seconds before the first word of every response, whichever system it is.",
    )
    characters_per_s: float | None = Field(
        default=None, gt=0, le=10_000, description="How fast every response appears after that."
    )

    @property
    def is_levelled(self) -> bool:
        """Whether all systems answer at one pace."""
        return self.first_word_s is not None or self.characters_per_s is not None

    def n_due(self, elapsed_s: float) -> float:
        """How many characters of a response may be shown so long after the message."""
        since_first = elapsed_s - (self.first_word_s or 0.0)
        if since_first < 0:
            return 0.0
        return since_first * self.characters_per_s if self.characters_per_s else float("inf")

    def duration_s(self, n_characters: int) -> float:
        """Seconds until a response is shown whole, at the pace alone."""
        writing = n_characters / self.characters_per_s if self.characters_per_s else 0.0
        return (self.first_word_s or 0.0) + writing
