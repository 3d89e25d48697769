"""Texts that a spreadsheet would run as a formula: marked with an apostrophe in exported CSV, and read back without it.

A rater who types ``=HYPERLINK(…)`` into a form must not run anything on the machine of whoever opens the export. The apostrophe is
what spreadsheet programs themselves use for "this is text". Negative numbers stay numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

OPTION = "escape_formulas"
"""In the manifest of an export: whether its tables are marked so."""
_RISKY = r"^'*[=+\-@\t\r]"
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_MARKED = r"^'('*[=+\-@\t\r])"
_MARKED_TEXT = re.compile(_MARKED)


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with every text that could be a formula marked."""
    import polars as pl  # noqa: PLC0415 - heavy, and not needed to import

    texts = pl.col(pl.String)
    is_risky = texts.str.contains(_RISKY) & ~texts.str.contains(_NUMBER)
    return frame.with_columns(pl.when(is_risky).then("'" + texts).otherwise(texts).name.keep())


def restored_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows as they were before :func:`escaped`."""
    import polars as pl  # noqa: PLC0415

    return frame.with_columns(pl.col(pl.String).str.replace(_MARKED, "$1"))


def restored(text: str) -> str:
    """A text as it was before it was marked."""
    return _MARKED_TEXT.sub(r"\1", text, count=1) if text.startswith("'") else text


def is_escaped(manifest: Mapping[str, Any] | None, *, default: bool) -> bool:
    """Whether the tables of an export are marked; ``default`` where there is no manifest that says so."""
    options = (manifest or {}).get("options")
    return bool(options.get(OPTION, False)) if isinstance(options, dict) else default
