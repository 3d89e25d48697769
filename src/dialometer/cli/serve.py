"""dialometer serve: raters take part in a study with their browsers, programs by JSON."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli._study import DATABASE_FILE, Database, StudyDir, open_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dialometer.model.study import Study
    from dialometer.web.settings import Settings

SERVING_FILE = ".serving.json"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="serve", epilog="Example: dialometer serve my-study --port 8000")
    def serve_(
        folder: StudyDir,
        host: Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
        database: Database = "",
        workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that answer.")] = 1,
        root_path: Annotated[
            str, typer.Option("--root-path", help="Path under which a proxy shows the study, such as /films.")
        ] = "",
        proxy_headers: Annotated[
            bool, typer.Option("--proxy-headers/--no-proxy-headers", help="Believe a proxy's X-Forwarded headers.")
        ] = True,
        forwarded_allow_ips: Annotated[
            str, typer.Option("--forwarded-allow-ips", help="Addresses of proxies to believe, with commas; * for all.")
        ] = "127.0.0.1",
        frame_ancestors: Annotated[
            list[str] | None,
            typer.Option("--frame-ancestors", help="Origin of a platform that shows the pages inside its own."),
        ] = None,
        arrivals_per_minute: Annotated[
            int, typer.Option("--arrivals-per-minute", min=0, help="New raters from one address; 0 for no limit.")
        ] = 60,
        api_key: Annotated[
            str, typer.Option("--api-key", envvar="DIALOMETER_API_KEY", help="Key for programs; a new one by default.")
        ] = "",
        log_level: Annotated[
            str, typer.Option("--log-level", help="debug, info (every request), warning or error.")
        ] = "info",
    ) -> None:
        """Serve a study: raters answer in their browsers, programs through the JSON API under /api/v1.

        What a rater sends is on disk before it is acknowledged. Stop with Ctrl+C: requests under way are finished.
        """
        from dialometer.errors import DialometerError
        from dialometer.web.server import Listening, address_of, bind, check_processes, new_key, serve
        from dialometer.web.settings import Settings
        from dialometer.web.turns import TurnTakingStore
        from dialometer.web.wizard import has_wizard

        if log_level not in ("debug", "info", "warning", "error"):
            raise DialometerError(f"'{log_level}' is no log level", remedy="debug, info, warning or error")
        study = open_study(folder)
        target = database or folder / DATABASE_FILE
        settings = Settings(
            root_path=_clean_root(root_path),
            api_key=api_key or new_key(),
            wizard_key=new_key() if has_wizard(study) else "",
            frame_ancestors=tuple(frame_ancestors or ()),
            arrivals_per_minute=arrivals_per_minute,
        )
        listening = Listening(host, port, workers, proxy_headers, forwarded_allow_ips, log_level)
        check_processes(study, workers)
        TurnTakingStore.open(target).close()  # creates or upgrades the tables before any process needs them
        sock = bind(listening)
        address = address_of(sock, settings.root_path)
        with _left_word(folder, address, settings):
            _tell(study, address, settings)
            serve(study, folder, target, listening, settings, sock)


def _clean_root(path: str) -> str:
    from dialometer.errors import DialometerError

    clean = path.strip().rstrip("/")
    if clean and (not clean.startswith("/") or any(not part.isprintable() or part in ' ;,\\"' for part in clean)):
        raise DialometerError(f"'{path}' is no path", remedy="such as --root-path /films")
    return clean


def _tell(study: Study, address: str, settings: Settings) -> None:
    from dialometer.cli._console import results

    results.print(f"[bold]{study.spec.title}[/]")
    results.print(f"Raters open   [bold]{address}[/]", soft_wrap=True)
    if settings.wizard_key:
        results.print(f"Wizards open  [bold]{address}wizard?key={settings.wizard_key}[/]", soft_wrap=True)
    results.print(f"Programs use  {address}api/v1 (key in {SERVING_FILE} in the study's folder)", soft_wrap=True)
    results.file.flush()


@contextmanager
def _left_word(folder: Path, address: str, settings: Settings) -> Iterator[None]:
    """Leaves the address and the key beside the study, readable only by its owner, for programs on this machine."""
    file = folder / SERVING_FILE
    content = json.dumps({"url": address, "api_key": settings.api_key, "pid": os.getpid()}) + "\n"
    try:
        file.unlink(missing_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:  # noqa: PTH123
            opened.write(content)
    except OSError as error:
        from dialometer.cli._console import errors

        errors.print(f"cannot write {file} ({error.strerror}); give programs a key with --api-key")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
