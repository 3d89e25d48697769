"""dialometer learn perturb: real dialogues beside the fakes that stage 1 learns to tell from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.learn._shared import RatingOptions, RatingsPath
from dialometer.cli.options import AsJson, Device, Seed, with_option_groups

if TYPE_CHECKING:
    from dialometer.model.dialogue import Dialogue


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="perturb", epilog="Example: dialometer learn perturb ratings.jsonl --n 2 --evaluator evaluator")
    @with_option_groups
    def perturb_(
        ratings: RatingsPath,
        n: Annotated[int, typer.Option("--n", min=1, help="How many dialogues to show.")] = 1,
        evaluator: Annotated[
            Path | None,
            typer.Option("--evaluator", "-e", help="Show this evaluator's scores of the real and the fake ones."),
        ] = None,
        seed: Seed = 0,
        device: Device = "auto",
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Show real dialogues and their fakes: one utterance, of the user or of the system, replaced by one from elsewhere.

        These are the pairs of stage 1 (the paper's Table 3); with high probability the fake flows worse.
        """
        import numpy as np

        from dialometer.learned.cmade.stages import REPLACED, fake_dialogues

        dialogues = [row.dialogue for row in source.read(ratings).rated]
        rng = np.random.default_rng([seed, 1])
        fakes = fake_dialogues(dialogues, rng)
        chosen = np.sort(np.random.default_rng(seed).permutation(len(dialogues))[:n]).tolist()
        scores = _scores(evaluator, [(dialogues[k], *fakes[2 * k : 2 * k + 2]) for k in chosen], device)
        shown = []
        for place, number in enumerate(chosen):
            for j, role in enumerate(REPLACED):
                record = _record(dialogues[number], fakes[len(REPLACED) * number + j], role)
                if scores:
                    record |= {"score_real": scores[place][0], "score_fake": scores[place][1 + j]}
                shown.append(record)
        if as_json:
            typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
            return
        for record in shown:
            _print(record)


def _scores(folder: Path | None, groups: list[tuple[Dialogue, ...]], device: str) -> list[list[float]]:
    if folder is None:
        return []
    from dialometer.learned.evaluators import load_evaluator

    loaded = load_evaluator(folder, device)
    values = loaded.score([dialogue for group in groups for dialogue in group]).values.tolist()
    return [values[3 * k : 3 * k + 3] for k in range(len(groups))]


def _record(real: Dialogue, fake: Dialogue, role: str) -> dict[str, Any]:
    place = next((k for k, (a, b) in enumerate(zip(real.turns, fake.turns, strict=True)) if a.text != b.text), None)
    return {
        "dialogue": real.id,
        "replaced": role,
        "turn": place,
        "turns": [{"role": turn.role, "text": turn.text} for turn in real.turns],
        "fake_text": None if place is None else fake.turns[place].text,
    }


def _print(record: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_number

    labels = {"user": "User", "agent": "System"}
    table = Table("turn", "", "text", box=None, pad_edge=False, header_style="bold")
    for number, turn in enumerate(record["turns"]):
        is_replaced = number == record["turn"]
        table.add_row(str(number + 1), labels.get(turn["role"], turn["role"]), escape(turn["text"]))
        if is_replaced:
            table.add_row("", "[red]fake[/]", f"[red]{escape(record['fake_text'])}[/]")
    results.print(
        f"[bold]Dialogue {escape(record['dialogue'])}[/], an utterance of the {labels[record['replaced']].lower()} replaced"
    )
    results.print(table)
    if "score_real" in record:
        real, fake = (write_number(record[name], 2) for name in ("score_real", "score_fake"))
        results.print(f"Score of the real one {real}, of the fake {fake}")
    results.print()
