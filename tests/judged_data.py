"""Study data from columns that a test writes down; nothing is simulated and nothing is stored."""

import polars as pl

from dialometer.analysis.base.data import (
    ANSWER_COLUMNS,
    CHAT_COLUMNS,
    FINDING_COLUMNS,
    SESSION_COLUMNS,
    StudyData,
)
from dialometer.storage.table import COLUMNS


def judged_data(study, columns, chats=()):
    """Study data of people who have all finished, from lists by name; chats from (rater, item, messages, words, seconds)."""
    n = len(columns["rater"])
    given = {
        "judgment": list(range(n)),
        "source": ["person"] * n,
        "state": ["completed"] * n,
        "is_excluded": [False] * n,
        "is_practice": [False] * n,
        **columns,
    }
    frame = pl.DataFrame(
        {
            name: pl.Series(name, given.get(name, [None] * n), dtype=kind, strict=False)
            for name, (kind, _) in COLUMNS.items()
        }
    )
    sessions = pl.DataFrame(
        [(rater, rater, "person", "completed", False, 0, 0, None) for rater in sorted(set(columns["rater"]))],
        schema=SESSION_COLUMNS,
        orient="row",
    )
    empty = (pl.DataFrame(schema=ANSWER_COLUMNS), pl.DataFrame(schema=FINDING_COLUMNS))
    talks = pl.DataFrame([(r, i, n, n, w, s) for r, i, n, w, s in chats], schema=CHAT_COLUMNS, orient="row")
    return StudyData(study, frame, sessions, *empty, ("person",), {}, chats=talks)
