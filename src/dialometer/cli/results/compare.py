"""dialometer compare: the same strategies tried by two methods, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.options import AsJson

OUT_FOLDER = Path("comparison")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="compare", epilog="Example: dialometer compare transcripts oz --out comparison --wizard-pay 18")
    def compare(
        first: Folder,
        second: Folder,
        out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to.")] = OUT_FOLDER,
        wizard_pay: Annotated[
            float | None,
            typer.Option("--wizard-pay", min=0, help="Pay of a wizard per hour; as the study's raters by default."),
        ] = None,
        formats: Annotated[
            list[str] | None,
            typer.Option(
                "--format",
                help="html, markdown, json, csv, latex or figures; all by default. Repeat for more.",
                show_default=False,
            ),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Compare two studies that try the same strategies by different methods: results, minutes and cost.

        A study of controlled transcript pairs, and one of live conversations with or without a wizard, whose blocks (strategies) have
        the same names, such as those of the templates strategies and wizard.
        """
        from dialometer.analysis.base.data import load_data
        from dialometer.analysis.base.family import Options
        from dialometer.analysis.families.common.methods import compare_methods
        from dialometer.cli.options import open_store, open_study
        from dialometer.cli.results.report import print_result, show_steps
        from dialometer.report import FORMATS, render

        for name in formats or ():
            FORMATS.get(name)
        loaded = []
        with show_steps() as step:
            step("Analysing")
            for folder in (first, second):
                study = open_study(folder)
                with open_store(folder, "", create=False) as store:
                    loaded.append(load_data(study, store))
            options = Options.declared(loaded[0].study)
            report = compare_methods(loaded, options, helper_pay_per_hour=wizard_pay)
            step("Writing")
            files = render(report, out, formats=formats or None)
        print_result(report, out, files, as_json=as_json)
