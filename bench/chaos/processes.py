"""A server and a PostgreSQL that can be killed at any moment and started again at the same place."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

KEY = "the-key-of-the-chaos"
START_S = 300.0


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def children_of(pid: int) -> list[int]:
    """The processes that a process has started; none where it is gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_of(pid: int) -> bytes:
    """The command line of a process; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    return bool(command_of(pid))


def wait_for_end(pid: int, at_most_s: float) -> bool:
    """Whether a process ended in this time."""
    until = time.monotonic() + at_most_s
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)


def kill(pid: int) -> None:
    """As a crash or the kernel's out-of-memory killer would."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Preloaded:
    """Starts processes of ``dialometer`` from one that has its libraries loaded already."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "bench.chaos.preloaded"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def start(self, arguments: list[str], log: Path) -> int:
        """The number of a new process with these arguments."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([arguments, str(log)]) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def close(self) -> None:
        """End it; what it started goes on."""
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class StudyServer:
    """``dialometer serve`` on one port."""

    def __init__(self, preloaded: Preloaded, folder: Path, database: str = "", *, n_workers: int = 1) -> None:
        self.preloaded, self.folder, self.n_workers = preloaded, folder, n_workers
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.log = Path(tempfile.mkstemp(prefix="chaos-", suffix=".log")[1])
        self.options = ["--port", str(self.port), "--api-key", KEY, "--log-level", "warning"]
        self.options += ["--arrivals-per-minute", "0", *(["--database", database] if database else [])]
        self.pid = 0

    def start(self) -> None:
        """Start it, and wait until it answers."""
        until = time.monotonic() + START_S
        arguments = ["serve", str(self.folder), "--workers", str(self.n_workers), *self.options]
        while time.monotonic() < until:
            self.pid = self.preloaded.start(arguments, self.log)
            while is_alive(self.pid) and time.monotonic() < until:
                if self._is_ready():
                    return
                time.sleep(0.05)
            time.sleep(0.2)  # workers of the killed server may hold the port for a moment
        raise SystemExit(f"the server did not start:\n{self.log.read_text()[-3000:]}")

    def _is_ready(self) -> bool:
        """Whether this very server answers, and not a worker that a killed one has left behind."""
        try:
            pid = json.loads((self.folder / ".serving.json").read_text())["pid"]
        except (OSError, ValueError):
            return False
        return pid == self.pid and self.health() == 200 and len(self.workers()) >= (self.n_workers > 1)

    def health(self) -> int:
        """What ``/healthz`` answers; 0 for no answer."""
        try:
            return httpx.get(f"{self.url}healthz", timeout=10).status_code
        except httpx.HTTPError:
            return 0

    def workers(self) -> list[int]:
        """The processes that answer, where there are several; the first process only watches them."""
        return [pid for pid in children_of(self.pid) if b"spawn_main" in command_of(pid)]

    def kill_all(self) -> None:
        """Every process of the server at once."""
        for pid in [self.pid, *children_of(self.pid)]:
            kill(pid)
        wait_for_end(self.pid, 30)

    def kill_first(self) -> None:
        """The first process alone; its workers must not go on without it."""
        kill(self.pid)
        wait_for_end(self.pid, 30)

    def stop(self) -> None:
        """As the service manager does."""
        if self.pid and is_alive(self.pid):
            os.kill(self.pid, signal.SIGTERM)
            if not wait_for_end(self.pid, 120):
                self.kill_all()


class PostgresServer:
    """A PostgreSQL of our own, reached by a socket, with its usual care for the disk."""

    def __init__(self) -> None:
        import pgserver  # noqa: PLC0415 - only where PostgreSQL is tested

        self.folder = Path(tempfile.mkdtemp(prefix="chaos-pg-"))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.data.mkdir(mode=0o700)
        self.account: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self.account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.data, nobody.pw_uid, nobody.pw_gid)
        package = Path(pgserver.__file__).parent
        self.programs = package / "pginstall" / "bin"
        try:
            subprocess.run([self.programs / "initdb", "--version"], check=True, capture_output=True, **self.account)
        except (PermissionError, subprocess.CalledProcessError):
            shutil.copytree(package / "pginstall", self.folder / "site" / "pgserver" / "pginstall", symlinks=True)
            libraries = package.parent / "pgserver.libs"
            if libraries.exists():
                shutil.copytree(libraries, self.folder / "site" / "pgserver.libs", symlinks=True)
            self.programs = self.folder / "site" / "pgserver" / "pginstall" / "bin"
        self._call("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8")

    def url(self, name: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://postgres@/{name}?host={self.data}"

    def start(self) -> None:
        """Start it; after a kill it waits until the old processes are gone."""
        options = f"-c listen_addresses='' -c unix_socket_directories={self.data} -c max_connections=120"
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            command = (self.programs / "pg_ctl", "-D", self.data, "-w", "-l", self.data / "log", "-o", options, "start")
            if self._run(*command) == 0:
                return
            time.sleep(0.3)
        raise SystemExit(f"PostgreSQL did not start:\n{(self.data / 'log').read_text()[-3000:]}")

    def pid(self) -> int:
        """Its first process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def backends(self) -> list[int]:
        """The processes that work for clients; when one is killed, PostgreSQL throws all others out."""
        return [
            pid for pid in children_of(self.pid()) if b"postgres: postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def create(self, name: str) -> str:
        """A new database; gives its address."""
        import psycopg  # noqa: PLC0415

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def close(self) -> None:
        """Stop it and remove everything."""
        self._run(self.programs / "pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str | Path) -> None:
        if self._run(self.programs / program, *arguments):
            raise SystemExit(f"{program} failed")

    def _run(self, *command: str | Path) -> int:
        with tempfile.TemporaryFile() as output:  # a pipe would be held open by the server
            return subprocess.run(
                command, check=False, stdout=output, stderr=output, cwd=self.data, timeout=120, **self.account
            ).returncode
