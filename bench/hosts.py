"""``make hosts``: two study servers in network namespaces of their own, behind Caddy, on a PostgreSQL with a standby.

While raters answer without pause, one server is killed and comes back, then PostgreSQL's primary is killed and its standby
takes over. At the end every acknowledged screen is looked up. Needs root (for namespaces) and the program ``caddy``; all
addresses exist only inside the namespaces that it makes, and it removes them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from bench.chaos.faults import Figures, look_up, temporary_folder
from bench.chaos.load import Load
from bench.chaos.processes import KEY, PostgresServer, kill
from bench.reliability_page import write_section
from bench.server import make_study

BRIDGE = "dlm0"
NETWORK = "10.231.0"
PROXY, DATABASES, SERVERS = (f"{NETWORK}.31", (f"{NETWORK}.21", f"{NETWORK}.22"), (f"{NETWORK}.11", f"{NETWORK}.12"))
PG_PORT, PORT = 5432, 8000
DATABASE = (
    f"postgresql://postgres@/study?host={DATABASES[0]}:{PG_PORT}&host={DATABASES[1]}:{PG_PORT}"
    "&target_session_attrs=read-write&connect_timeout=3"
)


def _ip(*words: str, may_fail: bool = False) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode and not may_fail:
        raise SystemExit(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _namespace(address: str) -> str:
    return f"dlm{address.rsplit('.', 1)[1]}"


@contextmanager
def lan() -> Iterator[None]:
    """A bridge with a namespace for each address; this process is the rater's side, at .1."""
    addresses = (PROXY, *DATABASES, *SERVERS)
    try:
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        for address in addresses:
            name = _namespace(address)
            _ip("netns", "add", name)
            _ip("link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"v{name}", "master", BRIDGE, "up")
            for words in (
                ("addr", "add", f"{address}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", name, *words)
        yield
    finally:
        for address in addresses:
            _ip("netns", "del", _namespace(address), may_fail=True)
        _ip("link", "del", BRIDGE, may_fail=True)


def _inside(address: str, *command: str | Path) -> list[str]:
    return ["ip", "netns", "exec", _namespace(address), *map(str, command)]


class Replicated(PostgresServer):
    """A primary and a standby that confirms each commit before it counts, each in its namespace."""

    def __init__(self) -> None:
        super().__init__()
        self.standby = self.folder / "standby"
        self.standby.mkdir(mode=0o700)
        os.chown(self.standby, self.account["user"], self.account["group"])
        with (self.data / "pg_hba.conf").open("a", encoding="utf-8") as file:
            file.write(f"host all all {NETWORK}.0/24 trust\nhost replication all {NETWORK}.0/24 trust\n")
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"port={PG_PORT}\nmax_connections=60\nwal_level=replica\nunix_socket_directories=''\n")

    def start(self) -> None:
        """Starts both, and from then on waits for the standby with each commit."""
        self._begin(self.data, DATABASES[0])
        source = ("-h", DATABASES[0], "-p", str(PG_PORT), "-U", "postgres")
        self._as_postgres(
            *_inside(DATABASES[1], self.programs / "pg_basebackup", *source, "-D", self.standby, "-R", "-X", "stream")
        )
        self._begin(self.standby, DATABASES[1])
        for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
            self.sql(statement)
        self.sql("CREATE DATABASE study")

    def _begin(self, data: Path, address: str) -> None:
        options = f"-c listen_addresses={address}"
        command = (self.programs / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start")
        self._as_postgres(*_inside(address, *command))

    def _as_postgres(self, *command: str) -> None:
        uid, gid = self.account["user"], self.account["group"]
        # Entering a namespace needs root, PostgreSQL refuses it: become nobody inside.
        front, program = command[:4], command[4:]
        wrapped = [*front, "setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *program]
        done = subprocess.run(wrapped, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        if done.returncode:
            logs = [path.read_text()[-1500:] for path in (self.data / "log", self.standby / "log") if path.exists()]
            raise SystemExit(f"{program[0]} failed\n" + "\n".join(logs))

    def sql(self, statement: str, database: str = "postgres") -> None:
        """One statement on whichever server takes writes."""
        import psycopg  # noqa: PLC0415

        hosts = ",".join(DATABASES)
        address = f"postgresql://postgres@{hosts}:{PG_PORT}/{database}?target_session_attrs=read-write"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    def fail_over(self) -> float:
        """Kills the primary and promotes the standby; seconds until it takes writes."""
        began = time.monotonic()
        kill(int((self.data / "postmaster.pid").read_text().split()[0]))
        self._as_postgres(*_inside(DATABASES[1], self.programs / "pg_ctl", "-D", self.standby, "-w", "promote"))
        self.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.sql("SELECT pg_reload_conf()")
        return time.monotonic() - began

    def close(self) -> None:
        for data in (self.data, self.standby):
            with suppress(OSError, ValueError):
                kill(int((data / "postmaster.pid").read_text().split()[0]))
        time.sleep(0.5)
        shutil.rmtree(self.folder, ignore_errors=True)


class Host:
    """One study server in its namespace, with a copy of the study's folder of its own."""

    def __init__(self, folder: Path, address: str) -> None:
        self.address, self.log = address, folder.with_name(f"{folder.name}.log")
        options = ("--host", "0.0.0.0", "--port", str(PORT), "--workers", "2", "--api-key", KEY)
        options += ("--arrivals-per-minute", "0", "--log-level", "warning", "--forwarded-allow-ips", PROXY)
        self.command = _inside(
            address, sys.executable, "-m", "dialometer", "serve", folder, *options, "--database", DATABASE
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        environment = os.environ | {"DIALOMETER_CONNECTIONS": "6"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        until = time.monotonic() + 180
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                if httpx.get(f"http://{self.address}:{PORT}/healthz", timeout=5).status_code == 200:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        raise SystemExit(f"the server at {self.address} did not start:\n{self.log.read_text()[-3000:]}")

    def end(self) -> None:
        """Every process of the host at once, as when its power fails."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, 9)
            self.process.wait(30)


@contextmanager
def proxy(folder: Path) -> Iterator[str]:
    """Caddy before both servers; what cannot be delivered to one is delivered to the other."""
    config = folder / "Caddyfile"
    servers = " ".join(f"{address}:{PORT}" for address in SERVERS)
    config.write_text(
        f"{{\n\tadmin off\n\tauto_https off\n\tstorage file_system {folder}/caddy\n}}\n:{PORT} {{\n\treverse_proxy {servers} {{\n"
        "\t\tlb_policy round_robin\n\t\tlb_try_duration 15s\n\t\tlb_try_interval 100ms\n\t\tfail_duration 2s\n"
        "\t\thealth_uri /healthz\n\t\thealth_interval 1s\n\t\thealth_timeout 3s\n\t}\n}\n"
    )
    command = _inside(PROXY, "caddy", "run", "--config", config, "--adapter", "caddyfile")
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://{PROXY}:{PORT}/"
    finally:
        process.terminate()
        process.wait(20)


def pause_of(load: Load, n_more: int, at_most_s: float = 120) -> float:
    """Seconds until so many more screens were acknowledged after a fault; nan when it never came to that."""
    began = time.monotonic()
    return time.monotonic() - began if load.wait_for(n_more, at_most_s) >= n_more else float("nan")


def run(folder: Path, n_raters: int, n_between: int) -> tuple[Figures, list[tuple[str, str]]]:
    """All faults one after the other; the figures, and what each fault came to."""
    figures = Figures("two hosts", "PostgreSQL")
    began = time.monotonic()
    study = make_study(folder / "one", "best-worst")
    shutil.copytree(folder / "one", folder / "two")
    events: list[tuple[str, str]] = []
    with lan():
        postgres = Replicated()
        hosts = [Host(folder / name, address) for name, address in zip(("one", "two"), SERVERS, strict=True)]
        try:
            postgres.start()
            for host in hosts:
                host.start()
            with proxy(folder) as url, Load(study, url, KEY, n_raters) as load:
                load.wait_for(n_between, 120)
                hosts[1].end()
                events.append(("one of two servers killed", f"{pause_of(load, 5):.1f} s to the next five screens"))
                load.wait_for(n_between, 120)
                hosts[1].start()
                load.wait_for(n_between, 120)
                events.append(("the server came back", "in use again"))
                seconds = postgres.fail_over()
                events.append(
                    (
                        "PostgreSQL's primary killed, standby promoted",
                        f"{seconds:.1f} s until it took writes, {pause_of(load, 5):.1f} s more to the next five screens",
                    )
                )
                if load.wait_for(n_between, 180) < n_between:
                    figures.problems.append("nothing was stored any more after the failover")
            unreached = [outcome for outcome in load.outcomes if outcome.startswith("status 4")]
            figures.problems += [f"{load.outcomes[outcome]} × {outcome}" for outcome in unreached]
            look_up(figures, load, study, DATABASE)
        finally:
            for host in hosts:
                host.end()
            postgres.close()
    figures.seconds = time.monotonic() - began
    return figures, events


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--raters", type=int, default=12)
    parser.add_argument("--screens", type=int, default=300, help="acknowledged between two faults")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    given = parser.parse_args()
    for program, remedy in (("ip", "iproute2"), ("caddy", "caddy"), ("setpriv", "util-linux")):
        if shutil.which(program) is None:
            raise SystemExit(f"the program {program} is missing: install the package {remedy}")
    if os.geteuid() != 0:
        raise SystemExit("network namespaces need root")
    folder = temporary_folder()
    figures, events = run(folder, given.raters, given.screens)
    lines = [f"| {what} | {came_to} |" for what, came_to in events]
    counted = f"{figures.n_acknowledged:,} screens acknowledged, {figures.n_lost} lost, {figures.n_doubled} doubled"
    print(*(f"{what}: {came_to}" for what, came_to in events), counted, *figures.problems, sep="\n")
    if given.write:
        intro = (
            f"Two servers in network namespaces of their own, Caddy before them, PostgreSQL with a synchronous standby; "
            f"{given.raters} raters answer without pause. {counted}."
        )
        text = "\n".join([intro, "", "| fault | what it came to |", "|---|---|", *lines])
        write_section("Several hosts", f"make hosts ARGS='{' '.join(sys.argv[1:])}'", text)
    if not figures.is_passed:
        raise SystemExit(f"not everything passed; the logs are in {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
