"""What only the servers of a study know. Drawn when it is first needed, and the same for all processes and machines."""

from __future__ import annotations

import secrets as randomness

from sqlalchemy import Connection, insert, select

from dialometer.storage.database import StorePart
from dialometer.storage.schema import secrets

SIGNING = "signing"
"""Signs the links of raters."""
STARTING = "starting"
"""Makes the tokens of sessions from what their browsers had before."""


class Secrets(StorePart):
    """The study's secrets by name."""

    def get(self, name: str, at_ms: int) -> bytes:
        """The secret of that name, 32 random bytes."""
        with self.database.reading() as connection:
            known = _known(connection, name)
        if known is not None:
            return known
        with self.database.assigning() as connection:
            known = _known(connection, name)
            if known is None:
                known = randomness.token_bytes(32)
                connection.execute(insert(secrets), {"name": name, "value": known.hex(), "at_ms": at_ms})
        return known


def _known(connection: Connection, name: str) -> bytes | None:
    value = connection.scalar(select(secrets.c.value).where(secrets.c.name == name))
    return None if value is None else bytes.fromhex(value)
