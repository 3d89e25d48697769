"""A report to JSON and back, nothing lost: what is not known is null, and numpy's numbers become plain ones."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import (
    Cell,
    Claim,
    Column,
    Figure,
    Headline,
    Method,
    Part,
    Report,
    Section,
    Summary,
    Table,
    Turns,
    Verdict,
)

FORMAT = "dialometer report"
VERSION = 1
_FLOATS = ("value", "low", "high", "confidence", "statistic", "p_value")
_REMEDY = "give the report.json that `dialometer report` wrote"


def report_to_json(report: Report) -> str:
    """The report as JSON text, always the same for the same report."""
    content = {"format": FORMAT, "version": VERSION, **_fields(report)}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def report_from_json(text: str, *, where: str = "report") -> Report:
    """The report that the text holds. ``nan`` in a cell comes back as None; both mean "not enough data"."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DialometerError(f"is not JSON: {error}", where=where, remedy=_REMEDY) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DialometerError("is not a report", where=where, remedy=_REMEDY)
    if content.get("version") != VERSION:
        raise DialometerError(
            f"has version {content.get('version')}, this program reads {VERSION}",
            where=where,
            remedy="update dialometer",
        )
    try:
        return _report(content)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DialometerError(f"is damaged: {error!r}", where=where, remedy="write the report again") from error


def read_report(path: Path) -> Report:
    """Read a ``report.json``, or the one in a report's folder."""
    file = path / "report.json" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise DialometerError(f"cannot be read: {error.strerror}", where=str(file), remedy=_REMEDY) from error
    except UnicodeDecodeError as error:
        raise DialometerError("is not text in UTF-8", where=str(file), remedy=_REMEDY) from error
    return report_from_json(text, where=str(file))


def plain(value: Any) -> Any:
    """A value in what JSON knows; ``nan`` becomes null, infinity the text ``inf``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _tagged(value)
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return plain(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float(value) if math.isfinite(value) else str(value)
    return str(value)


def _tagged(value: Any) -> dict[str, Any]:
    if isinstance(value, Estimate):
        return {"estimate": _fields(value)}
    if isinstance(value, Table | Figure | Turns):
        return {"part": type(value).__name__.lower(), **_fields(value)}
    return _fields(value)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _report(content: Mapping[str, Any]) -> Report:
    return Report(
        study=content["study"],
        title=content["title"],
        summary=_summary(content["summary"]),
        sections=tuple(map(_section, content["sections"])),
        methods=tuple(Method(**method) for method in content["methods"]),
        provenance=content["provenance"],
        is_finished=content["is_finished"],
        has_kinds=content.get("has_kinds", True),
    )


def _summary(content: Mapping[str, Any]) -> Summary:
    return Summary(
        answer=content["answer"],
        certainty=content["certainty"],
        headlines=tuple(
            Headline(**{**headline, "estimate": _cell(headline["estimate"])}) for headline in content["headlines"]
        ),
        exclusions=_table(content["exclusions"]) if content["exclusions"] else None,
        balance=_table(content["balance"]) if content["balance"] else None,
        figure=_figure(content["figure"]) if content["figure"] else None,
        warnings=tuple(content["warnings"]),
        claims=tuple(Claim(**claim) for claim in content.get("claims", ())),
        verdicts=tuple(Verdict(**verdict) for verdict in content.get("verdicts", ())),
        next_steps=tuple(content.get("next_steps", ())),
        hypotheses=_table(content["hypotheses"]) if content.get("hypotheses") else None,
    )


def _section(content: Mapping[str, Any]) -> Section:
    return Section(
        name=content["name"],
        title=content["title"],
        paragraphs=tuple(content["paragraphs"]),
        parts=tuple(map(_part, content["parts"])),
        problem=content["problem"],
        is_confirmatory=content["is_confirmatory"],
        in_appendix=content.get("in_appendix", False),
    )


def _part(content: Mapping[str, Any]) -> Part:
    readers: dict[str, Callable[[Mapping[str, Any]], Part]] = {"table": _table, "figure": _figure, "turns": _turns}
    return readers[content["part"]](content)


def _table(content: Mapping[str, Any]) -> Table:
    return Table(
        name=content["name"],
        title=content["title"],
        columns=tuple(Column(**column) for column in content["columns"]),
        rows=tuple(tuple(map(_cell, row)) for row in content["rows"]),
        caption=content["caption"],
        notes=tuple(content["notes"]),
        is_confirmatory=content["is_confirmatory"],
    )


def _figure(content: Mapping[str, Any]) -> Figure:
    return Figure(**{key: value for key, value in content.items() if key != "part"})


def _turns(content: Mapping[str, Any]) -> Turns:
    rows = tuple(
        (speaker, tuple((kind, before, after) for kind, before, after in stretches))
        for speaker, stretches in content["rows"]
    )
    return Turns(
        name=content["name"],
        title=content["title"],
        rows=rows,
        caption=content["caption"],
        is_markdown=content.get("is_markdown", False),
    )


def _cell(content: Any) -> Any:
    if not isinstance(content, dict):
        return content
    fields = dict(content["estimate"])
    for name in _FLOATS:
        fields[name] = math.nan if fields[name] is None else float(fields[name])
    fields["df"] = tuple(math.nan if df is None else float(df) for df in fields["df"])
    fields["notes"] = tuple(fields["notes"])
    cell: Cell = Estimate(**fields)
    return cell
