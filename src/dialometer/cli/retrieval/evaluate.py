"""dialometer retrieval evaluate: how good retrievers are, by whose judgment, and which differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dialometer.cli.options import AsJson, Cache, Database, Device, Seed, Speakers
from dialometer.cli.retrieval._shared import (
    CrowdFile,
    DialogueFile,
    GoodFrom,
    KbFile,
    LearnFrom,
    Lenient,
    MarksFile,
    Retrievers,
)

if TYPE_CHECKING:
    from dialometer.retrieval.evaluation import ResampledUnit


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="evaluate",
        epilog="Example: dialometer retrieval evaluate kb.csv dialogues.jsonl -r untrained --crowd judged-study",
    )
    def evaluate(
        kb_file: KbFile,
        dialogues: DialogueFile,
        retrievers: Retrievers = ["untrained"],  # noqa: B006 - typer copies it
        cuts: Annotated[list[int], typer.Option("-k", min=1, help="Rank cutoffs; may be given several times.")] = [  # noqa: B006
            1,
            2,
            10,
        ],
        crowd: CrowdFile = None,
        good_from: GoodFrom = None,
        by: Annotated[
            str, typer.Option("--by", help="Also by groups of questions: coreference (with and without).")
        ] = "",
        marks: MarksFile = None,
        learn_from: LearnFrom = None,
        cross_validate: Annotated[
            int, typer.Option("--cross-validate", min=0, help="Number of folds, to learn from the other dialogues.")
        ] = 0,
        compare_on: Annotated[
            str, typer.Option("--compare-on", help="Metric of the paired tests, such as SR@1 or MRR.")
        ] = "",
        resample: Annotated[
            str, typer.Option("--resample", help="What the bootstrap draws: questions or dialogues.")
        ] = "questions",
        resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples.")] = 2000,
        failed: Annotated[
            Path | None,
            typer.Option("--failed", help="Write the questions that failed at rank 1, with what was answered, as CSV."),
        ] = None,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        database: Database = "",
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Recall, MRR, MAP and Success Rate of retrievers against the maker's labels, the crowd's, and both.

        Answerable and all questions are reported separately, with bootstrap intervals and paired permutation tests, and the
        definitions of the metrics. With --crowd, the crowd's mean rating is evaluated as another retriever. Instead of
        dialogues, you can give a table with the columns question and expected_answer.
        """
        from dialometer.cli.console import working
        from dialometer.cli.retrieval._shared import read_both, read_learn_from
        from dialometer.cli.retrieval._study import crowd_of
        from dialometer.cli.retrieval._tables import show_evaluation, show_failed
        from dialometer.errors import DialometerError
        from dialometer.retrieval.evaluate_retrievers import evaluate_retrievers
        from dialometer.retrieval.evaluation import Resampling
        from dialometer.retrieval.evaluation import as_json as plain
        from dialometer.retrieval.failed_questions import failed_questions, write_failed
        from dialometer.retrieval.questions.question_groups import coreference_groups, group_scores
        from dialometer.retrieval.retrievers.crowd import Crowd
        from dialometer.retrieval.selection import CROWD, retriever_label, select_retrievers

        if resample not in ("questions", "dialogues"):
            raise DialometerError(f"'{resample}' cannot be drawn", remedy="use questions or dialogues")
        if by not in ("", "coreference"):
            raise DialometerError(f"questions have no groups by '{by}'", remedy="use --by coreference")
        selected = select_retrievers(name for name in retrievers if name != CROWD)
        kb, query_set = read_both(kb_file, dialogues, lenient=lenient, marks=marks)
        groups = coreference_groups(query_set) if by or marks is not None else []
        lessons = read_learn_from(learn_from, kb, query_set, lenient=lenient)
        judged = crowd_of(crowd, kb, query_set, database, lenient=lenient) if crowd is not None else None
        if judged is None and CROWD in retrievers:
            raise DialometerError("the crowd as a retriever needs ratings", remedy="give them with --crowd")
        with working(device, cache) as work:
            evaluation = evaluate_retrievers(
                kb,
                query_set,
                selected,
                learn_from=lessons,
                crowd=judged.ratings if judged else None,
                good_from=good_from if good_from is not None else judged.good_from if judged else None,
                n_folds=cross_validate,
                cutoffs=cuts,
                compare_on=compare_on,
                resampling=Resampling(cast("ResampledUnit", resample), resamples, seed),
                work=work,
            )
        labels = {name: retriever_label(name, retriever) for name, retriever in selected.items()}
        if judged is not None:
            labels[CROWD] = Crowd.label
        by_group = group_scores(evaluation, query_set, groups) if groups else []
        wrong = failed_questions(evaluation, query_set, kb)
        if failed is not None:
            write_failed(failed, wrong)
        if as_json:
            content = {**plain(evaluation, by_group), "labels": labels}
            content["failed"] = {name: [question.id for question in questions] for name, questions in wrong.items()}
            typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        else:
            show_evaluation(evaluation, labels, by_group)
            show_failed(wrong, labels, failed)
