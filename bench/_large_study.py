"""Studies of any size for benches: a study folder and a database filled with simulated sessions, slots and judgments.

Everything is inserted table by table, since a bench measures what comes after; the rows are those that raters would leave.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dialometer.design.load import load_study
from dialometer.design.lock import fingerprint
from dialometer.design.templates import copy_template
from dialometer.model.session import Draw
from dialometer.model.study import Study
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import draw_truth
from dialometer.storage.database import insert_many
from dialometer.storage.rows import slot_rows, to_json
from dialometer.storage.schema import judgments, people, slots, visits
from dialometer.storage.sessions import drawn, insert_sessions
from dialometer.storage.store import Store

SEED = 5
N_ITEMS = 500
N_PER_RATER = 100
JUDGMENTS_PER_ITEM = 2
START_MS = 1_760_000_000_000
N_RATERS_AT_ONCE = 500


def make_large_study(folder: Path, n_items: int = N_ITEMS) -> Study:
    """Dialogues of three systems, rated on two criteria, a hundred of them by each rater, without limits."""
    copy_template("likert", folder)
    file = folder / "study.yaml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["items"] = {"kind": "dialogue", "file": "items.jsonl"}
    spec["criteria"] = [criterion for criterion in spec["criteria"] if criterion["name"] != "fluency"]
    spec["design"] |= {"items_per_rater": N_PER_RATER, "n_practice_items": 0}
    spec["design"].pop("judgments_per_item")
    spec["design"].pop("system_order", None)
    spec["quality"] = [rule for rule in spec["quality"] if rule["rule"] in ("session_time", "straight_lining")]
    spec["analysis"]["comparisons"] = spec["analysis"]["comparisons"][:1]
    file.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    systems = [system["name"] for system in spec["systems"]]
    turns = [{"speaker": "Traveller", "text": "Is there a later train?"}, {"speaker": "Assistant", "text": "At nine."}]
    items = [{"id": f"d{n:05d}", "system": systems[n % len(systems)], "turns": turns} for n in range(n_items)]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return load_study(folder)


def fill(store: Store, study: Study, n_judgments: int, *, seed: int = SEED) -> int:
    """Store that many judgments of finished sessions, after what is there; gives the number of new sessions."""
    n_raters = max(1, n_judgments // (N_PER_RATER * JUDGMENTS_PER_ITEM))
    version = store.studies.register(study.spec.name, fingerprint(study), study.spec.model_dump_json(), START_MS)
    first = len(store.sessions.marks()) + 1
    for start in range(0, n_raters, N_RATERS_AT_ONCE):
        n = min(N_RATERS_AT_ONCE, n_raters - start)
        columns = simulate_judgments(study, draw_truth(study, seed), Habits(), n_raters=n, seed=seed + first + start)
        _write(store, study, columns, n, first + start, version)
    return n_raters


def _write(store: Store, study: Study, columns: dict[str, Any], n: int, first: int, version: int) -> None:
    by_rater = np.argsort(columns["rater"], kind="stable")
    lists = {name: column[by_rater].tolist() for name, column in columns.items()}
    ends = np.cumsum(np.bincount(np.asarray(columns["rater"], dtype=np.int64) - 1, minlength=n))
    rows = {name: [] for name in ("people", "sessions", "slots", "judgments", "visits")}
    start = 0
    for rater, end in enumerate(ends.tolist()):
        ordinal = first + rater
        for name, entries in _session(study, lists, start, end, ordinal, version).items():
            rows[name] += entries
        start = end
    with store.database.writing() as connection:
        insert_many(connection, people, rows["people"])
        insert_sessions(connection, rows["sessions"])
        insert_many(connection, slots, rows["slots"])
        insert_many(connection, judgments, rows["judgments"])
        insert_many(connection, visits, rows["visits"])


def _session(
    study: Study, lists: dict[str, list[Any]], start: int, end: int, ordinal: int, version: int
) -> dict[str, list[dict[str, Any]]]:
    """All rows of one finished session."""
    session_id = f"large-{ordinal:07d}"
    began_ms = START_MS + 30_000 * ordinal
    items = tuple(dict.fromkeys(lists["item"][start:end]))
    draw = Draw(ordinal=ordinal, cell=0, blocks=("main",), items={"main": items})
    ended_ms = began_ms + 1000 * 9 * len(items)
    done = {"done_at_ms": ended_ms}
    session = {
        "id": session_id,
        "token_hash": f"large-{ordinal:07d}",
        "rater_id": f"rater-{ordinal:07d}",
        "study_version": version,
        "source": "person",
        "state": "completed",
        "consent_version": "1",
        "step": len(items) + 4,
        "started_at_ms": began_ms,
        "last_seen_at_ms": ended_ms,
        "finished_at_ms": ended_ms,
        **drawn(draw, study.cells[0]),
    }
    return {
        "people": [
            {"rater_id": session["rater_id"], "platform": "link", "external_id": f"P{ordinal:07d}", "params": "{}"}
        ],
        "sessions": [session],
        "slots": [{**row, **done} for row in slot_rows(session_id, draw, "person", began_ms)],
        "judgments": list(_judgments(lists, start, end, session_id, began_ms)),
        "visits": [_visit(session_id, item, began_ms + 9000 * place) for place, item in enumerate(items)],
    }


def _judgments(
    lists: dict[str, list[Any]], start: int, end: int, session_id: str, began_ms: int
) -> Iterator[dict[str, Any]]:
    for row in range(start, end):
        shown_ms = began_ms + 9000 * lists["position"][row]
        yield {
            "session_id": session_id,
            "item_id": lists["item"][row],
            "criterion": lists["criterion"][row],
            "system": lists["system"][row],
            "turn": -1,
            "value": to_json(int(lists["value"][row])),
            "scale": lists["scale"][row],
            "block": "main",
            "position": lists["position"][row],
            "side": lists["side"][row],
            "order": "",
            "shown_at_ms": shown_ms,
            "answered_at_ms": shown_ms + 8000,
            "is_late": False,
            "is_practice": False,
            "replaces": None,
            "corrected_by": "",
            "reason": "",
        }


def _visit(session_id: str, item: str, shown_ms: int) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "screen": f"item:{item}",
        "shown_at_ms": shown_ms,
        "submitted_at_ms": shown_ms + 8000,
        "first_input_at_ms": shown_ms + 2000,
        "focus_lost_n": 0,
        "focus_lost_s": 0.0,
        "device": "desktop",
        "is_late": False,
    }
