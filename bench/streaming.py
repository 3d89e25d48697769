"""Raters who read responses word by word, all at once: ``python -m bench.streaming [--raters 200] [--workers 1 2]``.

A scripted endpoint in a process of its own says a word every 50 ms to everybody. What counts is how much later than said
the words arrive, whether any reply is lost, and what that costs the server in processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import yaml

from bench.server import answers_of, arrive, cpu_s, serving, walk_ahead
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.storage.store import Store
from dialometer.web.server.security import SESSION_COOKIE, csrf_for

N_WORDS, WORD_S = 200, 0.05
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


async def model_server() -> None:
    """The endpoint: every word is the time at which it was said."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        await reader.readexactly(length)
        writer.write(HEAD)
        began = asyncio.get_running_loop().time()
        for n in range(N_WORDS):
            await asyncio.sleep(max(0.0, began + n * WORD_S - asyncio.get_running_loop().time()))
            delta = {"choices": [{"delta": {"content": f"{time.time():.3f} "}}]}
            writer.write(b"data: " + json.dumps(delta).encode() + b"\n\n")
            await writer.drain()
        writer.write(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n')
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@dataclass
class Heard:
    """What raters got: how late each word was, replies that came whole, and others."""

    late_s: list[float] = field(default_factory=list)
    n_whole: int = 0
    n_words: int = 0
    failures: list[str] = field(default_factory=list)


async def listen(client: httpx.AsyncClient, url: str, token: str, heard: Heard) -> None:
    """One message of one rater, and its reply."""
    headers = {"X-CSRF-Token": csrf_for(token), "Accept": "application/x-ndjson", "Cookie": f"{SESSION_COOKIE}={token}"}
    try:
        async with client.stream("POST", f"{url}s/chat", json={"text": "Hello"}, headers=headers) as response:
            async for line in response.aiter_lines():
                told = json.loads(line)
                if "reply" in told:
                    heard.n_whole += len(told["reply"].split()) == N_WORDS
                elif "text" in told:
                    now = time.time()
                    words = [word for word in told["text"].split() if len(word) == 14]
                    heard.n_words += len(words)
                    heard.late_s += [now - float(word) for word in words[:1]]
                else:
                    heard.failures.append(line[:200])
    except httpx.HTTPError as error:
        heard.failures.append(repr(error)[:200])


def make_chat(folder: Path, port: int) -> None:
    """The template of conversations, from the first screen on a conversation with the endpoint."""
    copy_template("chat", folder)
    file = folder / "study.yaml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["recruitment"].pop("quota", None)
    spec["design"].pop("judgments_per_item", None)
    options = {"base_url": f"http://127.0.0.1:{port}/v1", "model": "m", "timeout_s": 300}
    for system in spec["systems"]:
        system["agent"] = {"type": "openai", "options": options}
    file.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")


def walk_to_chat(folder: Path, sessions: list[tuple[str, str]]) -> None:
    """Stores the screens before the conversation directly."""
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store)
        walks = []
        for number, (session_id, _) in enumerate(sessions):
            session = store.sessions.get(session_id)
            assert session is not None
            path = flow.path(session)
            screens = answers_of(study, path, number, 1)
            first = next(index for index, step in enumerate(path.steps) if step.kind == "chat")
            walks.append((session, screens[:first]))
        walk_ahead(flow, walks)


def measure(n_raters: int, workers: int) -> dict[str, float]:
    """One run."""
    command = [sys.executable, "-m", "bench.streaming", "--serve-model"]
    with tempfile.TemporaryDirectory() as place, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as model:
        try:
            assert model.stdout is not None
            folder = Path(place, "chat")
            make_chat(folder, int(model.stdout.readline()))
            with serving(folder, "", workers, "error") as (url, key, server):
                sessions = arrive(url, key, n_raters)
                walk_to_chat(folder, sessions)
                before = sum(cpu_s(server.pid).values())
                began = time.monotonic()
                heard = asyncio.run(_all(url, [token for _, token in sessions]))
                took_s = time.monotonic() - began
                used_s = sum(cpu_s(server.pid).values()) - before
        finally:
            model.terminate()
    late = sorted(heard.late_s) or [float("nan")]
    if heard.failures:
        print("failures, the first:", heard.failures[0])
    return {
        "raters": n_raters,
        "workers": workers,
        "whole replies": heard.n_whole,
        "failures": len(heard.failures),
        "median delay ms": 1000 * statistics.median(late),
        "99 % delay ms": 1000 * late[int(0.99 * (len(late) - 1))],
        "took s": took_s,
        "said in s": N_WORDS * WORD_S,
        "server cpu s": used_s,
    }


async def _all(url: str, tokens: list[str]) -> Heard:
    heard = Heard()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        await asyncio.gather(*(listen(client, url, token, heard) for token in tokens))
    return heard


def main() -> None:
    """Prints a line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raters", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--serve-model", action="store_true", help="be the scripted endpoint")
    arguments = parser.parse_args()
    if arguments.serve_model:
        asyncio.run(model_server())
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    for workers in arguments.workers:
        row = measure(arguments.raters, workers)
        print(", ".join(f"{name} {value:,.0f}" for name, value in row.items()))


if __name__ == "__main__":
    main()
