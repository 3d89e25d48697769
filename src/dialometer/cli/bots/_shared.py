"""What the verbs of ``dialometer bots`` share: their arguments, and bots by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dialometer.generators.bot import Bot
    from dialometer.generators.decoding import Decoding


Strategy = Annotated[str, typer.Option("--strategy", help="greedy, beam or sample.")]
Cut = Annotated[bool, typer.Option("--cut", help="Let a bot see only the end of contexts that are too long for it.")]


@dataclass(frozen=True)
class DecodingOptions:
    """How a bot's responses are found."""

    strategy: Strategy = "beam"
    beams: Annotated[int, typer.Option("--beams", min=1, help="Beams, with strategy beam.")] = 5
    length_penalty: Annotated[
        float, typer.Option("--length-penalty", min=0, help="Power of the length in a beam's score.")
    ] = 1.0
    diversity_penalty: Annotated[
        float, typer.Option("--diversity-penalty", min=0, help="Taken off a beam's candidates by their rank.")
    ] = 0.0
    top_p: Annotated[float, typer.Option("--top-p", help="Share of the probability that is drawn from.")] = 0.9
    top_k: Annotated[
        int, typer.Option("--top-k", min=0, help="Number of likeliest tokens that are drawn from; 0 for all.")
    ] = 0
    temperature: Annotated[
        float, typer.Option("--temperature", help="Below 1 draws more of the likely, above 1 less.")
    ] = 1.0
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=3, help="Longest response, in tokens.")] = 40

    def decoding(self) -> Decoding:
        """The options as the generators take them."""
        from dialometer.generators.decoding import Decoding

        return Decoding(
            strategy=self.strategy,  # type: ignore[arg-type]
            n_beams=self.beams,
            length_penalty=self.length_penalty,
            diversity_penalty=self.diversity_penalty,
            top_p=self.top_p,
            top_k=self.top_k,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
        )


def named_bots(entries: list[str], device: str) -> dict[str, Bot]:
    """Bots by the name they have in tables and studies: ``name=path``, or the name of the model at a path."""
    from dialometer.errors import DialometerError
    from dialometer.generators.bot import Bot

    bots: dict[str, Bot] = {}
    for entry in entries:
        name, sign, path = entry.partition("=")
        bot = Bot.load(Path(path if sign else entry), device)
        name = name if sign else bot.checkpoint.name
        if name in bots:
            raise DialometerError(
                f"two bots are called '{name}'", where=entry, remedy="write NAME=PATH for one of them"
            )
        bots[name] = bot
    return bots
