"""dialometer learn simulate: rated conversations whose truth is known, to try an evaluator on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.options import AsJson, Seed


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="simulate", epilog="Example: dialometer learn simulate talks.jsonl --dialogues 600 --seed 1")
    def simulate_(
        out: Annotated[Path, typer.Argument(metavar="FILE", help="Where the conversations go, as JSON Lines.")],
        dialogues: Annotated[int, typer.Option("--dialogues", min=1, help="How many conversations.")] = 600,
        careless: Annotated[
            float, typer.Option("--careless", min=0, max=1, help="Share of users who rate carelessly.")
        ] = 0.15,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Simulate dialogues with four chat systems and their users' ratings, to try the learned evaluator.

        Each conversation has, under 'truth', its true quality and whether its user rated carelessly. Evaluators do not use
        it; 'learn report' does, to say how well the truth was recovered.
        """
        from collections import Counter

        from dialometer.readers.writing import write_dialogues
        from dialometer.simulate.rated_conversations import UserHabits, simulate_conversations

        talks = simulate_conversations(dialogues, seed, UserHabits(careless_share=careless))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_dialogues(out, talks)
        counts = Counter(int(talk.metadata["rating"]) for talk in talks)
        n_careless = sum(bool(talk.metadata["truth"]["is_careless"]) for talk in talks)
        n_users = len({talk.metadata["user"] for talk in talks})
        if as_json:
            ratings = {str(point): counts[point] for point in range(1, 6)}
            summary = {"file": str(out), "n_dialogues": len(talks), "n_users": n_users}
            typer.echo(json.dumps({**summary, "n_careless": n_careless, "ratings": ratings}, indent=2))
            return
        from dialometer.cli.console import results

        shares = ", ".join(f"{point}: {counts[point] / len(talks):.0%}" for point in range(1, 6))
        results.print(
            f"{len(talks):,} dialogues of {n_users:,} users, {n_careless:,} rated carelessly. Ratings: {shares}."
        )
        results.print(f"They are in {out}", soft_wrap=True)
