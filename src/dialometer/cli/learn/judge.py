"""dialometer learn judge: a model's scores beside the judgments of human raters in a study's report."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from dialometer.cli.learn._shared import Criterion
from dialometer.cli.options import AsJson, Database, Device, StudyDir


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="judge",
        epilog="Example: dialometer learn judge my-study --name evaluator; then dialometer report my-study",
    )
    def judge_(
        folder: StudyDir,
        scores: Annotated[
            Path | None,
            typer.Argument(
                metavar="SCORES",
                help="CSV with id, score and, where an item shows several systems, system; as 'learn score --out' writes. "
                "Without it, an evaluator is trained on the study's own ratings, in folds.",
                show_default=False,
            ),
        ] = None,
        name: Annotated[str, typer.Option("--name", help="The model's name in the report.")] = "evaluator",
        criterion: Criterion = "",
        folds: Annotated[
            int | None,
            typer.Option(
                "--folds",
                min=2,
                help="Number of folds of the rated items; each is scored by an evaluator that did not see its ratings. "
                "With SCORES: in how many folds they were cross-fitted. By default 5, and none with SCORES.",
                show_default=False,
            ),
        ] = None,
        seed: Annotated[int, typer.Option("--seed", help="Of the folds and the training.")] = 0,
        database: Database = "",
        device: Device = "auto",
        as_json: AsJson = False,
    ) -> None:
        """Store scores of a learned evaluator or of an LLM judge as a model's judgments; the report compares them with human raters.

        Without SCORES an evaluator is trained on the study's own ratings. It is trained in folds over the items, and every item is
        scored by a model that did not see its ratings (cross-fitting), so that raters can be corrected by it. Of given scores
        that are not within the criterion's scale only the order is used: they are mapped to the ratings that human raters gave.
        """
        from dialometer.analysis.base.wording import n_of
        from dialometer.cli.console import errors, results
        from dialometer.learned.store_in_study import read_scores, store_judge
        from dialometer.report.numbers import write_number

        if scores is not None:
            given, n_empty = read_scores(scores)
            if n_empty:
                errors.print(
                    f"{n_of(n_empty, 'row')} of {scores} without a score excluded", markup=False, soft_wrap=True
                )
            n = store_judge(folder, name, given, criterion=criterion, database=database, n_folds=folds or 0)
            about: dict[str, Any] = {"name": name, "n_judgments": n}
        else:
            about = _trained(folder, name, criterion, database, folds, seed, device)
        if as_json:
            typer.echo(json.dumps(about))
            return
        if "n_ratings" in about:
            correlation = about["correlation"]
            fit = "" if correlation is None else f" Correlation with mean ratings: {write_number(correlation, 2)}."
            results.print(
                f"Trained on {about['n_ratings']:,} ratings of {about['n_rated']:,} responses or dialogues in {about['n_folds']} "
                f"folds; each was scored by an evaluator that did not see its ratings.{fit}"
            )
        results.print(
            f"{about['n_judgments']} judgments of {name} stored; 'dialometer report {folder}' compares them with human raters."
        )


def _trained(
    folder: Path, name: str, criterion: str, database: str, folds: int | None, seed: int, device: str
) -> dict[str, Any]:
    """An evaluator trained in folds on the study's own ratings, stored as a judge; what it was trained on."""
    from dialometer.cli.console import working
    from dialometer.learned.cross_fitting import cross_fit
    from dialometer.learned.store_in_study import store_judge
    from dialometer.stats.judged.folds import N_FOLDS

    with working(device, None) as work:
        fit = cross_fit(folder, criterion=criterion, database=database, n_folds=folds or N_FOLDS, seed=seed, work=work)
    n = store_judge(folder, name, fit.scores, criterion=fit.criterion, database=database, n_folds=fit.n_folds)
    correlation = None if math.isnan(fit.correlation) else fit.correlation
    return {
        "name": name, "n_judgments": n, "n_folds": fit.n_folds, "n_ratings": fit.n_ratings, "n_rated": fit.n_rated,
        "correlation": correlation,
    }  # fmt: skip
