"""Noisy ratings of a study back into the study: as flags on the sessions that gave them, which its report shows."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from dialometer.learned.noisy_page import Noisy
from dialometer.model.places import DATABASE_FILE
from dialometer.model.quality import Finding
from dialometer.storage.store import Store
from dialometer.table import long_table, session_name

RULE = "noisy_rating"
"""The name under which such flags stand beside those of the study's own rules."""


def flag_noisy(folder: Path, noisy: Sequence[Noisy], *, database: str = "", at_ms: int = 0) -> int:
    """Writes a flag for every noisy rating that has none yet, and says how many were new. Nobody is excluded by it."""
    with Store.open(database or folder / DATABASE_FILE, create=False) as store:
        table = long_table(store.judgment_batches())
        session_of = dict(zip(table["judgment"].to_list(), table["session"].to_list(), strict=True))
        ids = {session_name(session.ordinal): session.id for session in store.sessions()}
        known = {logged.finding.details.get("judgment") for logged in store.findings() if logged.finding.rule == RULE}
        found: dict[str, list[Finding]] = defaultdict(list)
        for one in noisy:
            judgment = one.rated.dialogue.metadata["judgment"]
            if judgment in known or judgment not in session_of:
                continue
            item = one.rated.dialogue.metadata["item"]
            details = {"judgment": judgment, "item": item, "value": one.value, "smoothed": one.smoothed}
            found[ids[session_of[judgment]]].append(Finding(RULE, "flag", f"{item}: {one.reason}", details))
        for session_id, findings in found.items():
            store.add_findings(session_id, findings, at_ms or int(time.time() * 1000))
    return sum(len(findings) for findings in found.values())
