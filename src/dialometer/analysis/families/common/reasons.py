"""The reasons that raters gave in their own words, beside what they chose: a list in the appendix, no statistics."""

from __future__ import annotations

import json

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.wording import criterion_label, n_of, percent, system_label
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.model.study import Criterion, Study

TITLE = "Reasons in raters' own words"
MOST_LISTED = 300
_KEY = ["rater", "item", "system", "turn", "position"]


def reasoned(study: Study) -> list[Criterion]:
    """The criteria that ask for reasons."""
    return [criterion for criterion in study.spec.criteria if criterion.reason]


class Reasons(Family):
    """The family of every study that asks for reasons; it never gives the answer."""

    rank = 810

    def fits(self, study: Study) -> bool:
        """Where a criterion asks for reasons."""
        return bool(reasoned(study))

    def run(self, data: StudyData, options: Options) -> Findings:
        """A table for each criterion."""
        section = section_or_problem("reasons", TITLE, lambda: reasons_section(data))
        return Findings("", "", sections=in_appendix((section,)))


def reasons_section(data: StudyData) -> Section:
    """Every reason with the item, what was chosen and by whom; how many answers have one."""
    words, tables = [], []
    for criterion in reasoned(data.study):
        answers = data.of_criterion(criterion.name)
        given = data.of_criterion(criterion.reason_name).select(*_KEY, pl.col("choice").alias("reason"))
        both = given.join(answers.select(*_KEY, "answer"), on=_KEY, how="left", nulls_equal=True).sort(
            "item", "rater", maintain_order=True
        )
        label = criterion_label(data.study, criterion.name)
        share = f" ({percent(len(given) / len(answers))} of {n_of(len(answers), 'answer')})" if len(answers) else ""
        words.append(f"{label}: {n_of(len(given), 'reason')}{share}.")
        listed = both.select("item", "answer", "system", "reason", "rater").head(MOST_LISTED)
        rows: list[tuple[Cell, ...]] = [
            (item, _chosen(data.study, answer, system or ""), reason or "", rater)
            for item, answer, system, reason, rater in listed.iter_rows()
        ]
        columns = (
            Column("item", "Item"),
            Column("answer", "Answer"),
            Column("reason", "Reason"),
            Column("rater", "Rater"),
        )
        caption = "As raters wrote them."
        if len(both) > MOST_LISTED:
            caption += f" The first {MOST_LISTED} of {len(both):,}; dialometer export writes all of them."
        tables.append(Table(f"reasons-{criterion.name}", f"Reasons: {label}", columns, tuple(rows), caption=caption))
    return Section("reasons", TITLE, tuple(words), tuple(tables))


def _chosen(study: Study, answer: str | None, system: str) -> str:
    """An answer in words, with the labels of systems; what one system was given is preceded by its name."""
    if answer is None:
        return ""
    value = json.loads(answer)
    if isinstance(value, dict):
        said = ", ".join(f"{part}: {system_label(study, str(name))}" for part, name in value.items())
    elif isinstance(value, list):
        said = " > ".join(system_label(study, str(name)) for name in value)
    else:
        said = system_label(study, str(value)).replace("_", " ")
    return f"{system_label(study, system)}: {said}" if system else said


ANALYSES.register("reasons")(Reasons())
