"""Looking early: at which look a report is, what that does to its tests, and what the looks before it found."""

from __future__ import annotations

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options
from dialometer.analysis.base.wording import confidence_words
from dialometer.analysis.shared.looks import at_look
from dialometer.model.report import Column, Method, Section, Table
from dialometer.model.study import Study

TITLE = "Looks before the end"


class EarlyLooks(Family):
    """The family of studies that declare looks before their end."""

    rank = 861

    def fits(self, study: Study) -> bool:
        """Where looks are declared."""
        return study.spec.analysis.looks is not None

    def at_look(self, data: StudyData, options: Options) -> tuple[StudyData, Options]:
        """The look that stopped the study, else the last one."""
        return at_look(data, options)

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section and its method."""
        state = data.look
        if state is None or state.look is None:
            return Findings("", "")
        rows = tuple((one.n, one.level, one.verdict, one.chance) for one in state.checked)
        columns = (
            Column("raters", "Raters", "count"),
            Column("level", "Level of a single test", "p_value"),
            Column("verdict", "Primary hypothesis"),
            Column("chance", "Predicted chance of deciding it by the end", "percent", 0),
        )
        caption = "The chance is predicted from the data of that look, as if its estimate and uncertainty were all that is known."
        table = Table("looks", "Checks of the stopping rule", columns, rows, caption=caption)
        section = Section("looks", TITLE, (state.words,), (table,) if rows else (), in_appendix=True)
        why = (
            f"results are looked at before the end; over all looks together, {confidence_words(options.confidence)} of the "
            "confidence intervals of a comparison hold at every look. Raters count as the information; where items are a "
            "sample, this is on the safe side"
        )
        method = Method("looks before the end", state.look.method(), why)
        return Findings("", "", sections=(section,), methods=(method,))


ANALYSES.register("looks")(EarlyLooks())
