"""dialometer learn adapt: an evaluator of another domain, taken to one's own by few ratings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.learn._shared import RatingOptions, RatingsPath, with_interval
from dialometer.cli.options import AsJson, Device, Seed, with_option_groups

if TYPE_CHECKING:
    from dialometer.learned.gaussian.training import GaussianFit

_UNRELATED, _ALIKE = 0.35, 0.65


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="adapt", epilog="Example: dialometer learn adapt evaluator my-ratings.jsonl --out adapted-evaluator"
    )
    @with_option_groups
    def adapt_(
        old: Annotated[
            Path,
            typer.Argument(
                metavar="EVALUATOR", help="Folder of an evaluator trained by --recipe best.", show_default=False
            ),
        ],
        ratings: RatingsPath,
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the adapted evaluator.")] = Path(
            "adapted-evaluator"
        ),
        seed: Seed = 0,
        device: Device = "auto",
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Adapt a trained evaluator to another domain with 20 to 200 ratings of it; the old ratings are not needed.

        The new ratings also decide how much the old evaluator counts. The accuracies printed are on pairs of these ratings,
        each dialogue scored without the ratings of its user.
        """
        from dialometer.cli.console import working
        from dialometer.learned.data.evaluator import read_about
        from dialometer.learned.evaluators import load_evaluator
        from dialometer.learned.gaussian.adapting import adapt_gaussian, require_gaussian
        from dialometer.learned.gaussian.training import save_gaussian

        about = read_about(old)["about"]
        evaluator = require_gaussian(load_evaluator(old, device), str(old))
        data = source.read(ratings)
        with working(device, None) as work:
            fitted = adapt_gaussian(evaluator, data.rated, seed=seed, about=about, work=work)
        save_gaussian(out, fitted)
        _print_result(out, fitted, as_json=as_json)


def _print_result(out: Path, fitted: GaussianFit, *, as_json: bool) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_number

    about = {key: value for key, value in fitted.about.items() if key != "fingerprint"} | {"evaluator": str(out)}
    if as_json:
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("new ratings", f"{about['n_ratings']:,}")
    table.add_row("pairs judged by", str(about["pairs"]))
    table.add_row("number of pairs", f"{about['n_stopping_pairs']:,}")
    table.add_row("accuracy before", with_interval(about["accuracy_before"], about["interval_before"]))
    table.add_row("accuracy adapted", f"{with_interval(fitted.accuracy, about['interval'])}, cross-validated")
    table.add_row("calibration error", f"{fitted.reliability.calibration_error:.1%}")
    table.add_row("correlation of old and new quality", write_number(about["correlation"], 2))
    table.add_row("evaluator", str(out))
    results.print(table)
    correlation = about["correlation"]
    if correlation < _UNRELATED:
        message = (
            "The old evaluator says little about these ratings. One trained on them alone may be as good: "
            "dialometer learn train."
        )
    elif correlation > _ALIKE:
        message = "The old evaluator fits these ratings well."
    else:
        message = "The old evaluator fits these ratings in part."
    results.print(
        f"\n{message} 'dialometer learn evaluate RATINGS --evaluator {out}' measures it on ratings it has not seen."
    )
