"""The looks that a study declares: the data and the tests of the last one, and whether the declared rule stops the study.

Everything follows from the data, not from who opened a page when. Planned looks are made at the first raters to finish, so
many as declared; the stopping rule is checked there or, with looks at any time, whenever so many more raters have finished.
A report made later, by others and from an export, therefore comes to the same look and the same stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.look_state import Checked, LookState, StopReason
from dialometer.analysis.base.wording import confidence_words, n_of, percent
from dialometer.analysis.shared.comparisons import p_adjusted
from dialometer.analysis.shared.equivalence import has_margin
from dialometer.analysis.shared.verdicts import DeclaredHypothesis, tested_hypotheses
from dialometer.design.protocol import protocol
from dialometer.model.analysis_plan import Analysis
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.stats.effects.multiplicity import at_look as correction_at
from dialometer.stats.sequential.anytime import FIRST, AnytimeLook
from dialometer.stats.sequential.look import SequentialLook
from dialometer.stats.sequential.planned import PlannedLook

LATER = "raters who finished after this look"
SOME_RATERS = 100
"""For how many raters looks at any time are made narrowest where the study does not say how many it takes."""
ELSEWHERE = "Confidence intervals of other numbers (means of single systems, agreement) assume that the number of raters was fixed."


def n_planned(study: Study) -> int:
    """The raters at the planned end."""
    declared = study.spec.analysis.looks
    return declared[-1] if isinstance(declared, list) else protocol(study).n_raters or SOME_RATERS


def look_at(analysis: Analysis, planned: int, reached: Sequence[int]) -> SequentialLook:
    """The look at the last of these numbers of raters."""
    if isinstance(analysis.looks, list):
        return PlannedLook(tuple(reached), tuple(analysis.looks), analysis.spending)
    return AnytimeLook(reached[-1], planned, 1 - analysis.confidence)


N_TRIED = 10
"""Looks at any time that a power analysis tries."""


def resized_looks(study: Study, n_raters: int) -> tuple[Study, list[int]]:
    """The study with so many raters, its planned looks moved in proportion, and the numbers of raters at them.

    Looks at any time are tried at every tenth of the raters.
    """
    analysis = study.spec.analysis
    if isinstance(analysis.looks, list):
        shares = [n / analysis.looks[-1] for n in analysis.looks]
    else:
        shares = [(place + 1) / N_TRIED for place in range(N_TRIED)]
    numbers = sorted({max(2, round(share * n_raters)) for share in shares})
    looks = numbers if isinstance(analysis.looks, list) else analysis.looks
    update = {
        "analysis": analysis.model_copy(update={"looks": looks}),
        "recruitment": study.spec.recruitment.model_copy(update={"quota": n_raters}),
    }
    return replace(study, spec=study.spec.model_copy(update=update)), numbers


def tests_at_looks(
    data: StudyData, options: Options, tests: Callable[[StudyData, Options], Mapping[str, Estimate]]
) -> dict[str, Estimate]:
    """Each test of the primary comparison at the look where it is most significant: what a study finds at any look."""
    raters = data.raters_by_finish()
    study, numbers = resized_looks(data.study, len(raters))
    whole, best = replace(data, study=study), dict[str, Estimate]()
    for place, n in enumerate(numbers):
        if isinstance(study.spec.analysis.looks, list) or n >= FIRST:
            here = look_data(whole, options, raters, numbers[: place + 1])
            for label, test in tests(here.data, here.options).items():
                if label not in best or p_adjusted(test) < p_adjusted(best[label]):
                    best[label] = test
    return best


@dataclass(frozen=True)
class LookData:
    """One look: the data, the settings under which their tests hold, and the primary hypothesis."""

    data: StudyData
    options: Options
    look: SequentialLook

    def hypothesis(self) -> DeclaredHypothesis | None:
        """The primary hypothesis at this look; None where no comparison is declared."""
        return next(iter(tested_hypotheses(self.data, self.options)), None)

    def checked(self, tested: DeclaredHypothesis | None) -> Checked:
        """What is known here."""
        result = tested.result if tested else "undecided"
        chance = chance_to_decide(tested, self.look) if tested and result == "undecided" else 1.0
        return Checked(self.look.n, self.look.level(1 - self.options.confidence), result, chance)


def look_data(data: StudyData, options: Options, raters: Sequence[str], reached: Sequence[int]) -> LookData:
    """The look at the last of ``reached``; the first raters of the given ones are its data."""
    kept = raters[: reached[-1]]
    look = look_at(data.study.spec.analysis, n_planned(data.study), reached)
    return LookData(
        data.of_raters(kept, LATER), replace(options, correction=correction_at(options.correction, look)), look
    )


def at_look(data: StudyData, options: Options) -> tuple[StudyData, Options]:
    """Data and settings of the look that a report is about: the one that stopped the study, else the last."""
    analysis = data.study.spec.analysis
    is_known = data.look is not None or not len(data.judgments)
    if analysis.looks is None or is_known or data.is_about_judges:
        return data, options
    raters = data.raters_by_finish()
    is_planned = isinstance(analysis.looks, list)
    checks = [n for n in analysis.checked_at(len(raters)) if is_planned or n >= FIRST]
    made: list[Checked] = []
    for place, _ in enumerate(checks):
        if analysis.stop is None:
            break
        here = look_data(data, options, raters, checks[: place + 1])
        tested = here.hypothesis()
        made.append(here.checked(tested))
        reason = stop_reason(here, made[-1], data)
        if reason is not None:
            return _stopped(here, reason, made, len(raters))
    if isinstance(analysis.looks, list):
        if not checks:
            return _too_early(data, analysis.looks[0], len(raters)), options
        here = look_data(data, options, raters, checks)
    else:
        n = data.judgments["rater"].n_unique()  # raters under way count too
        if n < FIRST:
            return _too_early(data, FIRST, n), options
        look = look_at(analysis, n_planned(data.study), [n])
        here = LookData(data, replace(options, correction=correction_at(options.correction, look)), look)
    state = LookState(here.look, _words(here), _unfinished(here, len(raters)), _next_step(here, len(raters)))
    return replace(here.data, look=replace(state, checked=tuple(made))), here.options


def stop_reason(here: LookData, checked: Checked, data: StudyData) -> StopReason | None:
    """Why the declared rule stops the study at this look; None where it goes on. ``data`` has the other raters too."""
    rule = data.study.spec.analysis.stop
    if rule is None:
        return None
    if rule.decided and checked.verdict != "undecided":
        return "decided"
    if rule.futile is not None and checked.chance < rule.futile:
        return "futile"
    if rule.budget_cents is not None and paid_cents(data, here.look.n) >= rule.budget_cents:
        return "budget"
    return None


def paid_cents(data: StudyData, n: int) -> int:
    """What the raters had cost when n who count had finished; excluded ones are paid too."""
    spec = data.study.spec.recruitment
    is_done = (pl.col("state") == "completed") & pl.col("source").is_in(data.sources)
    ended = pl.col("started_at_ms") + (1000 * pl.col("duration_s").fill_null(0)).cast(pl.Int64)
    counts = data.sessions.filter(is_done).sort(ended, maintain_order=True).select((~pl.col("is_excluded")).cum_sum())
    n_paid = int((counts.to_series() < n).sum()) + 1
    return math.ceil(spec.cost_cents(n_paid))


def chance_to_decide(tested: DeclaredHypothesis, look: SequentialLook) -> float:
    """The predicted chance that the tests still open decide the hypothesis at the planned end, were no others open.

    With an expected direction (or a margin) all must become significant, so the least likely counts; else the likeliest
    of each criterion. Tests are counted at the level that the correction leaves each of them at least.
    """
    groups: dict[object, list[float]] = {}
    is_each = bool(tested.comparison.expected) or has_margin(tested.comparison)
    for place, test in enumerate(tested.open_tests):
        key: object = place if is_each else (test.details.get("about"), test.details.get("quantity") == "ICC")
        groups.setdefault(key, []).append(_chance(test, look))
    return min((max(chances) for chances in groups.values()), default=1.0)


def _chance(test: Estimate, look: SequentialLook) -> float:
    alpha = (1 - test.confidence) / max(1, int(test.details.get("n_tests", 1)))
    return look.chance_at_end(test, alpha)


def _stopped(here: LookData, reason: StopReason, made: list[Checked], n_finished: int) -> tuple[StudyData, Options]:
    rule, checked = here.data.study.spec.analysis.stop, made[-1]
    assert rule is not None
    n = n_of(here.look.n, "rater")
    why = {
        "decided": f"at {n} the primary hypothesis was {checked.verdict}",
        "futile": f"at {n} the predicted chance of deciding the primary hypothesis at {here.look.planned} raters was "
        f"{percent(checked.chance)}, below {percent(rule.futile or 0)}",
        "budget": f"at {n} the budget of {(rule.budget_cents or 0) / 100:,.2f} {here.data.study.spec.recruitment.currency} was spent",
    }[reason]
    n_late = n_finished - here.look.n
    late = (
        f" {n_of(n_late, 'rater')} finished after that and {'is' if n_late == 1 else 'are'} not in this report."
        if n_late
        else ""
    )
    words = f"The declared rule stopped the study: {why}.{late} {_words(here)}"
    state = LookState(here.look, words, stopped=reason, stop_words=why, checked=tuple(made))
    return replace(here.data, look=state), here.options


def _too_early(data: StudyData, first: int, n: int) -> StudyData:
    text = f"The first look is at {first} raters."
    state = LookState(None, text, f"{n_of(n, 'rater')} so far, so there are no results yet.", text)
    return replace(data.of_raters((), LATER), look=state)


def _words(here: LookData) -> str:
    """What holds at this look."""
    level = here.look.level(1 - here.options.confidence)
    when = "at every look" if isinstance(here.look, AnytimeLook) else "at all planned looks together"
    return (
        f"This look is at {n_of(here.look.n, 'rater')}. {confidence_words(here.options.confidence)} confidence intervals and "
        f"p-values of comparisons hold {when}: intervals are wider and p-values larger than those of a single look, whose "
        f"p-value would have to be at most {level:.2g}. {ELSEWHERE}"
    )


def _unfinished(here: LookData, n_finished: int) -> str:
    planned = here.look.planned
    if n_finished >= planned or set(here.data.sessions["source"].unique()) == {"imported"}:
        return ""
    verb = "has" if n_finished == 1 else "have"
    return f"The study is not finished: {n_finished} of {n_of(planned, 'rater')} {verb} completed it."


def _next_step(here: LookData, n_finished: int) -> str:
    if n_finished >= here.look.planned:
        return ""
    declared = here.data.study.spec.analysis.looks
    if isinstance(declared, list):
        following = next(n for n in declared if n > here.look.n)
        return f"Continue to the next look, at {following} raters; what comes in before it is not shown."
    return "Stop once the answer is certain enough for you, or collect more: results hold at every look."
