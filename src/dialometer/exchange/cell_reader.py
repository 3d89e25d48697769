"""Reading the cells of a table by the role of their column; what cannot be read is reported with its line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern

from dialometer.exchange.columns import Columns
from dialometer.exchange.import_format import Intake
from dialometer.exchange.records import UNKNOWN_MS, Condition, checked_time_ms, read_time_ms
from dialometer.model.dialogue import clean_text
from dialometer.model.values import is_missing, to_number
from dialometer.readers.table_rows import some_columns
from dialometer.registry import did_you_mean
from dialometer.storage.table import FACTOR_PREFIX

Cells = Mapping[str, str]
_YES = ("yes", "y", "true", "1", "1.0")
MOST_MINUTES = 100_000.0
MOST_SECONDS = 60 * MOST_MINUTES
_NO = ("no", "n", "false", "0", "0.0")


class CellReader:
    """Reads what plays a role in a row; what cannot be read is reported and comes as empty, None or unknown."""

    def __init__(self, intake: Intake, columns: Columns) -> None:
        self.intake = intake
        self.columns = columns
        self.factors = [
            (role.removeprefix(FACTOR_PREFIX), role)
            for role in (*columns.by_role, *columns.constants)
            if role.startswith(FACTOR_PREFIX)
        ]

    def check_roles(self, line: int) -> None:
        """Report every column that was asked for, or is needed, and is not there."""
        header = list(self.columns.header)
        for role, column in self.columns.missing:
            if column:
                self.intake.wrong(
                    line, f"there is no column '{column}' for the {role}", did_you_mean(column, header[:200])
                )
            else:
                remedy = f"name the column with --map {role}=COLUMN; the file has {some_columns(header)}"
                self.intake.wrong(line, f"no column is known to hold the {role}", remedy)

    def needed(self, cells: Cells, role: str, line: int, number: int = 0) -> str:
        """A text that must be there."""
        value = self.columns.text(cells, role, number)
        if not value:
            self.intake.wrong(line, f"the {role} is missing", "fill the cell", self.column(role, number))
        return self._clean(value, role, line)

    def text(self, cells: Cells, role: str, line: int, number: int = 0) -> str:
        """A text that may be there."""
        return self._clean(self.columns.text(cells, role, number), role, line)

    def _clean(self, text: str, role: str, line: int) -> str:
        if not text:
            return ""
        try:
            return _cleaned(text)
        except ValueError as error:
            self.intake.wrong(line, f"the {role} holds a {error}", "remove the character", self.column(role))
            return ""

    def times(self, cells: Cells, line: int) -> tuple[int, int]:
        """When it was shown and when it was submitted, as far as the row tells."""
        answered = self._time(cells, "time", line)
        shown = self._time(cells, "shown_at", line)
        seconds = self.columns.text(cells, "duration_s")
        if not is_missing(seconds) and answered and not shown:
            try:
                shown = checked_time_ms(answered - _seconds_ms(seconds), seconds)
            except ValueError:
                message = f"'{seconds}' is not a number of seconds"
                self.intake.wrong(line, message, "correct the cell", self.column("duration_s"))
        if shown and answered and shown > answered:
            self.intake.wrong(line, "it was submitted before it was shown", "check the two times", self.column("time"))
        return shown, answered

    def _time(self, cells: Cells, role: str, line: int) -> int:
        text = self.columns.text(cells, role)
        if is_missing(text):
            return UNKNOWN_MS
        try:
            return _time_ms(text, self.intake.options.time_format)
        except ValueError as error:
            remedy = "give its form with --time-format, such as '%m/%d/%Y %H:%M:%S'"
            self.intake.wrong(line, str(error), remedy, self.column(role))
            return UNKNOWN_MS

    def whole(self, cells: Cells, role: str, line: int, *, least: int) -> int | None:
        """A whole number that may be there."""
        text = self.columns.text(cells, role)
        if is_missing(text):
            return None
        if text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least:
            return int(text)
        self.intake.wrong(
            line, f"'{text}' is not a whole number of {least} or more", "correct the cell", self.column(role)
        )
        return None

    def minutes(self, cells: Cells, role: str, line: int) -> float | None:
        """A number of minutes above zero that may be there."""
        text = self.columns.text(cells, role)
        if is_missing(text):
            return None
        number = to_number(text)
        if number is not None and 0 < number < MOST_MINUTES:
            return number
        self.intake.wrong(line, f"'{text}' is not a number of minutes", "correct the cell", self.column(role))
        return None

    def yes_or_no(self, cells: Cells, role: str, line: int) -> bool | None:
        """Yes or no in the usual spellings; None where the cell is empty."""
        text = self.columns.text(cells, role).casefold()
        if is_missing(text):
            return None
        if text in _YES or text in _NO:
            return text in _YES
        self.intake.wrong(line, f"'{text}' is neither yes nor no", "write yes or no", self.column(role))
        return None

    def condition(self, cells: Cells, line: int) -> Condition:
        """The levels of all factors that the row has."""
        levels = [(name, self.text(cells, role, line)) for name, role in self.factors]
        return _shared(tuple((name, level) for name, level in levels if level))

    def column(self, role: str, number: int = 0) -> str:
        """The column of a role, for messages."""
        return self.columns.numbered.get(role, {}).get(number) or self.columns.by_role.get(role, role)


def _seconds_ms(text: str) -> int:
    number = to_number(text)
    if number is None or not 0 <= number < MOST_SECONDS:
        raise ValueError(text)
    return round(number * 1000)


@lru_cache(maxsize=65_536)
def _cleaned(text: str) -> str:
    return intern(clean_text(text))


@lru_cache(maxsize=65_536)
def _time_ms(text: str, time_format: str) -> int:
    return read_time_ms(text, time_format)


@lru_cache(maxsize=4_096)
def _shared(condition: Condition) -> Condition:
    return condition
