"""dialometer learn compare: which of two dialogues, or of two collections of dialogues, is better."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.learn._shared import EvaluatorDir, read_each, tell_mute
from dialometer.cli.options import AsJson, Device, Speakers

if TYPE_CHECKING:
    from dialometer.model.dialogue import Dialogue


Side = "File with one or more dialogues; FILE#ID names one of them."


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="compare",
        epilog="Examples: dialometer learn compare a.jsonl b.jsonl · dialometer learn compare chats.jsonl#7 chats.jsonl#9",
    )
    def compare_(
        a: Annotated[str, typer.Argument(metavar="A", help=Side, show_default=False)],
        b: Annotated[str, typer.Argument(metavar="B", help=Side, show_default=False)],
        evaluator: EvaluatorDir = Path("evaluator"),
        seed: Annotated[int, typer.Option("--seed", min=0, help="Decides the resampling of dialogues.")] = 0,
        device: Device = "auto",
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Say which is better, with a calibrated probability.

        For two collections it is the mean over all pairs of a dialogue of A and one of B, with an interval by resampling
        dialogues of both sides.
        """
        from dialometer.learned.evaluators import compare_collections, load_evaluator

        first, second = _side(a), _side(b)
        loaded = load_evaluator(evaluator, device)
        if len(first) == len(second) == 1:
            single = loaded.compare(first[0], second[0])
            if as_json:
                typer.echo(json.dumps({"a": a, "b": b, **asdict(single)}, indent=2))
                return
            how = "by model" if single.n_models > 1 else "by the model's own uncertainty"
            spread = f" ({single.low:.0%} to {single.high:.0%} {how})" if single.low < single.high else ""
            _print(f"A is better with a probability of {single.probability:.0%}{spread}.")
            return
        estimate = compare_collections(loaded, first, second, seed=seed)
        if as_json:
            content = {"a": a, "b": b, "n_a": len(first), "n_b": len(second)}
            content |= {
                "probability": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "method": estimate.method,
            }
            typer.echo(json.dumps(content, indent=2))
            return
        _print(
            f"A dialogue of A is better than one of B with a probability of {estimate.value:.0%}"
            f" (95% interval {estimate.low:.0%} to {estimate.high:.0%}, {len(first)} and {len(second)} dialogues)."
        )


def _print(text: str) -> None:
    from dialometer.cli.console import results

    results.print(text)


def _side(name: str) -> list[Dialogue]:
    from dialometer.errors import DialometerError
    from dialometer.registry import did_you_mean

    path, mark, wanted = name.rpartition("#")
    if not mark or Path(name).is_file():
        dialogues = list(read_each(Path(name)))
        tell_mute([dialogue.id for dialogue in dialogues if not dialogue.said_by("agent")], f"excluded from {name}")
        return [dialogue for dialogue in dialogues if dialogue.said_by("agent")]
    dialogues = list(read_each(Path(path)))
    chosen = [dialogue for dialogue in dialogues if dialogue.id == wanted]
    if not chosen:
        remedy = did_you_mean(wanted, [dialogue.id for dialogue in dialogues][:20])
        raise DialometerError(f"there is no dialogue '{wanted}'", where=path, remedy=remedy)
    if not chosen[0].said_by("agent"):
        remedy = "name another, or give the speakers' roles"
        raise DialometerError(f"dialogue '{wanted}' has no turn of an agent", where=path, remedy=remedy)
    return chosen
