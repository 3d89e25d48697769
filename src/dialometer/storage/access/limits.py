"""Counting requests for all processes and hosts of a study together: arrivals and logins, a minute at a time.

Keys are addresses of clients. They are stored as hashes with a secret that is made anew each hour, and only for two minutes.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets as random

from sqlalchemy import delete, insert, select, update

from dialometer.storage.database import StorePart
from dialometer.storage.schema import request_counts, secrets

WINDOW_MS = 60_000
SECRET_MS = 3600 * 1000
_SECRET = "limits"


class SharedLimits(StorePart):
    """How often each client came in the minute that runs, over all hosts."""

    def take(self, kind: str, client: str, per_minute: int, at_ms: int) -> float:
        """Count one request; 0 where it is allowed, else the seconds to wait."""
        window = at_ms // WINDOW_MS
        with self.database.assigning() as connection:
            row = connection.execute(select(secrets.c.value, secrets.c.at_ms).where(secrets.c.name == _SECRET)).first()
            if row is None or at_ms - row.at_ms > SECRET_MS:
                value = random.token_hex(16)
                connection.execute(delete(secrets).where(secrets.c.name == _SECRET))
                connection.execute(insert(secrets), {"name": _SECRET, "value": value, "at_ms": at_ms})
            else:
                value = row.value
            key = hmac.digest(value.encode(), f"{kind} {client}".encode(), hashlib.sha256).hex()[:32]
            connection.execute(delete(request_counts).where(request_counts.c.window < window - 1))
            same = (request_counts.c.key == key, request_counts.c.window == window)
            n = connection.scalar(select(request_counts.c.n).where(*same)) or 0
            if n >= per_minute:
                return ((window + 1) * WINDOW_MS - at_ms) / 1000
            if n:
                connection.execute(update(request_counts).where(*same).values(n=n + 1))
            else:
                connection.execute(insert(request_counts), {"key": key, "window": window, "n": 1})
        return 0.0
