"""The report as Markdown, for repositories, wikis and notes: tables in full, figures as links."""

from __future__ import annotations

import re
from pathlib import Path

from dialometer.model.report import Figure, Headline, Part, Report, Section, Summary, Table, Turns
from dialometer.report.drawing import DrawingError
from dialometer.report.numbers import (
    APPENDIX,
    CONFIRMATORY,
    EXPLORATORY,
    INTERIM,
    NEXT_STEPS,
    as_sentence,
    other_facts,
    reproduce_lines,
    write_headline,
)
from dialometer.report.render import FORMATS, Rendering
from dialometer.report.written import WrittenCell, write_table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&#])")
_LINE_START = re.compile(r"^(\s*)([-+=])", re.MULTILINE)
_NUMBERED = re.compile(r"^(\s*\d+)([.)])", re.MULTILINE)
_RULES = {"left": ":---", "right": "---:", "center": ":---:"}


@FORMATS.register("markdown")
def write(rendering: Rendering) -> list[Path]:
    """``report.md``; figures are linked where the figure files are written beside it."""
    path = rendering.folder / "report.md"
    path.write_text(_document(rendering), encoding="utf-8", newline="\n")
    return [path]


def escape(text: str) -> str:
    """Text that Markdown shows as it stands, in one paragraph."""
    flat = " ".join(text.split())
    return _NUMBERED.sub(r"\1\\\2", _LINE_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", flat)))


def _document(rendering: Rendering) -> str:
    report = rendering.report
    blocks = [f"# {escape(report.title)}", f"Study: {escape(report.study)}"]
    if not report.is_finished:
        blocks.append(f"> **{INTERIM[0]}.** {INTERIM[1]}")
    blocks += _summary(rendering, report.summary)
    for section in report.main_sections:
        blocks += _section(rendering, section)
    blocks += _methods(report)
    blocks += _provenance(report)
    if report.appendix:
        blocks += [f"# {APPENDIX[0]}", APPENDIX[1]]
    for section in report.appendix:
        blocks += _section(rendering, section)
    return "\n\n".join(blocks) + "\n"


def _summary(rendering: Rendering, summary: Summary) -> list[str]:
    blocks = ["## Summary", f"**{escape(summary.answer)}**", *filter(None, [escape(summary.certainty)])]
    if summary.warnings:
        blocks.append("\n".join(f"- **Note:** {escape(warning)}" for warning in summary.warnings))
    if summary.headlines:
        blocks.append("\n".join(f"- {_headline(rendering, headline)}" for headline in summary.headlines))
    parts = (summary.hypotheses, summary.figure, summary.exclusions, summary.balance)
    blocks += [block for part in parts if part is not None for block in _summary_part(rendering, part)]
    if summary.next_steps:
        blocks += [f"### {NEXT_STEPS}", "\n".join(f"- {escape(step)}" for step in summary.next_steps)]
    return blocks


def _summary_part(rendering: Rendering, part: Table | Figure) -> list[str]:
    """A part of the summary; counts are neither confirmatory nor exploratory."""
    return _part(rendering, part, part.is_confirmatory or isinstance(part, Figure))


def _kind(rendering: Rendering, is_confirmatory: bool) -> str:
    """Empty where a report makes no difference between the two."""
    return (CONFIRMATORY if is_confirmatory else EXPLORATORY) if rendering.report.has_kinds else ""


def _headline(rendering: Rendering, headline: Headline) -> str:
    written = write_headline(headline)
    kind = _kind(rendering, headline.is_confirmatory).lower()
    value = f"{written.value} {written.unit}".strip()
    numbers = ", ".join(escape(text) for text in (value, written.interval, written.test) if text)
    notes = "".join(f" {escape(as_sentence(note))}" for note in written.notes)
    return f"**{escape(headline.label)}: {numbers}**{f' ({kind})' if kind else ''}. {escape(headline.sentence)}{notes}"


def _section(rendering: Rendering, section: Section) -> list[str]:
    kind = _kind(rendering, section.is_confirmatory)
    blocks = [f"## {escape(section.title)}", *([f"*{kind}*"] if kind else [])]
    if section.problem:
        blocks.append(f"> This part could not be computed: {escape(as_sentence(section.problem))}")
    blocks += [escape(paragraph) for paragraph in section.paragraphs]
    return blocks + [block for part in section.parts for block in _part(rendering, part, section.is_confirmatory)]


def _part(rendering: Rendering, part: Part, is_confirmatory: bool) -> list[str]:
    if isinstance(part, Turns):
        return _turns(part)
    differs = part.is_confirmatory != is_confirmatory
    name = _kind(rendering, part.is_confirmatory).lower()
    kind = f" ({name})" if differs and name else ""
    head = f"### {escape(part.title)}{kind}"
    body = _figure(rendering, part) if isinstance(part, Figure) else markdown_table(part)
    return [head, *([escape(part.caption)] if part.caption else []), *body]


def markdown_table(table: Table) -> list[str]:
    """The table and, below it, its notes."""
    written = write_table(table)
    if not written.rows:
        return [escape(remark) for remark in written.remarks] or ["*No rows.*"]
    lines = [
        f"| {' | '.join(escape(heading.label) for heading in written.headings)} |",
        f"| {' | '.join(_RULES[heading.align] for heading in written.headings)} |",
        *(f"| {' | '.join(map(_cell, row))} |" for row in written.rows),
    ]
    notes = [f"- <sup>{mark}</sup> {escape(note)}" for mark, note in written.footnotes]
    notes += [f"- {escape(remark)}" for remark in written.remarks]
    return ["\n".join(lines), *(["\n".join(notes)] if notes else [])]


def _cell(cell: WrittenCell) -> str:
    text = escape(cell.text) if cell.is_known else f"*{escape(cell.value)}*"
    return text + (f"<sup>{','.join(cell.marks)}</sup>" if cell.marks else "")


def _figure(rendering: Rendering, figure: Figure) -> list[str]:
    if "figures" not in rendering.formats:
        return [f"*Figure:* {escape(figure.alt)}"]
    try:
        rendering.drawings.svg(figure)
    except DrawingError as error:
        return [f"> This figure {escape(error.message)}.", f"*Figure:* {escape(figure.alt)}"]
    name = next(name for known, name in rendering.figures() if known is figure)
    return [f"![{escape(figure.alt)}](figures/{name}.svg)"]


def _turns(turns: Turns) -> list[str]:
    blocks = [f"### {escape(turns.title)}", *([escape(turns.caption)] if turns.caption else [])]
    lines = []
    for speaker, stretches in turns.rows:
        marked = "".join(_stretch(*stretch) for stretch in stretches)
        lines.append(f"- **{escape(speaker)}:** {marked.strip()}")
    key = "~~Struck~~: only in the first transcript. **Bold**: only in the second."
    if turns.has_heat:
        key = "**Bold**: marked, with the number of raters."
    return [*blocks, "\n".join(lines), key]


def _stretch(kind: str, before: str, after: str) -> str:
    if kind == "equal":
        return _marked(after)
    if kind.startswith("heat-"):
        return _marked(after, "**", "b", f" ({escape(before)})")
    gone = _marked(before, "~~", "del") if before.strip() else ""
    are_words = bool(gone) and before[-1].isalnum() and after[:1].isalnum()
    return gone + (" " if are_words else "") + _marked(after, "**", "b")


def _marked(text: str, mark: str = "", tag: str = "", remark: str = "") -> str:
    """Part of a sentence with its spaces, which stay outside the marks. Marks beside a point or comma would not be read as such
    within a word, so there it is a tag."""
    inner = text.strip()
    if not inner:
        return " " if text else ""
    start, end = mark, mark
    is_read = all(edge.isalnum() or side.isspace() for edge, side in ((inner[0], text[0]), (inner[-1], text[-1])))
    if mark and not is_read:
        start, end = f"<{tag}>", f"</{tag}>"
    before, after = (" " if side.isspace() else "" for side in (text[0], text[-1]))
    return f"{before}{start}{escape(inner)}{end}{remark}{after}"


def _methods(report: Report) -> list[str]:
    if not report.methods:
        return []
    rows = [[method.what, method.method, method.why, method.source] for method in report.methods]
    lines = ["| What | Method | Why this one | Source |", "| :--- | :--- | :--- | :--- |"]
    return ["## Methods", "\n".join([*lines, *(f"| {' | '.join(map(escape, row))} |" for row in rows)])]


def _provenance(report: Report) -> list[str]:
    named = {key.removeprefix("n_").replace("_", " "): value for key, value in other_facts(report).items()}
    facts = "\n".join(f"- {escape(name)}: {escape(value)}" for name, value in named.items())
    sentence, command = reproduce_lines(report)
    return ["## How to reproduce this", escape(sentence), f"```\n{command}\n```", *([facts] if facts else [])]
