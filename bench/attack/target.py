"""Servers to attack, and what the attacks share: studies, raters, requests, and how a hole is told."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from dialometer.design.templates import copy_template

START_S = 300
PASSWORD = "correct horse battery"


class HoleOpenError(Exception):
    """The attack got through; the message says how far."""


@dataclass(frozen=True)
class Hole:
    """One way to break a server. ``attack`` gives the figures of a server that held, or raises :class:`HoleOpenError`."""

    section: str
    name: str
    attack: Callable[[Path], str]


def check(holds: bool, figures: str) -> str:
    """The figures, or the news that the hole is open."""
    if not holds:
        raise HoleOpenError(figures)
    return figures


def make_study(folder: Path, template: str = "likert", **changes: Any) -> Path:
    """A template with changes to the parts of its study file; without changes it takes any number of raters."""
    copy_template(template, folder)
    file = folder / "study.yaml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["recruitment"].pop("quota", None)
    spec["design"].pop("judgments_per_item", None)
    for part, change in changes.items():
        if isinstance(change, dict) and isinstance(spec.get(part), dict):
            spec[part] |= change
        else:
            spec[part] = change
    file.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return folder


@dataclass
class Target:
    """A running server."""

    folder: Path
    url: str
    key: str
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "127.0.0.1", parts.port or 80

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def connect(self, source: str = "127.0.0.1", sends: bytes = b"") -> socket.socket:
        """A connection from an address of loopback."""
        client = socket.create_connection(self.address, timeout=10, source_address=(source, 0))
        if sends:
            client.sendall(sends)
        return client

    def counted(self, name: str) -> dict[str, int]:
        """A counter of ``/metrics`` by its label, where it is above zero."""
        text = httpx.get(f"{self.url}/metrics", timeout=30).text
        found = re.findall(rf'^{name}{{\w+="(\w+)"}} (\d+)', text, re.MULTILINE)
        return {label: int(number) for label, number in found if number != "0"}

    def memory_mb(self) -> float:
        """What the server holds in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def serving(folder: Path, *options: str, env: dict[str, str] | None = None) -> Iterator[Target]:
    """``dialometer serve`` in a process of its own."""
    word = folder / ".serving.json"
    command = [sys.executable, "-m", "dialometer", "serve", str(folder), "--port", "0", "--log-level", "info", *options]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})}
        )
    try:
        until = time.monotonic() + START_S
        while True:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the server did not start:\n{(folder / 'server.log').read_text()[-3000:]}")
            try:
                left = json.loads(word.read_text())
                httpx.get(f"{left['url']}healthz", timeout=5).raise_for_status()
                break
            except (OSError, ValueError, httpx.HTTPError):
                time.sleep(0.1)
        yield Target(folder, left["url"].rstrip("/"), left["api_key"], process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Rater:
    """A rater who answers through the API, without trying anything twice."""

    def __init__(
        self, target: Target, name: str, *, source: str = "person", client: httpx.Client | None = None
    ) -> None:
        self.target = target
        self.client = client or httpx.Client(timeout=60)
        body = {"external_id": name, "source": source}
        head = {"Authorization": f"Bearer {target.key}"}
        opened = self.client.post(f"{target.url}/api/v1/sessions", json=body, headers=head).raise_for_status().json()
        self.id, self.token = opened["session_id"], opened["session_token"]

    def answer(self) -> tuple[httpx.Response | None, str]:
        """Answers the next screen; None and the last screen once the study is over."""
        head = {"Authorization": f"Bearer {self.token}"}
        shown = self.client.get(f"{self.target.url}/api/v1/session/screen", headers=head).raise_for_status().json()
        if shown["kind"] == "done":
            return None, shown["screen"]
        body = {
            "screen": shown["screen"],
            "token": f"{self.id}/{shown['screen']}",
            "shown_at_ms": int(time.time() * 1000),
            "answers": {asked["name"]: _fitting(asked) for asked in shown["fields"]},
        }
        url = f"{self.target.url}/api/v1/session/submissions"
        return self.client.post(url, json=body, headers=head), shown["screen"]


def _fitting(asked: dict[str, Any]) -> Any:
    scale = asked["scale"]
    match scale["type"]:
        case "likert":
            return scale["first"]
        case "choice":
            return scale["options"][0]
        case "multiple":
            return scale["options"][:1]
        case "pairwise":
            return asked["alternatives"][0]
        case "ranking":
            return list(asked["alternatives"] or scale["options"])
        case "best_worst":
            return {"best": asked["alternatives"][0], "worst": asked["alternatives"][1]}
        case "text":
            return "some words" if scale.get("format", "text") == "text" else "30"
        case _:
            return 50


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields and values of a page's forms."""
    inputs = re.findall(r"<(?:input|button)\b([^>]*)>", page)
    pairs = ((re.search(r'name="([^"]*)"', text), re.search(r'value="([^"]*)"', text)) for text in inputs)
    return {name[1]: value[1] if value else "" for name, value in pairs if name}


class Visitor:
    """Somebody at the dashboard, from an address of their own as a proxy would tell it."""

    def __init__(self, target: Target, address: str = "203.0.113.50") -> None:
        self.client = httpx.Client(
            base_url=target.url, timeout=60, follow_redirects=True, headers={"X-Forwarded-For": address}
        )

    def post(self, path: str, page: str, **form: Any) -> httpx.Response:
        return self.client.post(path, data={"csrf": fields_of(page).get("csrf", ""), **form})

    def join(self, link: str, name: str) -> httpx.Response:
        page = self.client.get(link).text
        form = {"token": link.partition("token=")[2], "name": name, "password": PASSWORD, "again": PASSWORD}
        return self.post("/dashboard/join", page, **form)

    def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        page = self.client.get("/dashboard/login").text
        return self.post("/dashboard/login", page, name=name, password=password, next="")


def owner_of(target: Target) -> Visitor:
    """The first owner, by the link that the server printed."""
    found = re.search(r"First owner\s+(\S+/dashboard/join\?token=\S+)", target.log)
    if found is None:
        raise SystemExit("the server printed no link for an owner")
    visitor = Visitor(target)
    answer = visitor.join(found[1], "ada")
    if answer.status_code != 200:
        raise SystemExit(f"no owner could be made: {answer.status_code}")
    return visitor
