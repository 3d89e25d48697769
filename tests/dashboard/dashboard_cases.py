"""Small studies and simulated raters for the tests of the dashboard."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dialometer.design.load import load_study
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

KEY = "the-key-of-the-tests"


def cut(folder: Path, n_items: int) -> None:
    """Leaves few items, so that a session is short."""
    path = folder / "items.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    special = [x for x in lines if x.get("metadata", {}).get("practice") or x.get("metadata", {}).get("gold")]
    plain = [x for x in lines if x not in special][:n_items]
    path.write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in special + plain), encoding="utf-8")
    spec = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    if spec["design"].get("items_per_rater") != "unlimited":
        spec["design"]["items_per_rater"] = "all"
    for check in (check for rule in spec.get("quality", ()) for check in rule.get("checks", ())):
        check["after_item"] = 1
    text = yaml.safe_dump(spec, sort_keys=False, allow_unicode=True)
    (folder / "study.yaml").write_text(text, encoding="utf-8")


def collect(folder: Path, n_raters: int, careless: float = 0.3, seed: int = 5, database: str | None = None) -> None:
    """Simulated raters answer the study into its own database, or into another."""
    study = load_study(folder)
    with Store.open(database or folder / "study.db") as store:
        habits = Habits(careless_share=careless)
        door = EngineAccess(Flow(study, store))
        truth = draw_truth(study, 1)
        start_ms = now_ms() - 3_600_000
        simulate(study, door, truth, n_raters=n_raters, seed=seed, start_ms=start_ms, habits=habits)
