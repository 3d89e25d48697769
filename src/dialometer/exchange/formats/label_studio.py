"""Answers of a Label Studio project: its JSON export, with one entry per item and one annotation per rater."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.formats.form import FORMATS, Format, Intake
from dialometer.exchange.forms.tool_form import FormAnswers, read_key
from dialometer.exchange.records import UNKNOWN_MS, Record, read_time_ms
from dialometer.readers.reader import Head
from dialometer.readers.source import Source

CANCELLED = "skipped annotations"
NOT_READ = "results of a kind that is no rating"
_VALUES = {
    "rating": "rating",
    "number": "number",
    "choices": "choices",
    "pairwise": "selected",
    "textarea": "text",
}


@FORMATS.register("label_studio")
class LabelStudio(Format):
    """The export called JSON (not JSON-MIN, which does not say who answered)."""

    summary: ClassVar[str] = "answers of a Label Studio project (its JSON export)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Entries with annotations that have results."""
        if not path.is_file() or path.suffix.lower() != ".json":
            return False
        try:
            head = Head(".json", Source(path).head())
        except OSError:
            return False
        text = head.text.lstrip()
        return text.startswith("[") and '"annotations"' in text and '"from_name"' in text and '"result"' in text

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each answered field."""
        answers = FormAnswers(intake, read_key(intake.path))
        try:
            entries = json.loads(intake.source.text(intake.problems))
        except (ValueError, RecursionError) as error:
            intake.wrong(0, f"this is not JSON ({error})", "export the project again, as JSON")
            return
        for number, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
            data = entry.get("data") if isinstance(entry, dict) else None
            annotations = entry.get("annotations") if isinstance(entry, dict) else None
            if not isinstance(data, dict) or not isinstance(annotations, list):
                intake.wrong(number, "an entry without data or annotations", "export the project again, as JSON")
                continue
            item = str(data.get("item") or entry.get("id") or "")
            for annotation in annotations:
                yield from _annotation(annotation, item, number, answers, intake)


def _annotation(
    annotation: Mapping[str, Any], item: str, line: int, answers: FormAnswers, intake: Intake
) -> Iterator[Record]:
    if annotation.get("was_cancelled"):
        intake.left_out[CANCELLED] += 1
        return
    values: dict[str, object] = {}
    for result in annotation.get("result") or ():
        kind = result.get("type", "")
        if kind not in _VALUES:
            intake.left_out[NOT_READ] += 1
            continue
        raw = (result.get("value") or {}).get(_VALUES[kind])
        if isinstance(raw, list) and len(raw) == 1:
            raw = raw[0]
        values[str(result.get("from_name"))] = raw
    answered = _time_ms(annotation.get("created_at"))
    lead_s = annotation.get("lead_time")
    shown = answered - round(lead_s * 1000) if answered and isinstance(lead_s, int | float) else UNKNOWN_MS
    yield from answers.records(_rater(annotation), item, values, line=line, shown_at_ms=shown, answered_at_ms=answered)


def _rater(annotation: Mapping[str, Any]) -> str:
    """Who answered: an id, or an object with an address, as the export's settings have it."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        return str(by.get("email") or by.get("id") or "")
    return str(by if by is not None else annotation.get("id", ""))


def _time_ms(text: object) -> int:
    try:
        return read_time_ms(str(text)) if text else UNKNOWN_MS
    except ValueError:
        return UNKNOWN_MS
