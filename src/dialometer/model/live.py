"""Live conversations: shown word by word or whole, at one pace for all systems or not, and what they may cost."""

from __future__ import annotations

from pydantic import Field

from dialometer.model.part import Part


class Price(Part):
    """What a million tokens of a model cost, in the currency of the budget."""

    input: float = Field(ge=0, description="A million tokens that the model reads.")
    output: float = Field(ge=0, description="A million tokens that it writes.")

    def cost(self, n_in: int, n_out: int) -> float:
        """Of one response."""
        return (n_in * self.input + n_out * self.output) / 1e6


class Live(Part):
    """Live conversations. A pace that is the same for all keeps speed from giving a system away; a budget limits the cost."""

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

    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="Models of agents and their prices per million tokens: {name: {input, output}}.",
    )
    budget: float | None = Field(
        default=None, gt=0, description="What all agents together may cost; then they stop answering."
    )
    currency: str = Field(default="", description="Currency of prices and budget, such as USD.")

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
