"""dialometer translate: what is translated of a study, and translators' files out and in."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, StudyDir

if TYPE_CHECKING:
    from dialometer.model.study import Study

MOST_SHOWN = 60
"""Characters of a text in the list."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="translate", epilog="Example: dialometer translate my-study --language de --export de.xlf")
    def translate(
        folder: StudyDir,
        language: Annotated[
            str, typer.Option("--language", "-l", help="One of the languages of the study; all of them by default.")
        ] = "",
        export: Annotated[
            Path | None,
            typer.Option(
                "--export", help="Write all texts for a translator: .po, or .xlf for XLIFF 1.2.", show_default=False
            ),
        ] = None,
        import_: Annotated[
            Path | None,
            typer.Option(
                "--import", help="Read the file that a translator sent back: .po or .xlf.", show_default=False
            ),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Show which texts of a study are translated, missing or out of date; write files for translators and read them back.

        The languages are in study.yaml (languages: [en, de], the first is the one the texts are written in). Translations
        are in translations.de.yaml beside it.
        """
        from dialometer.design.translations import check_language
        from dialometer.errors import DialometerError
        from dialometer.flow.study_check import check_all, without_errors

        study = without_errors(*check_all(folder))
        into = [language] if language else study.spec.languages[1:]
        if not into:
            raise DialometerError(
                "the study has one language", remedy="name its languages in study.yaml, such as 'languages: [en, de]'"
            )
        check_language(study, into[0])
        if (export is not None or import_ is not None) and len(into) > 1:
            raise DialometerError("a translator's file is for one language", remedy="add --language")
        if export is not None:
            _export(study, into[0], export)
            log_action(folder, "", "exported translations", f"{into[0]}: {export.name}")
        if import_ is not None:
            _import(study, folder, into[0], import_)
            log_action(folder, "", "imported translations", f"{into[0]}: {import_.name}")
        if export is None and import_ is None:
            _print_result(study, into, as_json=as_json, lists=bool(language))


def _export(study: Study, language: str, path: Path) -> None:
    from dialometer.cli.console import results
    from dialometer.exchange.translators.units import for_translators, format_of

    path.write_text(for_translators(study, language, format_of(path.name)), encoding="utf-8")
    results.print(
        f"Wrote {path}. Send it to the translator, then: dialometer translate … --language {language} --import {path}"
    )


def _import(study: Study, folder: Path, language: str, path: Path) -> None:
    from dialometer.cli.console import results
    from dialometer.design.versions import Versions, refuse_frozen
    from dialometer.exchange.translators.units import file_content, take_over
    from dialometer.model.study import translation_file

    refuse_frozen(folder)
    taken = take_over(study, language, path.name, path.read_bytes())
    Versions(folder).save(
        translation_file(language), file_content(study, language, taken), "command line", time.time_ns() // 1_000_000
    )
    results.print(f"{translation_file(language)}: {taken.in_words}.")
    for key in taken.unknown[:10]:
        results.print(f"  the study has no text {key}")


def _print_result(study: Study, languages: list[str], *, as_json: bool, lists: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.design.translations import translated_texts

    by_language = {language: translated_texts(study, language) for language in languages}
    if as_json:
        summary = {
            language: [
                {"key": text.key, "state": text.state, "source": text.source, "text": text.text} for text in texts
            ]
            for language, texts in by_language.items()
        }
        typer.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        return
    for language, texts in by_language.items():
        n = {state: sum(text.state == state for text in texts) for state in ("done", "missing", "outdated")}
        results.print(
            f"[bold]{language}[/]: {n['done']} of {len(texts)} texts translated, {n['missing']} missing, "
            f"{n['outdated']} out of date"
        )
        for text in texts if lists else ():
            if text.state != "done":
                words = " ".join(text.source.split())
                shown = words if len(words) <= MOST_SHOWN else words[: MOST_SHOWN - 1] + "…"
                label = "missing" if text.state == "missing" else "out of date"
                results.print(f"  {label}: {escape(text.key)}: {escape(shown)}", soft_wrap=True)
    if not lists:
        results.print("List the texts with --language; write them for a translator with --export.")
