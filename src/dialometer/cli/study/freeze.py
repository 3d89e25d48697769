"""dialometer freeze: write the lock of a study before data are collected."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, StudyDir


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="freeze", epilog="Example: dialometer freeze my-study")
    def freeze_(
        folder: StudyDir,
        new_version: Annotated[bool, typer.Option("--new-version", help="The study was changed on purpose.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Freeze a study: later changes to design, items, texts, analysis or seed are refused, unless you make a new version."""
        from rich.markup import escape

        from dialometer.cli.console import results
        from dialometer.design.lock import LOCK_FILE, freeze
        from dialometer.flow.study_check import check_all, without_errors
        from dialometer.model.study import translation_file

        study, problems = check_all(folder)
        study = without_errors(study, problems)
        version = freeze(study, folder, datetime.now(UTC), is_new_version=new_version)
        log_action(folder, "", "froze the study", f"version {version['version']}, {version['fingerprint'][:12]}")
        if as_json:
            lock = {key: version[key] for key in ("version", "frozen_at", "fingerprint")}
            typer.echo(json.dumps({"study": study.spec.name, **lock, "lock": str(folder / LOCK_FILE)}))
            return
        results.print(f"[bold]{folder}[/]: version {version['version']} frozen, {version['frozen_at']}")
        results.print(f"fingerprint {version['fingerprint']}")
        for problem in problems:
            if problem.file in map(translation_file, study.spec.languages):
                results.print(f"[yellow]warning:[/] {escape(problem.message)}", soft_wrap=True)
        results.print(f"The lock is {folder / LOCK_FILE}; keep it with the study.")
