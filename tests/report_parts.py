"""Parts of a report by their names, and all that it says, for tests of what is in it."""

from dialometer.model.report import Report, Table


def by_name(report):
    """The sections by their names."""
    return {section.name: section for section in report.sections}


def section_of(report, name):
    """The section of that name."""
    return next(section for section in report.sections if section.name == name)


def tables_of(report):
    """The tables of all sections by their names."""
    return {part.name: part for section in report.sections for part in section.parts if isinstance(part, Table)}


def table_of(report, name):
    """The table of that name; in a whole report also one of its summary."""
    tables = report.tables() if isinstance(report, Report) else tables_of(report).values()
    return next(table for table in tables if table.name == name)


def rows_of(table):
    """The rows of a table, each as its cells by the names of their columns."""
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def said(report):
    """All words of a report: answer, warnings, problems, paragraphs, captions and notes."""
    texts = [report.summary.answer, report.summary.certainty, *report.summary.warnings]
    for section in report.sections:
        texts += [section.problem, *section.paragraphs]
        for part in section.parts:
            texts += [part.caption, *(part.notes if isinstance(part, Table) else ())]
    return " ".join(texts)
