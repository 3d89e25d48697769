"""dialometer serve: raters take part in studies with their browsers, programs by JSON, experimenters watch."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import Database, open_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dialometer.agents.access import AgentAccess
    from dialometer.model.study import Study
    from dialometer.web.dashboard.running_studies import StudyFolders
    from dialometer.web.server.settings import Settings


SERVING_FILE = ".serving.json"
N_RESAMPLES = 500
"""Of the results that the dashboard shows while data come in; the report at the end takes what the study declares."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="serve", epilog="Examples: dialometer serve my-study --port 8000; dialometer serve all-my-studies"
    )
    def serve_(
        folders: Annotated[
            list[Path],
            typer.Argument(metavar="DIR", help="A study, several, or the folder that holds them.", show_default=False),
        ],
        host: Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
        database: Database = "",
        workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that answer.")] = 1,
        root_path: Annotated[
            str, typer.Option("--root-path", help="Path under which a proxy shows the study, such as /films.")
        ] = "",
        proxy_headers: Annotated[
            bool, typer.Option("--proxy-headers/--no-proxy-headers", help="Trust a proxy's X-Forwarded headers.")
        ] = True,
        forwarded_allow_ips: Annotated[
            str, typer.Option("--forwarded-allow-ips", help="Addresses of proxies to trust, with commas; * for all.")
        ] = "127.0.0.1",
        frame_ancestors: Annotated[
            list[str] | None,
            typer.Option("--frame-ancestors", help="Origin of a platform that shows the pages inside its own."),
        ] = None,
        arrivals_per_minute: Annotated[
            int, typer.Option("--arrivals-per-minute", min=0, help="New raters from one address; 0 for no limit.")
        ] = 60,
        starts_per_minute: Annotated[
            int, typer.Option("--starts-per-minute", min=0, help="New raters of one study in all; 0 for no limit.")
        ] = 300,
        max_connections: Annotated[
            int, typer.Option("--max-connections", min=10, help="Open connections of one process.")
        ] = 4_000,
        connections_per_address: Annotated[
            int, typer.Option("--connections-per-address", min=1, help="Open connections of one client.")
        ] = 256,
        header_time: Annotated[
            float, typer.Option("--header-time", min=1, help="Seconds for the header of a request.")
        ] = 15.0,
        body_time: Annotated[
            float, typer.Option("--body-time", min=1, help="Seconds for its body; large bodies get more.")
        ] = 30.0,
        idle_time: Annotated[
            int, typer.Option("--idle-time", min=1, help="Seconds that a connection without requests is kept.")
        ] = 65,
        api_key: Annotated[
            str, typer.Option("--api-key", envvar="DIALOMETER_API_KEY", help="Key for programs; a new one by default.")
        ] = "",
        wizard_key: Annotated[
            str,
            typer.Option(
                "--wizard-key",
                envvar="DIALOMETER_WIZARD_KEY",
                help="Key for people who answer in place of an agent; a new one by default.",
                show_default=False,
            ),
        ] = "",
        accounts: Annotated[
            str, typer.Option("--accounts", help="Database of the dashboard's accounts; by default beside the studies.")
        ] = "",
        owner_link: Annotated[
            bool, typer.Option("--owner-link", help="Print a link for a new owner although there are accounts.")
        ] = False,
        start_empty: Annotated[
            bool,
            typer.Option(
                "--start-empty",
                help="Start with an empty database although answers were collected here and are gone now.",
            ),
        ] = False,
        agent_variables: Annotated[
            list[str] | None,
            typer.Option(
                "--agent-variable",
                metavar="NAME[@HOST]",
                envvar="DIALOMETER_AGENT_VARIABLES",
                help="Environment variable that agents may send, to HOST alone if named; repeat for more.",
            ),
        ] = None,
        agent_addresses: Annotated[
            list[str] | None,
            typer.Option(
                "--agent-address",
                metavar="HOST[:PORT]",
                envvar="DIALOMETER_AGENT_ADDRESSES",
                help="Address or network that agents may call although it is not public; repeat for more.",
            ),
        ] = None,
        agent_folders: Annotated[
            list[Path] | None,
            typer.Option(
                "--agent-folder",
                metavar="DIR",
                envvar="DIALOMETER_AGENT_FOLDERS",
                help="Folder from which agents may load trained models; repeat for more.",
            ),
        ] = None,
        oidc_issuer: Annotated[
            str,
            typer.Option(
                "--oidc-issuer",
                metavar="URL",
                envvar="DIALOMETER_OIDC_ISSUER",
                help="Provider of OpenID Connect where experimenters may sign in.",
                show_default=False,
            ),
        ] = "",
        oidc_client: Annotated[
            str,
            typer.Option(
                "--oidc-client",
                metavar="ID",
                envvar="DIALOMETER_OIDC_CLIENT",
                help="This server's id at the provider; the secret is read from DIALOMETER_OIDC_SECRET.",
                show_default=False,
            ),
        ] = "",
        oidc_allow: Annotated[
            list[str] | None,
            typer.Option(
                "--oidc-allow",
                metavar="ADDRESS|@DOMAIN",
                envvar="DIALOMETER_OIDC_ALLOW",
                help="Who may sign in there: an e-mail address, or a whole domain such as @example.org; repeat for more.",
            ),
        ] = None,
        oidc_role: Annotated[
            str,
            typer.Option(
                "--oidc-role",
                envvar="DIALOMETER_OIDC_ROLE",
                help="What a new account of the provider may do: guest, viewer, editor or owner.",
            ),
        ] = "guest",
        oidc_label: Annotated[
            str,
            typer.Option(
                "--oidc-label",
                envvar="DIALOMETER_OIDC_LABEL",
                help="Name of the provider on the login page; its host by default.",
                show_default=False,
            ),
        ] = "",
        log_level: Annotated[
            str,
            typer.Option(
                "--log-level",
                help="debug, info (every request), warning or error; by default info, on a terminal warning.",
                show_default=False,
            ),
        ] = "",
    ) -> None:
        """Serve studies: raters answer in their browsers, programs through the JSON API, experimenters at /dashboard.

        Every acknowledged answer is on disk. Stop with Ctrl+C: requests under way are finished.
        SIGHUP replaces the processes one by one, without a refused connection, so that they use an updated program.
        """
        from dialometer.errors import DialometerError
        from dialometer.web.run import DRAIN_S, Listening, address_of, bind, check_processes, new_key, serve
        from dialometer.web.server.connections import ConnectionLimits
        from dialometer.web.server.provider_settings import ProviderSettings
        from dialometer.web.server.settings import Settings

        log_level = log_level or ("warning" if sys.stderr.isatty() else "info")
        if log_level not in ("debug", "info", "warning", "error"):
            raise DialometerError(f"'{log_level}' is not a log level", remedy="debug, info, warning or error")
        study_folders = _study_folders(folders, database, accounts)
        agents = _agent_access(study_folders, agent_variables, agent_addresses, agent_folders)
        studies = {
            name: open_study(study_folders.folder(name), agents)
            for name in study_folders.names()
            if study_folders.is_named(name)
        }
        check_processes(workers)
        provider = ProviderSettings.checked(oidc_issuer, oidc_client, oidc_allow or (), oidc_role, oidc_label)
        if provider is not None:
            _need_provider_library()
        settings = Settings(
            root_path=_clean_root(root_path),
            api_key=api_key or new_key(),
            wizard_key=_wizard_key(wizard_key, study_folders, studies),
            frame_ancestors=tuple(frame_ancestors or ()),
            arrivals_per_minute=arrivals_per_minute,
            starts_per_minute=starts_per_minute,
            agents=agents,
            provider=provider,
        )
        limits = ConnectionLimits(
            connections=max_connections,
            per_address=connections_per_address,
            header_s=header_time,
            body_s=body_time,
            idle_s=idle_time,
            drain_s=DRAIN_S if "LISTEN_FDS" in os.environ else 0.0,
        )
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
        listening = Listening(
            host, port, workers, proxy_headers, forwarded_allow_ips, log_level, limits, may_reload=not is_terminal
        )
        sock = bind(listening)
        try:
            token = _prepare(study_folders, is_asked=owner_link, starts_empty=start_empty)
        except BaseException:
            sock.close()
            raise
        address = address_of(sock, settings.root_path)
        with ExitStack() as stack:
            places = {
                study_folders.folder(name): _address(study_folders, address, name) for name in study_folders.names()
            }
            if study_folders.parent:
                places[Path(study_folders.parent)] = address
            for folder, own_address in places.items():
                stack.enter_context(_left_word(folder, own_address, settings))
            _print_addresses(study_folders, studies, address, settings, token)
            serve(study_folders, listening, settings, sock)


def _need_provider_library() -> None:
    """Fails now, not at the first sign-in, where the library is missing."""
    from importlib.util import find_spec

    from dialometer.errors import DialometerError

    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise DialometerError(
            "signing in at a provider needs the library PyJWT", remedy="pip install 'dialometer[oidc]'"
        )


def _study_folders(folders: list[Path], database: str, accounts: str) -> StudyFolders:
    """What the folders are: one study, several of them, or the folder that holds them."""
    from dialometer.errors import DialometerError
    from dialometer.model.file_names import STUDY_FILE
    from dialometer.web.dashboard.live_report import REPORT_FORMATS
    from dialometer.web.dashboard.running_studies import ACCOUNTS_FILES, RESERVED, StudyFolders, is_name

    low = ("nice", "-n", "10") if shutil.which("nice") else ()
    report = (sys.executable, "-m", "dialometer", "report", "{folder}", "--out", "{out}")
    command = (*low, *report, *REPORT_FORMATS, "--resamples", str(N_RESAMPLES))
    only = folders[0]
    if len(folders) == 1 and only.is_dir() and not (only / STUDY_FILE).exists():
        inside = [path for path in only.iterdir() if not path.name.startswith(".")]
        if (
            not inside
            or any((only / name).exists() for name in ACCOUNTS_FILES)
            or any((path / STUDY_FILE).is_file() for path in inside)
        ):
            _check_database(database, is_single=False)
            return StudyFolders((), str(only.resolve()), database, accounts, command)
    names = [folder.resolve().name for folder in folders]
    if len(folders) > 1:
        wrong = [name for name in names if not is_name(name) or name.lower() in RESERVED or names.count(name) > 1]
        if wrong:
            raise DialometerError(
                f"'{wrong[0]}' cannot name one of several studies",
                remedy="give each folder a name of its own: a letter first, then letters, digits, - and _",
            )
    _check_database(database, is_single=len(folders) == 1)
    return StudyFolders(tuple(str(folder) for folder in folders), "", database, accounts, command)


def _agent_access(
    study_folders: StudyFolders, variables: list[str] | None, addresses: list[str] | None, folders: list[Path] | None
) -> AgentAccess:
    """What agents may use: everything where studies are named, only what is listed where they can be edited."""
    from dialometer.agents.access import AgentAccess, listed

    by_default = AgentAccess.of_environment(is_editable=study_folders.may_grow)
    return AgentAccess(
        listed(variables) or by_default.variables,
        listed(addresses) or by_default.addresses,
        tuple(map(str, folders or ())) or by_default.folders,
    )


def _check_database(database: str, *, is_single: bool) -> None:
    from dialometer.errors import DialometerError

    if database and not is_single and "{study}" not in database:
        raise DialometerError(
            "several studies cannot share one database",
            remedy="put {study} into its address, such as postgresql:///{study}",
        )


def _prepare(study_folders: StudyFolders, *, is_asked: bool, starts_empty: bool) -> str:
    """Creates or upgrades the tables before any process needs them; gives the token for a first owner, if one is due.

    A database that lacks what was acknowledged before is refused here, before the server says that it is ready.
    """
    from datetime import UTC, datetime

    from dialometer.cli.audit import command_line_user
    from dialometer.flow.engine import now_ms
    from dialometer.storage.access.audit_log import AuditLog
    from dialometer.storage.safety.start import refuse_foreign_log, refuse_lost_answers, start_empty
    from dialometer.web.dashboard.login import first_owner_token
    from dialometer.web.server.turns import TurnTakingStore

    for name in study_folders.names():
        if not study_folders.is_named(name):
            continue
        folder, target = study_folders.folder(name), study_folders.database_of(name)
        if isinstance(target, Path):
            refuse_foreign_log(target)
        with TurnTakingStore.open(target) as store:
            if starts_empty:
                start_empty(folder, store.database, datetime.now(UTC))
            refuse_lost_answers(folder, store.database)
    store = TurnTakingStore.open(study_folders.accounts_database())
    try:
        token = first_owner_token(store.accounts, is_asked=is_asked)
        if token:
            AuditLog(store.database).add(command_line_user(), "invited", "owner", now_ms())
        return token
    finally:
        store.close()


def _address(study_folders: StudyFolders, address: str, name: str) -> str:
    return address if study_folders.is_single else f"{address}{name}/"


def _clean_root(path: str) -> str:
    from dialometer.errors import DialometerError

    clean = path.strip().rstrip("/")
    if clean and (not clean.startswith("/") or any(not part.isprintable() or part in ' ;,\\"' for part in clean)):
        raise DialometerError(f"'{path}' is not a path", remedy="such as --root-path /films")
    return clean


def _wizard_key(key: str, study_folders: StudyFolders, studies: dict[str, Study]) -> str:
    """The key of the wizards' console; none where no study has one."""
    from dialometer.web.rater.wizard import has_wizard
    from dialometer.web.run import new_key

    needs_key = bool(study_folders.parent) or any(map(has_wizard, studies.values()))
    return (key or new_key()) if needs_key else ""


def _print_addresses(
    study_folders: StudyFolders, studies: dict[str, Study], address: str, settings: Settings, token: str
) -> None:
    from dialometer.cli.console import results
    from dialometer.web.rater.wizard import has_wizard

    for name, study in studies.items():
        own = _address(study_folders, address, name)
        results.print(f"[bold]{study.spec.title}[/]")
        results.print(f"Raters open   [bold]{own}[/]", soft_wrap=True)
        if has_wizard(study):
            results.print(f"Wizards open  [bold]{own}wizard?key={settings.wizard_key}[/]", soft_wrap=True)
        results.print(f"Programs use  {own}api/v1 (key in {SERVING_FILE})", soft_wrap=True)
    if study_folders.parent:
        n = len(study_folders.names())
        results.print(f"[bold]{n} {'study' if n == 1 else 'studies'}[/] in {study_folders.parent}", soft_wrap=True)
        results.print(f"Raters open   {address}NAME/ once a study is started at the dashboard", soft_wrap=True)
        results.print(f"Programs use  {address}NAME/api/v1 (key in {SERVING_FILE} there)", soft_wrap=True)
    results.print(f"Dashboard     [bold]{address}dashboard/[/]", soft_wrap=True)
    if token:
        results.print(f"First owner   [bold]{address}dashboard/join?token={token}[/] (works once)", soft_wrap=True)
    if results.is_terminal:
        results.print("Stop with Ctrl+C", style="dim")
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
        from dialometer.cli.console import errors

        errors.print(f"cannot write {file} ({error.strerror}); give programs a key with --api-key")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
