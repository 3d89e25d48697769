"""Tables of single questions with the answer that is expected of each, as people keep them to test a bot."""

from __future__ import annotations

from pathlib import Path

from dialometer.errors import ReadError
from dialometer.model.dialogue import Dialogue, Turn, clean_text
from dialometer.readers.json_records import first_record
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import delimiter_of, plain_column, table_rows

QUESTION = ("question", "query", "prompt", "input", "utterance")
EXPECTED = ("expected_answer", "expected", "expected_output", "gold_answer", "gold", "reference", "answer", "answer_id")
GROUP = ("dialogue", "dialogue_id", "conversation_id", "id")


def is_question_table(path: str | Path) -> bool:
    """Whether the file has a column of questions and one of expected answers."""
    source = SourceFile(path)
    source.probe()
    head = source.head()
    record = first_record(head)
    line = next((line for line in head.splitlines() if line.strip()), "")
    names = list(record) if isinstance(record, dict) else [cell.strip(' "') for cell in line.split(delimiter_of(line))]
    return bool(_named(names, QUESTION) and _named(names, EXPECTED))


def read_question_table(path: str | Path) -> tuple[list[Dialogue], dict[tuple[str, int], int]]:
    """Each question as a dialogue of one turn with its right answers, and the line of each.

    A question that is asked on several lines has several right answers; one without an answer has none.
    """
    problems = Problems(str(path))
    questions: dict[str, list[str]] = {}
    ids: dict[str, str] = {}
    lines: dict[tuple[str, int], int] = {}
    columns: tuple[str, str, str] | None = None
    for row in table_rows(SourceFile(path), problems, ()):
        columns = columns or (_named(row.cells, QUESTION), _named(row.cells, EXPECTED), _named(row.cells, GROUP))
        question, expected, group = (row.cells.get(name, "") if name else "" for name in columns)
        try:
            question, expected = clean_text(question), clean_text(expected)
        except ValueError as error:
            problems.of_record([problems.problem(str(error), remedy="remove the character", line=row.line)])
            continue
        if not question:
            problems.of_record([problems.problem("there is no question", remedy="fill it in", line=row.line)])
            continue
        if question not in questions:
            name = group.strip() or f"question-{len(questions) + 1}"
            ids[question] = name if name not in ids.values() else f"{name}-line-{row.line}"
            lines[ids[question], 0] = row.line
        questions.setdefault(question, []).extend([expected] if expected else [])
    problems.finish()
    if not questions:
        raise ReadError([problems.problem("there are no questions in the file", remedy="add rows")])
    dialogues = [
        Dialogue(
            ids[question], (Turn("User", question, "user"),), {"exchanges": [{"answers": list(dict.fromkeys(right))}]}
        )
        for question, right in questions.items()
    ]
    return dialogues, lines


def _named(names: object, known: tuple[str, ...]) -> str:
    """The column that means it, by the first of its known names that is there."""
    plain = {plain_column(str(name)): str(name) for name in (names if isinstance(names, list | dict) else ())}
    return next((plain[name] for name in known if name in plain), "")
