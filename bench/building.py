"""How long the form of a draft takes with many items: ``python -m bench.building [--items 10000]``.

Every step is opened, then a change is saved and the step opened again. Wall time is what a maker waits; processor time is what it
costs, and the same on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from starlette.testclient import TestClient

from dialometer.design.templates import copy_template
from dialometer.web.dashboard.login import first_owner_token
from dialometer.web.dashboard.pages.form import STEPS
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.run import open_server
from dialometer.web.server.settings import Settings

N_TIMES = 5
PASSWORD = "many good words"


def make_draft(folder: Path, n_items: int) -> None:
    """The template *compare* with as many items, each its own."""
    copy_template("compare", folder)
    path = folder / "items.jsonl"
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    items = ({**first, "id": f"item{n}", "metadata": {}} for n in range(n_items))
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")


def measured(work: Callable[[], None]) -> tuple[float, float]:
    """Medians of wall and processor time, in milliseconds."""
    walls, costs = [], []
    for _ in range(N_TIMES):
        wall, cost = time.perf_counter(), time.process_time()
        work()
        walls.append(1000 * (time.perf_counter() - wall))
        costs.append(1000 * (time.process_time() - cost))
    return statistics.median(walls), statistics.median(costs)


def main() -> None:
    """Prints a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    n_items = parser.parse_args().items
    with tempfile.TemporaryDirectory() as place:
        make_draft(Path(place) / "mine", n_items)
        app = open_server(StudyFolders(parent=place), Settings())
        with TestClient(app) as client:
            token = first_owner_token(app.accounts)
            page = client.get("/dashboard/join", params={"token": token}).text
            own = {"csrf": mark_of(page), "token": token, "name": "bench", "password": PASSWORD, "again": PASSWORD}
            client.post("/dashboard/join", data=own)
            print(f"{n_items:,} items: milliseconds, median of {N_TIMES}")
            print(f"{'step':12} {'open: wall':>11} {'processor':>10}")
            for step in STEPS:
                wall, cost = measured(lambda step=step: opened(client, step))
                print(f"{step:12} {wall:11.0f} {cost:10.0f}")
            wall, cost = measured(lambda: change(client))
            print(f"{'a change':12} {wall:11.0f} {cost:10.0f}   (saved, checked anew, page shown)")


def mark_of(page: str) -> str:
    """The mark that a form carries."""
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found
    return found[1]


def opened(client: TestClient, step: str) -> str:
    """The page of a step."""
    response = client.get(f"/dashboard/studies/mine/form/{step}")
    assert response.status_code == 200, response.text[:200]
    return response.text


def change(client: TestClient) -> None:
    """Another title, saved; the browser is led back to the page."""
    page = opened(client, "study")
    base = re.search(r'name="base" value="([^"]*)"', page)
    form = {"csrf": mark_of(page), "title": f"A study of {time.time_ns()}", "base": base[1] if base else ""}
    response = client.post("/dashboard/studies/mine/form/study", data=form)
    assert "Saved." in response.text, response.text[:300]


if __name__ == "__main__":
    main()
