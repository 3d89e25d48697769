"""dialometer demo: finished reports and a running study, from nothing, in a folder that is removed again."""

from __future__ import annotations

import html
import signal
import sys
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli._study import DATABASE_FILE


@dataclass(frozen=True)
class Shown:
    """A study of the demo: its template and the number of simulated raters."""

    template: str
    n_raters: int
    about: str


STUDIES = (
    Shown("strategies", 60, "Controlled transcript pairs: which interaction strategy do people prefer?"),
    Shown("anchoring", 40, "A bias audit: do a shown number and a standard response pull ratings?"),
    Shown("acute", 24, "A leaderboard of four chatbots from pairwise choices."),
    Shown("avatar", 30, "Retrieved answers judged by a crowd."),
)
N_RESAMPLES = 400  # enough for a demonstration; reports of real studies use what the study declares


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="demo", epilog="Example: dialometer demo")
    def demo(
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the pages in a browser.")] = True,
        port: Annotated[
            int, typer.Option("--port", min=0, max=65535, help="Port of the running study; 0 for a free one.")
        ] = 0,
        keep: Annotated[
            Path | None, typer.Option("--keep", help="Write into this new folder and leave it there.")
        ] = None,
        once: Annotated[bool, typer.Option("--once", help="Make the reports and end without serving.")] = False,
    ) -> None:
        """Show dialometer at work: studies with simulated raters, their reports, and one to take part in yourself.

        Everything lies in a temporary folder; Ctrl+C ends the demo and leaves nothing behind.
        """
        # A polite request to end is like Ctrl+C: the temporary folder goes with it.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        if keep is not None:
            keep.mkdir(parents=True)
            _run(keep, port, is_opened=browser, is_served=not once)
            return
        with tempfile.TemporaryDirectory(prefix="dialometer-demo-") as folder:
            _run(Path(folder), port, is_opened=browser, is_served=not once)


def _run(folder: Path, port: int, *, is_opened: bool, is_served: bool) -> None:
    from dialometer.cli._console import results

    made = []
    for shown in STUDIES:
        with results.status(f"{shown.template}: {shown.n_raters} simulated raters, then the report …"):
            made.append((shown, _make(folder / shown.template, shown)))
        results.print(f"[green]✓[/] {shown.template}: {made[-1][1]}", soft_wrap=True)
    if not is_served:
        _write_index(folder, made, "")
        results.print(f"\nThe reports start at {folder / 'index.html'}", soft_wrap=True)
        return
    _serve(folder, made, port, is_opened=is_opened)


def _make(folder: Path, shown: Shown) -> str:
    """A study with its raters and report; returns the report's answer."""
    from dialometer.analysis.choose import analyse
    from dialometer.design.load import load_study
    from dialometer.design.templates import copy_template
    from dialometer.flow.engine import Flow, now_ms
    from dialometer.flow.simulated import EngineDoor
    from dialometer.report import render
    from dialometer.simulate.run import simulate
    from dialometer.simulate.truth import draw_truth
    from dialometer.storage.store import Store

    copy_template(shown.template, folder)
    study = load_study(folder)
    with Store.open(folder / DATABASE_FILE) as store:
        flow = Flow(study, store)
        simulate(study, EngineDoor(flow), draw_truth(study, 1), n_raters=shown.n_raters, seed=1, start_ms=now_ms())
        report = analyse(study, store, n_resamples=N_RESAMPLES)
    render(report, folder / "report", formats=["html"])
    return report.summary.answer


def _serve(folder: Path, made: list[tuple[Shown, str]], port: int, *, is_opened: bool) -> None:
    from dialometer.cli._console import results
    from dialometer.web.desk.shelf import Shelf
    from dialometer.web.server import Listening, address_of, bind, new_key, serve
    from dialometer.web.settings import Settings

    running = folder / STUDIES[0].template
    listening = Listening("127.0.0.1", port, 1, True, "127.0.0.1", "error")
    sock = bind(listening)
    address = address_of(sock, "")
    index = _write_index(folder, made, address)
    results.print(f"\nAll of it:             [bold]{index.as_uri()}[/]", soft_wrap=True)
    results.print(f"Take part in a study:  [bold]{address}[/]", soft_wrap=True)
    results.print("Ctrl+C ends the demo and removes its folder.")
    results.file.flush()
    if is_opened:
        webbrowser.open(index.as_uri())
    serve(Shelf((str(running),)), listening, Settings(api_key=new_key()), sock)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>dialometer demo</title>
<style>
:root {{ color-scheme: light dark; font: 17px/1.55 system-ui, sans-serif; }}
body {{ max-width: 46rem; margin: 3rem auto; padding: 0 1.2rem; }}
h1 {{ font-size: 1.7rem; margin-bottom: .3rem; }}
article {{ border: 1px solid color-mix(in srgb, currentColor 22%, transparent); border-radius: 10px; }}
article {{ padding: .9rem 1.2rem; margin: 1rem 0; }}
h2 {{ font-size: 1.1rem; margin: 0 0 .3rem; }} p {{ margin: .3rem 0; }} code {{ font-size: .85rem; opacity: .85; }}
a {{ color: light-dark(#1d5ea3, #7fb6f0); }}
</style></head><body>
<h1>dialometer at work</h1>
<p>Studies from the templates, answered by simulated raters with known truth, reported as real ones would be.</p>
{articles}
</body></html>
"""


def _write_index(folder: Path, made: list[tuple[Shown, str]], address: str) -> Path:
    articles = []
    if address:
        link = f'<h2><a href="{address}">Take part in a running study</a></h2>'
        articles.append(f"<article>{link}<p>The pages as a rater sees them.</p></article>")
    for shown, answer in made:
        commands = f"dialometer new {shown.template} s && dialometer simulate s --raters {shown.n_raters} && dialometer report s"
        articles.append(
            f'<article><h2><a href="{shown.template}/report/index.html">{html.escape(shown.about)}</a></h2>'
            f"<p>{html.escape(answer)}</p><p><code>{html.escape(commands)}</code></p></article>"
        )
    path = folder / "index.html"
    path.write_text(_PAGE.format(articles="\n".join(articles)), encoding="utf-8")
    return path
