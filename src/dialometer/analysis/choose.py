"""The study's design decides the analysis: nobody picks a test by hand."""

from __future__ import annotations

from dialometer._version import __version__
from dialometer.analysis.data import StudyData, load_data
from dialometer.analysis.family import ANALYSES, Analysis, Findings, Options
from dialometer.analysis.overview import balance_table, exclusions_table, unfinished, warnings
from dialometer.design.lock import fingerprint
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.report import Report, Section, Summary
from dialometer.model.study import Study
from dialometer.storage.store import Store

_NOTHING = Findings(
    "There are no judgments yet.",
    "Not enough data.",
    sections=(Section("none", "Results", problem="There are no judgments yet; the report grows with them."),),
)


def families(study: Study) -> list[Analysis]:
    """The families that fit a study, the one that gives the answer first."""
    fitting = [ANALYSES.get(name) for name in ANALYSES if ANALYSES.get(name).fits(study)]
    return sorted(fitting, key=lambda family: family.rank)


def analyse(
    study: Study,
    judgments: Store | StudyData,
    *,
    seed: int | None = None,
    n_resamples: int | None = None,
    sources: tuple[str, ...] = (),
) -> Report:
    """The report that the study's design asks for. Unfinished and even empty studies get one, which says so.

    Without ``sources`` it is about people, or about simulated raters or models where there are no people.
    """
    data = judgments if isinstance(judgments, StudyData) else load_data(study, judgments, sources=sources)
    declared = study.spec.analysis
    options = Options(
        confidence=declared.confidence,
        n_resamples=n_resamples or declared.n_resamples,
        seed=study.spec.seed if seed is None else seed,
        correction=declared.correction,
    )
    found = [_run(family, data, options) for family in families(study)] if len(data.judgments) else [_NOTHING]
    first = found[0] if found else Findings("There is no analysis for this design yet.", "")
    summary = Summary(
        answer=first.answer,
        certainty=first.certainty,
        headlines=first.headlines,
        exclusions=exclusions_table(data),
        balance=balance_table(data),
        figure=first.figure,
        warnings=(*warnings(data), *(warning for one in found for warning in one.warnings)),
    )
    return Report(
        study=study.spec.name,
        title=study.spec.title,
        summary=summary,
        sections=(
            *(section for one in found for section in one.sections),
            *(section for one in found for section in one.closing),
        ),
        methods=tuple(dict.fromkeys(method for one in found for method in one.methods)),
        provenance=_provenance(data, options),
        is_finished=not unfinished(data),
    )


def _run(family: Analysis, data: StudyData, options: Options) -> Findings:
    try:
        return family.run(data, options)
    except NotEnoughData as error:
        return Findings("Not enough data.", str(error), sections=(Section("none", "Results", problem=str(error)),))
    except DialometerError as error:
        return Findings(
            "The analysis could not be made.", str(error), sections=(Section("none", "Results", problem=str(error)),)
        )


def _provenance(data: StudyData, options: Options) -> dict[str, str | int | float]:
    made: dict[str, str | int | float] = {
        "study": data.study.spec.name,
        "fingerprint": fingerprint(data.study),
        "seed": options.seed,
        "n_resamples": options.n_resamples,
        "confidence": options.confidence,
        "n_judgments": len(data.judgments),
        "n_raters": data.judgments["rater"].n_unique(),
        "n_items": data.judgments["item"].n_unique(),
        "sources": ", ".join(data.sources),
        "dialometer": __version__,
    }
    times = data.judgments["answered_at"].drop_nulls()
    if len(times):
        made["first_judgment"] = str(times.min())
        made["last_judgment"] = str(times.max())
    return made
