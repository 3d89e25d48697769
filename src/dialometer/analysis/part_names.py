"""Names of a report's parts that stay unique when several families speak in one report."""

from __future__ import annotations

from dataclasses import replace

from dialometer.analysis.family import Findings
from dialometer.model.report import Section


def with_prefix(findings: Findings, prefix: str) -> Findings:
    """The same findings; every section, table and figure carries the family's prefix in its name."""

    def named(name: str) -> str:
        return name if name == prefix or name.startswith(f"{prefix}-") else f"{prefix}-{name}"

    def section(one: Section) -> Section:
        parts = tuple(replace(part, name=named(part.name)) for part in one.parts)
        return replace(one, name=named(one.name), parts=parts)

    figure = findings.figure
    return replace(
        findings,
        figure=None if figure is None else replace(figure, name=named(figure.name)),
        sections=tuple(section(one) for one in findings.sections),
    )
