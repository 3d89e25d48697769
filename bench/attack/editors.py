"""An editor is not the administrator: drafts that read, send or eat what they should not."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.attack.target import Hole, check, make_study, owner_of, serving
from dialometer.design.load import load_study
from dialometer.exchange.exports import archive

SECTION = "An editor is not the administrator"
SECRET = "hunter2-of-the-server"


def sent_secret(work: Path) -> str:
    """A draft's agent sends an environment variable of the server to an address of its own."""
    got: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(str(self.headers) + self.rfile.read(int(self.headers.get("content-length", 0))).decode())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"reply": "thanks"}')

        def log_message(self, *_: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    folder = work / "studies"
    folder.mkdir()
    options = {"url": f"http://127.0.0.1:{listener.server_port}/", "headers": {"X-Key": "${PGPASSWORD}"}}
    agent = {"type": "http", "options": options}
    make_study(folder / "draft", "chat", systems=[{"name": name, "agent": agent} for name in ("juno", "tak")])
    try:
        with serving(folder, env={"PGPASSWORD": SECRET}) as target:
            owner = owner_of(target)
            pages = [owner.client.get(f"/dashboard/studies/draft/{page}").text for page in ("files", "preview")]
            token = owner.client.get("/dashboard/studies/draft/files").text
            frozen = owner.post("/dashboard/studies/draft/freeze", token).status_code
            time.sleep(1)
    finally:
        listener.shutdown()
    is_told = "PGPASSWORD" in pages[0] and SECRET not in "".join(pages)
    figures = f"{len(got)} requests left the server, freezing gives {frozen}, the draft says why: {is_told}"
    return check(not got and frozen == 422 and is_told, figures)


def hungry_items(work: Path) -> str:
    """Drafts whose items are /dev/zero, /etc/passwd and a pipe."""
    folder = work / "studies"
    folder.mkdir()
    for name, file in (("zero", "/dev/zero"), ("passwd", "/etc/passwd"), ("up", "../../../../../../etc/passwd")):
        make_study(folder / name, items={"file": file})
    with serving(folder) as target:
        owner = owner_of(target)
        before, began = target.memory_mb(), time.monotonic()
        pages = [owner.client.get("/dashboard/")]
        pages += [owner.client.get(f"/dashboard/studies/{name}/files") for name in ("zero", "passwd", "up")]
        seconds, grown = time.monotonic() - began, target.memory_mb() - before
    is_read = any("root:x:" in page.text or "root:" in page.text for page in pages)
    statuses = {page.status_code for page in pages}
    figures = f"4 pages in {seconds:.1f} s, {max(grown, 0):.0f} MB more memory, nothing of /etc/passwd shown"
    return check(not is_read and statuses == {200} and seconds < 15 and grown < 200, figures)


def unreadable_drafts(work: Path) -> str:
    """Drafts with numbers that YAML readers stumble over."""
    folder = work / "studies"
    folder.mkdir()
    for name, seed in (("a", "08"), ("b", "9" * 5000), ("c", "!!bool x"), ("d", "010")):
        file = make_study(folder / name) / "study.yaml"
        file.write_text(re.sub(r"(?m)^seed:.*$", f"seed: {seed}", file.read_text()), encoding="utf-8")
    seed = load_study(folder / "d").spec.seed
    with serving(folder) as target:
        owner = owner_of(target)
        pages = ["/dashboard/", *(f"/dashboard/studies/{name}/files" for name in "abcd")]
        statuses = [owner.client.get(page).status_code for page in pages]
    figures = f"{statuses.count(200)} of 5 pages of the dashboard shown, 'seed: 010' is {seed}"
    return check(statuses == [200] * 5 and seed == 10, figures)


def bomb(work: Path) -> str:
    """A small archive that unpacks to 1.2 GB."""
    path = work / "bomb.zip"
    names = [f"data/{n}.csv" for n in range(6)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr(archive.MANIFEST, json.dumps({archive.MARK: 1, "files": dict.fromkeys(names, "")}))
        for name in names:
            with made.open(name, "w") as out:
                for _ in range(200):
                    out.write(bytes(1 << 20))
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "dialometer", "report", str(path), "--out", str(work / "out")],
        check=False,
        capture_output=True,
        timeout=120,
        preexec_fn=_with_files_of(500 << 20),
        cwd=work,
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    n_mb = path.stat().st_size / 1e6
    words = done.stderr.decode(errors="replace")
    is_refused = done.returncode == 1 and "unpacks to more than" in " ".join(words.split())
    figures = f"an archive of {n_mb:.1f} MB, refused after {time.monotonic() - began:.1f} s, {peak:.0f} MB of memory"
    return check(
        is_refused and "Traceback" not in words, figures if is_refused else f"{done.returncode}: {words[-300:]}"
    )


def _with_files_of(n_bytes: int) -> Callable[[], None]:
    """Limits the files of a process, so that an open hole does not fill this machine's disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


HOLES = [
    Hole(SECTION, "${PGPASSWORD} in an agent's header", sent_secret),
    Hole(SECTION, "items from /dev/zero and /etc/passwd", hungry_items),
    Hole(SECTION, "drafts that cannot be read", unreadable_drafts),
    Hole(SECTION, "an archive that unpacks to 1.2 GB", bomb),
]
