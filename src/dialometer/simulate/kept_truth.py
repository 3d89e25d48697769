"""The truth that simulated raters saw, kept beside their study so that an analysis can be compared with it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.model.places import SIMULATION_FILE
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth


def keep_truth(
    folder: Path, truth: Truth, *, seed: int, n_raters: int, habits: Habits, has_raters: bool = False
) -> Path:
    """Writes it down before anybody comes. ``has_raters`` says that simulated raters came before: they saw the same one, or
    this is refused, since raters of two truths in one database could be compared with neither.
    """
    file = folder / SIMULATION_FILE
    content = {"seed": seed, "raters": n_raters, "habits": asdict(habits), "truth": truth.as_json()}
    text = json.dumps(content, indent=1) + "\n"
    if has_raters:
        _refuse_another(file, json.loads(text))
    file.write_text(text, encoding="utf-8")
    return file


def _refuse_another(file: Path, now: dict[str, object]) -> None:
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    differing = [name for name in ("seed", "habits", "truth") if before.get(name) != now[name]]
    if differing:
        raise DialometerError(
            f"the study holds simulated raters of another truth (seed {before.get('seed')}; {', '.join(differing)} differ)",
            where=str(file),
            remedy="go on with the same options, or simulate in another copy of the study's folder",
        )
