"""dialometer demo: a running study, a dashboard and finished reports, from nothing."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

FOLDER_PREFIX = "dialometer-demo-"
N_LIVE_RATERS = 200
SESSION_MS = 25 * 60_000
"""Longer than any session: a simulated rater who began this long ago has finished."""
N_EARLIER, EARLIER_APART_MS = 12, 5 * 60_000
"""Raters of the last hour, so that the dashboard shows data at once."""
PAUSE_S = 4.0
"""Between the following simulated raters: slow enough to watch."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="demo", epilog="Example: dialometer demo")
    def demo(
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the pages in a browser.")] = True,
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for a free one.")] = 0,
        keep: Annotated[
            Path | None, typer.Option("--keep", help="Write into this new folder and leave it there.")
        ] = None,
        once: Annotated[bool, typer.Option("--once", help="Make the reports, leave them there, and end.")] = False,
    ) -> None:
        """Show dialometer at work: a study to take part in, a dashboard that fills, and four reports.

        Everything is in a temporary folder, which is removed when Ctrl+C ends the demo; --once leaves it.
        """
        # SIGTERM ends like Ctrl+C, so that the temporary folder is removed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        run = _make_all if once else _serve
        if keep is not None:
            keep.mkdir(parents=True)
        elif once:
            keep = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        if keep is not None:
            run(keep, port, is_opened=browser)
            return
        with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as folder:
            run(Path(folder), port, is_opened=browser)


def _make_all(folder: Path, _port: int, *, is_opened: bool) -> None:
    """All reports, one after the other, and a page that links them."""
    from dialometer.cli.console import results
    from dialometer.cli.demo._page import home_page
    from dialometer.cli.demo._studies import DEMO_REPORTS, ReportMaker, report_page
    from dialometer.errors import DialometerError

    maker = ReportMaker(folder)
    for line in DEMO_REPORTS:
        with results.status(f"{line.title} …"):
            maker.make(line)
        if line.name in maker.failed:
            raise DialometerError(f"{line.title}: {maker.failed[line.name]}")
        results.print(f"[green]✓[/] {line.title}", soft_wrap=True)
    index = folder / "index.html"
    links = {line.name: report_page(line, folder).parent.relative_to(folder).as_posix() for line in DEMO_REPORTS}
    index.write_text(home_page(lambda line: links[line.name], {}), encoding="utf-8")
    results.print(f"\nThe reports start at {index}", soft_wrap=True)
    if is_opened and results.is_terminal:
        webbrowser.open(index.resolve().as_uri())


def _serve(folder: Path, port: int, *, is_opened: bool) -> None:
    """Serves the page at once; reports and raters appear while it is open."""
    from dialometer.cli.console import results
    from dialometer.cli.demo._page import DASHBOARD_LOGIN, DemoApp
    from dialometer.cli.demo._studies import CHAT, LIVE, LIVE_TEMPLATE, STUDIES, ReportMaker, add_chat
    from dialometer.design.templates import copy_template
    from dialometer.web.dashboard.live_report import REPORT_FORMATS
    from dialometer.web.dashboard.running_studies import StudyFolders
    from dialometer.web.run import Listening, address_of, bind, new_key, open_server, serve_app
    from dialometer.web.server.settings import Settings

    running = folder / STUDIES / LIVE
    running.parent.mkdir()
    copy_template(LIVE_TEMPLATE, running)
    has_chat = add_chat(folder / STUDIES / CHAT)
    listening = Listening("127.0.0.1", port, log_level="error")
    settings = Settings(api_key=new_key())
    report = (sys.executable, "-m", "dialometer", "report", "{folder}", "--database", "{database}", "--out", "{out}")
    everybody = ("--source", "person", "--source", "simulated")
    command = (*report, *everybody, *REPORT_FORMATS, "--resamples", "200")
    served = (str(running), *([str(folder / STUDIES / CHAT)] if has_chat else []))
    server = open_server(StudyFolders(served, str(folder / STUDIES), "", "", command), settings)
    maker = ReportMaker(folder)
    app = DemoApp(server, maker, has_chat=has_chat)
    sock = bind(listening)
    address = address_of(sock, "")
    results.print(f"All of it      [bold]{address}[/]", soft_wrap=True)
    results.print(f"A study        [bold]{address}{LIVE}/[/]  to take part in", soft_wrap=True)
    results.print(
        f"Its dashboard  [bold]{address}{DASHBOARD_LOGIN[1:]}[/]  fills with simulated raters", soft_wrap=True
    )
    if has_chat:
        results.print(f"A live chat    [bold]{address}{CHAT}/[/]  with a small language model", soft_wrap=True)
    results.print("Four reports are being made meanwhile. Ctrl+C ends the demo and removes its folder.")
    results.file.flush()
    # Half of the machine, so that the pages stay quick.
    maker.make_all_in_background(max(1, (os.cpu_count() or 2) // 2))
    arriving = (running, f"{address}{LIVE}/", settings.api_key)
    threading.Thread(target=_send_raters, args=arriving, daemon=True).start()
    if is_opened:
        webbrowser.open(address)
    try:
        serve_app(app, listening, sock)
    except KeyboardInterrupt:
        results.print("\nThe demo has ended.")
    finally:
        maker.stop()


def _send_raters(folder: Path, url: str, api_key: str) -> None:
    """Simulated raters, one after the other, through the same interface as every program."""
    from dialometer.design.load import load_study
    from dialometer.errors import DialometerError
    from dialometer.flow.engine import now_ms
    from dialometer.simulate.run import simulate
    from dialometer.simulate.server_client import ServerClient
    from dialometer.simulate.truth import draw_truth

    study = load_study(folder)
    truth = draw_truth(study, 1)
    time.sleep(1.0)
    for number in range(1, N_LIVE_RATERS + 1):
        try:
            with ServerClient(url, api_key) as client:
                # Their clock is their own: a session of some minutes that has ended.
                n_before = max(0, N_EARLIER - number)
                start_ms = now_ms() - SESSION_MS - n_before * EARLIER_APART_MS
                simulate(study, client, truth, n_raters=1, seed=number, start_ms=start_ms)
        except (DialometerError, OSError):
            return  # the study was paused, or the demo has ended
        if number >= N_EARLIER:
            time.sleep(PAUSE_S)
