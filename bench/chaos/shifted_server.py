"""``dialometer`` with a clock that a file moves: ``python -m bench.chaos.shifted_server serve …`` with CHAOS_CLOCK set.

The file holds the milliseconds by which the server's clock is wrong, and is read at every look at the clock.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from dialometer.cli import main
from dialometer.flow.engine import Flow

OFFSET = Path(os.environ["CHAOS_CLOCK"])


def shifted_ms() -> int:
    """The wrong time."""
    return time.time_ns() // 1_000_000 + int(OFFSET.read_text() or 0)


if __name__ == "__main__":
    defaults = Flow.__init__.__kwdefaults__
    assert defaults is not None
    defaults["clock"] = shifted_ms
    main()
