"""Who took part in a dialogue and who rated it, as far as its metadata say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RATING = "rating"
"""Where the metadata of a dialogue hold the rating that its user gave it."""
USER_KEYS = ("user", "user_id", "participant1_id", "rater", "rater_id")
SYSTEM_KEYS = ("system", "bot", "bot_id", "participant2_id")


def name_in(metadata: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Who took part, under the first of the keys that names somebody; some releases give an object with the id inside."""
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, Mapping):
            value = value.get("user_id", value.get("id"))
        if value not in (None, ""):
            return str(value)
    return None
