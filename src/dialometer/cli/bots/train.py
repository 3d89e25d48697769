"""dialometer bots train: one model on one corpus."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.options import AsJson, Device, Seed

if TYPE_CHECKING:
    from dialometer.cli.console import Report
    from dialometer.generators.corpus import Corpus
    from dialometer.generators.training import TrainingProgress


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="train", epilog="Example: dialometer bots train hred corpus --out hred --epochs 12")
    def train_(
        model: Annotated[str, typer.Argument(help="seq2seq, hred, thred or transformer.", show_default=False)],
        corpus: Annotated[
            Path,
            typer.Argument(
                help="Folder from 'bots prepare', or a file of dialogues to prepare first.", show_default=False
            ),
        ],
        out: Annotated[Path, typer.Option("--out", help="Folder for the bot.")],
        epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the corpus at most.")] = 12,
        batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Examples per step and process.")] = 512,
        learning_rate: Annotated[float, typer.Option("--learning-rate", help="Highest learning rate.")] = 1e-3,
        label_smoothing: Annotated[float, typer.Option("--label-smoothing", help="Share given to other tokens.")] = 0.1,
        patience: Annotated[
            int, typer.Option("--patience", min=1, help="Epochs without a better validation perplexity.")
        ] = 2,
        cell: Annotated[
            str, typer.Option("--cell", help="Recurrent cells: gru (default) or lstm.", show_default=False)
        ] = "",
        attention: Annotated[
            str,
            typer.Option("--attention", help="additive (default) or none, as in HRED's paper.", show_default=False),
        ] = "",
        size: Annotated[
            list[str] | None,
            typer.Option("--size", help="A size of the model, as hidden=256. May be given several times."),
        ] = None,
        mixed: Annotated[
            bool | None, typer.Option("--mixed/--no-mixed", help="bf16 arithmetic; by default on NVIDIA GPUs.")
        ] = None,
        compile: Annotated[
            bool | None,
            typer.Option(
                "--compile/--no-compile",
                help="torch.compile; by default where it pays: the transformer on NVIDIA GPUs.",
            ),
        ] = None,
        max_minutes: Annotated[
            float, typer.Option("--max-minutes", min=0, help="Stop after this many minutes.")
        ] = math.inf,
        device: Device = "auto",
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Train a response generator. Several GPUs: accelerate launch -m dialometer bots train …

        Run again after an interruption: it continues and ends with the same weights.
        """
        from dialometer.cli.console import progress_bar
        from dialometer.generators.bot import load_checkpoint
        from dialometer.generators.generator import GENERATORS
        from dialometer.generators.training import STATE_FILE, GeneratorTraining, train
        from dialometer.neural.device import choose_device

        GENERATORS.get(model)
        choose_device(device)
        settings = GeneratorTraining(
            n_epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            label_smoothing=label_smoothing,
            patience=patience,
            seed=seed,
            device=device,
            is_mixed=mixed,
            is_compiled=compile,
            max_minutes=max_minutes or math.inf,
        )
        with (
            continues(out / STATE_FILE),
            progress_bar() as report,
        ):
            prepared = _corpus(corpus, out, report)
            path = train(
                model,
                prepared,
                out,
                settings,
                sizes=_sizes(size or []) | {k: v for k, v in (("cell", cell), ("attention", attention)) if v},
                report=lambda progress: _report_progress(progress, report),
            )
        if os.environ.get("RANK", "0") == "0":  # of several processes one is enough to tell
            _show(path, load_checkpoint(path).record, as_json=as_json)


def _corpus(source: Path, out: Path, report: Report) -> Corpus:
    """The prepared corpus, prepared into the bot's folder where a plain file was given."""
    from dialometer.errors import DialometerError
    from dialometer.generators.corpus import is_corpus, load_corpus
    from dialometer.generators.preparing import prepare_corpus

    if source.is_dir():
        return load_corpus(source)
    folder = out / "corpus"
    if is_corpus(folder):
        return load_corpus(folder)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise DialometerError(
            "several processes cannot prepare one corpus",
            where=str(source),
            remedy=f"first run: dialometer bots prepare {source} --out corpus",
        )
    return prepare_corpus([source], folder, report=lambda what, n_done: report(what, n_done, 0))


def _sizes(entries: list[str]) -> dict[str, Any]:
    from dialometer.errors import DialometerError

    sizes: dict[str, Any] = {}
    for entry in entries:
        name, _, value = entry.partition("=")
        if name.strip() in ("cell", "attention"):
            raise DialometerError(f"'{entry}' is not a size", where="--size", remedy=f"write --{name.strip()} {value}")
        try:
            sizes[name.strip()] = float(value) if name.strip() == "dropout" else int(value)
        except ValueError as error:
            raise DialometerError(f"'{entry}' is not a size", where="--size", remedy="write hidden=256") from error
    return sizes


def _report_progress(progress: TrainingProgress, report: Report) -> None:
    from dialometer.cli.console import errors

    if os.environ.get("RANK", "0") != "0":
        return
    doing = f"epoch {progress.epoch + 1}/{progress.n_epochs}, loss {progress.loss:.3f}, {progress.tokens_per_s:,.0f} tokens/s"
    n_done = progress.epoch * progress.n_steps + progress.step
    report(f"training, {doing}", n_done, progress.n_epochs * progress.n_steps)
    if progress.validation_perplexity is not None:
        errors.print(f"{doing}, validation perplexity {progress.validation_perplexity:.2f}")


def _show(path: Path, record: Any, *, as_json: bool) -> None:
    from dialometer.cli.console import results

    if as_json:
        typer.echo(json.dumps({"bot": str(path), **record}, indent=2))
        return
    results.print(
        f"{record['model']}: validation perplexity {record['validation_perplexity']:.2f} after epoch {record['best_epoch']}, "
        f"{record['n_parameters']:,} parameters, {record['seconds']:.0f} s at {record['tokens_per_s']:,} tokens/s "
        f"({record['device']}).",
        soft_wrap=True,
    )
    results.print(f"Wrote [bold]{path}[/]. Next: [bold]dialometer bots chat {path.parent}[/]", soft_wrap=True)
