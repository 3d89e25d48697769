"""Texts that a spreadsheet would run as a formula: marked with an apostrophe in CSV, and read back from exports without it.

A rater who types ``=HYPERLINK(…)`` into a form must not run anything on the machine of whoever opens the file. The apostrophe is
what spreadsheet programs themselves use for "this is text". Negative numbers stay numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

OPTION = "escape_formulas"
"""In the manifest of an export: whether its tables are marked so."""
_BEGINNING = r"'*(?:[\s\x1c-\x1f]*[=+\-@]|[\t\r])"
"""Also after blanks and line ends, which some programs remove."""
_RISKY = f"^{_BEGINNING}"
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_MARKED = f"^'({_BEGINNING})"
_RISKY_TEXT, _NUMBER_TEXT, _MARKED_TEXT = (re.compile(rule) for rule in (_RISKY, _NUMBER, _MARKED))


def escaped_text(text: str) -> str:
    """The text as :func:`escaped` writes it."""
    return f"'{text}" if _RISKY_TEXT.match(text) and not _NUMBER_TEXT.fullmatch(text) else text


def escaped_row(cells: Iterable[object]) -> list[object]:
    """A row of a table with its texts marked; numbers stay what they are."""
    return [escaped_text(cell) if isinstance(cell, str) else cell for cell in cells]


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
