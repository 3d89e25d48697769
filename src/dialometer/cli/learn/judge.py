"""dialometer learn judge: a model's scores beside the judgments of human raters in a study's report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.learn._shared import Criterion
from dialometer.cli.options import AsJson, Database, StudyDir


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="judge",
        epilog="Example: dialometer learn judge my-study scores.csv --name evaluator; then dialometer report my-study",
    )
    def judge_(
        folder: StudyDir,
        scores: Annotated[
            Path,
            typer.Argument(
                metavar="SCORES",
                help="CSV with id, score and, where an item shows several systems, system; as 'learn score --out' writes.",
                show_default=False,
            ),
        ],
        name: Annotated[str, typer.Option("--name", help="The model's name in the report.")] = "evaluator",
        criterion: Criterion = "",
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Store scores of a learned evaluator or of an LLM judge as a model's judgments; the report compares them with human raters.

        Scores that do not lie on the criterion's scale keep their order only: they are laid over the ratings that human raters gave.
        """
        from dialometer.cli.console import results
        from dialometer.learned.store_in_study import read_scores, store_judge

        n = store_judge(folder, name, read_scores(scores), criterion=criterion, database=database)
        if as_json:
            typer.echo(json.dumps({"name": name, "n_judgments": n}))
        else:
            results.print(
                f"{n} judgments of {name} stored; 'dialometer report {folder}' compares them with human raters."
            )
