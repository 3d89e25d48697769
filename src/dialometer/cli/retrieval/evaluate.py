"""dialometer retrieval evaluate: how good retrievers are, by whose judgment, and which differ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from dialometer.cli.options import AsJson, Database, Seed
from dialometer.cli.retrieval._shared import Cache, Device, DialogueFile, KbFile, LearnFrom, Lenient, Retrievers
from dialometer.cli.retrieval._tables import CROWD

if TYPE_CHECKING:
    from dialometer.neural.work import Work
    from dialometer.retrieval.crowd_ratings import CrowdRatings
    from dialometer.retrieval.evaluation import Judge, Marks
    from dialometer.retrieval.knowledge_base import KnowledgeBase
    from dialometer.retrieval.queries import QuerySet
    from dialometer.retrieval.retriever import Retriever
    from dialometer.stats.retrieval.metrics import RelevantRanks


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
        cuts: Annotated[list[int], typer.Option("-k", min=1, help="Ranks to cut at; may be given several times.")] = [  # noqa: B006
            1,
            2,
            10,
        ],
        crowd: Annotated[
            Path | None,
            typer.Option("--crowd", help="Ratings: folder of a judged study, or a table question, answer, rating."),
        ] = None,
        good_from: Annotated[
            float | None, typer.Option("--good-from", help="Mean rating from which the crowd calls an answer right.")
        ] = None,
        learn_from: LearnFrom = None,
        cross_validate: Annotated[
            int, typer.Option("--cross-validate", min=0, help="Learn from the other dialogues, in so many folds.")
        ] = 0,
        compare_on: Annotated[
            str, typer.Option("--compare-on", help="Measure of the paired tests, such as SR@1 or MRR.")
        ] = "",
        resample: Annotated[
            str, typer.Option("--resample", help="What intervals draw again: questions or dialogues.")
        ] = "questions",
        resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples.")] = 2000,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Recall, MRR, MAP and Success Rate of retrievers against the maker's labels, the crowd's, and both.

        Answerable and all questions are reported apart, with bootstrap intervals and paired permutation tests, and the
        definitions are printed. With --crowd the crowd's mean rating takes part as a retriever of its own.
        """
        from dialometer.cli.retrieval._shared import chosen, label_of, learned, read_both, working
        from dialometer.cli.retrieval._study import crowd_of
        from dialometer.cli.retrieval._tables import show_evaluation
        from dialometer.errors import DialometerError
        from dialometer.retrieval.evaluation import Resampling, judges_of, measure
        from dialometer.retrieval.evaluation import as_json as plain
        from dialometer.retrieval.retrievers.crowd import Crowd

        if resample not in ("questions", "dialogues"):
            raise DialometerError(f"'{resample}' cannot be drawn", remedy="use questions or dialogues")
        named = chosen([name for name in retrievers if name != CROWD])
        kb, asked = read_both(kb_file, dialogues, lenient=lenient)
        known = learned(kb, learn_from, asked, lenient=lenient)
        judged = crowd_of(crowd, kb, asked, database) if crowd is not None else None
        if judged is None and CROWD in retrievers:
            raise DialometerError("the crowd as a retriever needs ratings", remedy="give them with --crowd")
        least = good_from if good_from is not None else judged.good_from if judged else None
        judges = judges_of(asked, len(kb.answers), judged.ratings if judged else None, least)
        labels = {name: label_of(name, retriever) for name, retriever in named.items()}
        distinct = tuple(dict.fromkeys(cuts))
        with working(device, cache) as work:
            asking = _Asking(known, asked, judges, judged.ratings if judged else None, work, cross_validate, seed)
            ranks, rated = asking.all(named, distinct)
        if judged is not None:
            labels[CROWD] = Crowd.label
        how = Resampling(cast("Literal['questions', 'dialogues']", resample), resamples, seed)
        found = measure(ranks, asked, judges, cuts=distinct, compared_on=compare_on, resampling=how, rated=rated)
        if as_json:
            typer.echo(json.dumps({**plain(found), "labels": labels}, indent=2, ensure_ascii=False))
        else:
            show_evaluation(found, labels)


@dataclass(frozen=True)
class _Asking:
    """Questions put to retrievers, and where each puts what the judges call right."""

    kb: KnowledgeBase
    asked: QuerySet
    judges: list[Judge]
    crowd: CrowdRatings | None
    work: Work
    n_folds: int
    seed: int

    def all(
        self, named: dict[str, Retriever | Path], cuts: tuple[int, ...]
    ) -> tuple[dict[str, list[RelevantRanks]], dict[str, dict[int, float]]]:
        """Ranks by retriever and judge, and which share of each list the crowd has rated; the crowd itself comes last."""
        import numpy as np

        from dialometer.retrieval.evaluation import rated_share, relevant_ranks
        from dialometer.retrieval.retrievers.crowd import Crowd, FittedCrowd

        marked = [judge.marks for judge in self.judges]
        n_judges = len(marked)
        if self.crowd is not None:
            marked.append(~np.isnan(self.crowd.matrix(self.asked.queries, len(self.kb.answers))))
        ranks, rated = {}, {}
        for name, retriever in named.items():
            found = self._ranks(retriever, marked)
            ranks[name] = found[:n_judges]
            if self.crowd is not None:
                rated[name] = rated_share(found[-1], self.judges[-1].has_judged, cuts)
        if self.crowd is not None:
            fitted = FittedCrowd(Crowd(), self.kb, self.crowd)
            ranks[CROWD] = relevant_ranks(fitted, self.asked, marked)[:n_judges]
        return ranks, rated

    def _ranks(self, retriever: Retriever | Path, marked: list[Marks]) -> list[RelevantRanks]:
        """By a retriever that is fitted, loaded, or fitted once per fold."""
        from dialometer.cli.retrieval._shared import fit_or_load
        from dialometer.errors import DialometerError
        from dialometer.retrieval.cross_validation import check_not_learned, cross_validated_scores
        from dialometer.retrieval.evaluation import relevant_ranks
        from dialometer.stats.retrieval.metrics import ranks_from_scores

        if not self.n_folds:
            fitted = fit_or_load(retriever, self.kb, self.work)
            check_not_learned(fitted, self.kb, self.asked, str(retriever))
            return relevant_ranks(fitted, self.asked, marked)
        if isinstance(retriever, Path):
            remedy = "name the retriever, so that it can be fitted fold by fold"
            raise DialometerError("a saved retriever cannot be cross-validated", where=str(retriever), remedy=remedy)
        scores = cross_validated_scores(self.kb, retriever, self.asked, self.work, n_folds=self.n_folds, seed=self.seed)
        return [ranks_from_scores(scores, marks) for marks in marked]
