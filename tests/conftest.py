"""Databases for every room's tests: ``database_url`` runs a test on SQLite and again on a real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

BACKENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


def _server_account() -> dict[str, Any]:
    """Arguments for subprocess: PostgreSQL refuses to run as root, so root hands it to an account without rights."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd  # noqa: PLC0415 - not there on Windows

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
    folder = Path(tempfile.mkdtemp(prefix="dialometer-pg-"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if account:
        os.chown(data, account["user"], account["group"])

    def call(*command: str | Path) -> None:
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(command, check=False, stdout=output, stderr=output, cwd=data, timeout=60, **account)
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


@pytest.fixture
def postgres_url(postgres_server: Callable[[str], str]) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database, dropped after the test."""
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is tested

    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(postgres_server("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield postgres_server(name)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database: the path of a SQLite file, then (mark ``postgres``) the URL of a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    url: str = request.getfixturevalue("postgres_url")
    return url
