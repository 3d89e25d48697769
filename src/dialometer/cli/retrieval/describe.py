"""dialometer retrieval describe: a knowledge base and dialogues in numbers, with everything that is wrong in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dialometer.cli.options import AsJson
from dialometer.cli.retrieval._shared import KbFile, Lenient


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="describe", epilog="Example: dialometer retrieval describe kb.csv dialogues.jsonl")
    def describe(
        kb_file: KbFile,
        dialogues: Annotated[
            Path | None, typer.Argument(metavar="DIALOGUES", help="Dialogues with questions as people asked them.")
        ] = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Count questions, answers and pairs, and how many questions of the dialogues have a right answer.

        Rows without an answer, repeated pairs and marked answers that are not in the knowledge base are listed
        with their lines.
        """
        import numpy as np

        from dialometer.cli.console import results
        from dialometer.cli.retrieval._shared import read_both
        from dialometer.retrieval.knowledge_base import read_knowledge_base

        query_set = None
        if dialogues is None:
            kb = read_knowledge_base(kb_file)
        else:
            kb, query_set = read_both(kb_file, dialogues, lenient=lenient)
        n_answers_of = np.bincount(kb.pair_question, minlength=len(kb.questions))
        counts: dict[str, Any] = {
            "n_pairs": kb.n_pairs,
            "n_answers": len(kb.answers),
            "n_questions": len(kb.questions),
            "n_answers_with_several_questions": int((kb.n_questions_of > 1).sum()),
            "n_answers_without_question": int((kb.n_questions_of == 0).sum()),
            "n_questions_with_several_answers": int((n_answers_of > 1).sum()),
        }
        if query_set is not None:
            counts |= {
                "n_dialogues": len(set(query_set.dialogues)),
                "n_questions_asked": len(query_set),
                "n_questions_with_right_answer": sum(bool(right) for right in query_set.right),
                "n_right_answers": sum(len(right) for right in query_set.right),
            }
            marks = [query.coreference for query in query_set.queries if query.coreference is not None]
            if marks:
                counts["n_questions_marked_with_coreference"] = sum(marks)
                counts["n_questions_marked_without_coreference"] = len(marks) - sum(marks)
        if as_json:
            typer.echo(json.dumps(counts, indent=2))
            return
        for name, value in counts.items():
            results.print(f"{value:>8,}  {name.removeprefix('n_').replace('_', ' ')}")
