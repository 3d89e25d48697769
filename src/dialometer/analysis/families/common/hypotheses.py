"""In every report: the verdict on each hypothesis that was declared, and what to do next."""

from __future__ import annotations

from dataclasses import replace

from dialometer.analysis.base.choose import so_far
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options
from dialometer.analysis.shared.next_steps import FOR_REAL_DATA, NEW_STUDY, next_steps
from dialometer.analysis.shared.verdicts import tested_hypotheses
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items


class Hypotheses(Family):
    """The family of every study; it opens the report with the primary hypothesis but has no section of its own."""

    rank = 860

    def fits(self, study: Study) -> bool:
        """Always: where nothing was declared, the next step is to declare it."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """Verdicts, the first sentence and the next steps."""
        done = so_far(data)
        tested = [replace(hypothesis, so_far=done) for hypothesis in tested_hypotheses(data, options)]
        main = next((one for one in tested if one.is_primary), None)
        n_items = len(set(data.judgments["item"].unique()) - set(gold_items(data.study)))
        steps = next_steps(tested, data.judgments["rater"].n_unique(), n_items)
        if data.sources == ("simulated",):
            steps = tuple(step for step in steps if step not in FOR_REAL_DATA)
        if data.look is not None and (data.look.unfinished or data.study.spec.analysis.looks == "anytime"):
            steps = tuple(step for step in steps if step != NEW_STUDY)
        return Findings(
            "",
            "",
            verdicts=tuple(one.verdict() for one in tested),
            verdict_answer=main.answer() if main else "",
            one_test_answer=main.one_test_answer() if main else "",
            one_test_numbers=main.one_test_numbers() if main else "",
            verdict_counts=main.counts().strip() if main else "",
            verdict_headlines=main.headlines() if main else (),
            next_steps=steps,
        )


ANALYSES.register("hypotheses")(Hypotheses())
