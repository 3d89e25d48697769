"""What watching costs the raters: ``python -m bench.dashboard [--watchers 3]``.

One server; raters send their screens as fast as they are acknowledged, by turns with nobody at the dashboard and with
several browsers that renew its pages as often as the pages do. The ratio of the two is what counts: both are measured
within the same minute on the same machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import statistics
import tempfile
import threading
import time
from pathlib import Path

import httpx

from bench.server import arrive, look_first, make_study, send_all, serving, write_requests
from dialometer.storage.store import Store

EVERY_S = 4.0
PAGES = ("", "raters", "items", "quality")


def sign_in(url: str, token: str) -> dict[str, str]:
    """The cookie of a new owner."""
    with httpx.Client(timeout=60) as client:
        page = client.get(f"{url}dashboard/join", params={"token": token}).text
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
        assert found
        form = {
            "csrf": found[1],
            "token": token,
            "name": "bench",
            "password": "many good words",
            "again": "many good words",
        }
        client.post(f"{url}dashboard/join", data=form)
        return {cookie.name: cookie.value or "" for cookie in client.cookies.jar}


def watch(url: str, cookies: dict[str, str], n_watchers: int, is_over: threading.Event, waits: list[float]) -> None:
    """Browsers that each keep one page open; runs in a process of its own, so that it takes nothing from the raters' client."""

    def look(place: int) -> None:
        mark = ""
        with httpx.Client(cookies=cookies, timeout=60) as client:
            time.sleep(place * EVERY_S / n_watchers)
            while not is_over.is_set():
                began = time.perf_counter()
                headers = {"x-live": "1", **({"if-none-match": mark} if mark else {})}
                response = client.get(f"{url}dashboard/studies/study/{PAGES[place % len(PAGES)]}", headers=headers)
                assert response.status_code in (200, 304), response.status_code
                mark = response.headers.get("etag", "")
                waits.append(time.perf_counter() - began)
                is_over.wait(EVERY_S)

    threads = [threading.Thread(target=look, args=(place,)) for place in range(n_watchers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=3)
    parser.add_argument("--raters", type=int, default=100)
    parser.add_argument("--screens", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=4)
    arguments = parser.parse_args()
    rates: dict[bool, list[float]] = {False: [], True: []}
    tails: dict[bool, list[float]] = {False: [], True: []}
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = Path(place) / "study"
        study = make_study(folder, "anchoring")
        with serving(folder, "", 1, "warning") as (url, key, _), spawn.Manager() as shared:
            token = re.search(r"join\?token=(\S+)", (folder / "server.log").read_text())
            assert token
            cookies = sign_in(url, token[1])
            waits = shared.list()
            for _ in range(arguments.repeat):
                for is_watched in (False, True):
                    sessions = arrive(url, key, arguments.raters)
                    with Store.open(folder / "study.db") as store:
                        requests = write_requests(study, store, url, sessions, arguments.screens)
                    look_first(url, sessions)
                    is_over = shared.Event()
                    work = (url, cookies, arguments.watchers, is_over, waits)
                    watchers = spawn.Process(target=watch, args=work)
                    if is_watched:
                        watchers.start()
                        time.sleep(2 * EVERY_S)
                    result = send_all(url, requests)
                    is_over.set()
                    if is_watched:
                        watchers.join()
                    rates[is_watched].append(result.per_s)
                    tails[is_watched].append(result.wait_ms(0.99))
                    print(
                        f"{'watched' if is_watched else 'alone  '} {result.per_s:7,.0f} submissions/s  "
                        f"p50 {result.wait_ms(0.5):4.0f} ms  p99 {result.wait_ms(0.99):4.0f} ms  load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
            looked = sorted(waits)
    middle = {is_watched: statistics.median(found) for is_watched, found in rates.items()}
    tail = {is_watched: statistics.median(found) for is_watched, found in tails.items()}
    print(
        f"{arguments.watchers} watchers: {middle[True] / middle[False]:.2f} x the submissions, p99 {tail[True] / tail[False]:.2f} x; "
        f"a page of the dashboard takes {1000 * looked[len(looked) // 2]:.0f} ms (median of {len(looked)})"
    )


if __name__ == "__main__":
    main()
