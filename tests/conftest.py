"""Databases and a browser for every package's tests: ``database_url`` runs a test on SQLite and again on PostgreSQL."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

import dialometer  # noqa: F401 - before any numerical library, which reads the settings it makes
from chromium import CHROMIUM_ARGS, chromium
from installed_pages import install as install_package

# Commands are tested as on a wide terminal, whichever test is the first to load them in a process.
os.environ["COLUMNS"] = "200"

# As the commands do it: matrices are small, and several threads of linear algebra wait for each other more than they help.
# Two test processes on two cores would take three times the processor's time.
for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(library, "1")


def _quick_folder() -> str | None:
    """Memory instead of disk where there is plenty of it."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30
    return str(memory) if has_room else None


# Every commit of a database waits for the disk, some milliseconds each; what is tested is the process that ends, not the disk.
if (memory := _quick_folder()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)

# How long drawing takes says something about the machine's load, and nothing about what is tested. The same examples every
# time, so that a failure belongs to a change; --hypothesis-profile=search draws new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False)
settings.register_profile("dialometer", settings.get_profile("search"), derandomize=True)
settings.load_profile("dialometer")


def pytest_collection_finish() -> None:
    """What importing made stays for ever: garbage collection need not look at it again after every test."""
    gc.collect()
    gc.freeze()


BACKENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


def _server_account() -> dict[str, Any]:
    """Arguments for subprocess: PostgreSQL refuses to run as root, so root hands it to an account without rights."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _programs(folder: Path, account: dict[str, Any]) -> Path:
    """The folder of PostgreSQL's programs; copied where the account cannot reach the installed ones (under /root, say)."""
    pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed (it holds PostgreSQL for the tests)")
    package = Path(pgserver.__file__).parent
    programs = package / "pginstall" / "bin"
    try:
        subprocess.run([programs / "initdb", "--version"], check=True, capture_output=True, **account)
    except (PermissionError, subprocess.CalledProcessError):
        shutil.copytree(package / "pginstall", folder / "site" / "pgserver" / "pginstall", symlinks=True)
        libraries = package.parent / "pgserver.libs"
        if libraries.exists():
            shutil.copytree(libraries, folder / "site" / "pgserver.libs", symlinks=True)
        programs = folder / "site" / "pgserver" / "pginstall" / "bin"
    return programs


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Callable[[str], str]]:
    """A PostgreSQL server of this test run, reached by socket only; gives the URL of a database by its name."""
    account = _server_account()
    folder = Path(tempfile.mkdtemp(prefix="dialometer-pg-", dir=_quick_folder()))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if account:
        os.chown(data, account["user"], account["group"])

    def call(*command: str | Path) -> None:
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(command, check=False, stdout=output, stderr=output, cwd=data, timeout=300, **account)
            output.seek(0)
            assert done.returncode == 0, f"{command}: {output.read()}"

    try:
        programs = _programs(folder, account)
        call(programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        # The tests kill clients, never the server, so the server need not wait for the disk.
        options = f"-c listen_addresses='' -c unix_socket_directories={data} -c fsync=off -c max_connections=200"
        call(programs / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start")
        try:
            yield lambda name: f"postgresql://postgres@/{name}?host={data}"
        finally:
            call(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _fresh(server: Callable[[str], str], template: str) -> Iterator[str]:
    """A database of its own for one test, copied from a template and dropped afterwards."""
    import psycopg

    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(server("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        yield server(name)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def postgres_url(postgres_server: Callable[[str], str]) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database, dropped after the test."""
    with _fresh(postgres_server, "template1") as url:
        yield url


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database: the path of a SQLite file, then (mark ``postgres``) the URL of a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dialometer.storage import Store

    path = tmp_path_factory.mktemp("template") / "study.db"
    Store.open(path).close()
    return path


@pytest.fixture(scope="session")
def _postgres_template(postgres_server: Callable[[str], str]) -> str:
    import psycopg

    from dialometer.storage import Store

    with psycopg.connect(postgres_server("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE with_tables")
    Store.open(postgres_server("with_tables")).close()
    return "with_tables"


@pytest.fixture(params=BACKENDS)
def study_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """As ``database_url``, with the tables in place already: creating them is what takes the time."""
    if request.param == "sqlite":
        yield str(shutil.copy(request.getfixturevalue("_sqlite_template"), tmp_path / "study.db"))
        return
    template = request.getfixturevalue("_postgres_template")
    with _fresh(request.getfixturevalue("postgres_server"), template) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for the tests of a file; it ends with them, because Playwright keeps an event loop while it runs."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium or Chrome on the PATH: sh scripts/browser.sh says how to get it")
    from playwright.sync_api import expect, sync_playwright

    # A limit only: what is waited for comes in a moment, on a busy machine in several.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        yield opened
        opened.close()


@pytest.fixture
def install_page(tmp_path, monkeypatch):
    """Installs the package that a page of docs/how-to shows, as pip would, and forgets it after the test."""
    installed = []

    def install(page: str, registry: Any) -> None:
        packages = tmp_path / "packages"
        for entries in install_package(page, packages).values():
            assert not set(entries) & set(registry.names())
            installed.extend(entries.values())
        monkeypatch.syspath_prepend(packages)
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))
        monkeypatch.setattr(registry, "_is_loaded", False)

    yield install
    for module in installed:
        sys.modules.pop(module, None)
