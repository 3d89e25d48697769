"""The study's design decides the analysis: nobody picks a test by hand."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import polars as pl

from dialometer._version import __version__
from dialometer.analysis.base.data import APART, OTHER_SOURCE, PRACTICE, UNREAD, StudyData, load_data
from dialometer.analysis.base.exclusions import excluded_raters_table, exclusions_table
from dialometer.analysis.base.exploring import DataChoice, explored, in_words
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options
from dialometer.analysis.base.opening import answer, certainty, headlines, next_steps, verdict_table
from dialometer.analysis.base.wording import CONFIRMATORY_TITLE, cell_names, listed, n_of
from dialometer.design.load import load_study
from dialometer.design.lock import declared_at, fingerprint
from dialometer.design.protocol import protocol
from dialometer.errors import DialometerError, NotEnoughData, UnknownName
from dialometer.model.file_names import DATABASE_FILE
from dialometer.model.report import Column, Figure, Method, Report, Section, Summary, Table, Turns
from dialometer.model.session import ADJUDICATORS
from dialometer.model.study import Study
from dialometer.neural.engines import LOCAL, Engine
from dialometer.registry import did_you_mean
from dialometer.storage.store import Store

SOURCE_WORDS = {
    "simulated": "These raters are simulated: the numbers test the design and say nothing about real systems.",
    "model": "These judges are language models or other programs, not human raters.",
}

SOURCES_READ = {"simulated": "simulated raters", "model": "models"}
"""What a report calls the sources of its raters; all others are people."""


def balance_table(data: StudyData) -> Table:
    """Raters in each condition: finished, under way, left."""
    used = data.used_sessions()
    rows = []
    for cell, name in enumerate(cell_names(data.study)):
        here = used.filter(pl.col("cell") == cell)
        counts = {state: len(here.filter(pl.col("state") == state)) for state in ("completed", "active", "stale")}
        n = int(data.judgments.select(pl.col("rater").is_in(here["rater"].implode()).sum()).item())
        rows.append((name, counts["completed"], counts["active"], counts["stale"], n))
    columns = (
        Column("condition", "Condition"),
        Column("completed", "Finished", "count"),
        Column("active", "Under way", "count"),
        Column("stale", "Left", "count"),
        Column("judgments", "Judgments", "count"),
    )
    return Table("balance", "Balance of the conditions", columns, tuple(rows))


def unfinished(data: StudyData) -> str:
    """A sentence when the study still lacks raters or judgments, else empty."""
    return data.look.unfinished if data.look is not None else _progress(data)[1]


def so_far(data: StudyData) -> str:
    """How far an unfinished study is ("30 of 60 raters"), else empty; at a declared look too, where tests are valid."""
    return "" if data.look is not None else _progress(data)[0]


def _progress(data: StudyData) -> tuple[str, str]:
    """How far an unfinished study is, in short and in a sentence; what was collected elsewhere has ended there."""
    if data.is_about_judges or set(data.sessions["source"].unique()) == {"imported"}:
        return "", ""
    numbers = protocol(data.study)
    n_completed = len(data.completed_sessions())
    if numbers.n_raters is not None and n_completed < numbers.n_raters:
        is_out = pl.col("is_excluded") & (pl.col("state") == "completed") & pl.col("source").is_in(data.sources)
        n_out = len(data.sessions.filter(is_out))
        apart = f", not counting {n_of(n_out, 'excluded rater')}" if n_out else ""
        verb = "has" if n_completed == 1 else "have"
        done = f"{n_completed} of {n_of(numbers.n_raters, 'rater')}"
        n_open = data.n_not_finished()
        more = f"; judgments of {n_of(n_open, 'other')} count too" if n_open else ""
        return done, f"The study is not finished: {done} {verb} completed it{apart}{more}."
    wanted = data.study.spec.design.judgments_per_item
    if wanted is not None and len(data.judgments):
        per_item = data.judgments.group_by("item").agg(pl.col("rater").n_unique())
        n_short = len(data.study.people_items) - len(per_item.filter(pl.col("rater") >= wanted))
        if n_short > 0:
            lacking = f"{n_short} item{' has' if n_short == 1 else 's have'} fewer than {wanted} raters"
            return lacking, f"The study is not finished: {lacking}."
    return "", ""


def warnings(data: StudyData, lacks: str) -> tuple[str, ...]:
    """What a reader must know before the first number; ``lacks`` says what the study still needs."""
    notes = [SOURCE_WORDS[source] for source in data.sources if source in SOURCE_WORDS]
    others = set(data.sessions["source"].unique()) - set(data.sources) - set(ADJUDICATORS)
    if data.study.spec.analysis.judges is not None:
        others -= {"model"}
    if others:
        notes.append(f"Judgments from other sources ({', '.join(sorted(others))}) are not in this report.")
    if data.is_about_judges:
        return tuple(notes)
    n_apart = data.judgments.filter(pl.col("rater").str.contains(APART, literal=True))["rater"].n_unique()
    if n_apart:
        notes.append(
            f"Some raters were imported in more than one condition; each condition counts them as another rater "
            f"({n_apart} more in all), although the same rater gives more similar answers than two would."
        )
    if data.look is not None:
        notes.append(f"{lacks} {data.look.words}".strip())
    elif lacks:
        interim = (
            " Interim results are not a valid test: confidence intervals and p-values assume that the number of raters "
            "was fixed."
        )
        notes.append(f"{lacks}{interim if len(data.judgments) else ''}")
    return tuple(notes)


def nothing_left(data: StudyData) -> Findings:
    """The findings of a study without judgments: none were collected, or all of them were excluded."""
    if data.look is not None and data.look.unfinished:
        text = f"{data.look.words} {data.look.unfinished}"
        return Findings(text, "Not enough data.", sections=(Section("none", "Results", problem=text),))
    own = {reason: n for reason, n in data.n_left_out.items() if reason not in (PRACTICE, OTHER_SOURCE)}
    n = sum(own.values())
    others = sorted(set(data.sessions["source"].unique()) - set(data.sources) - set(ADJUDICATORS))
    text = "There are no judgments yet."
    step = "Collect judgments (dialometer serve), or try the design with simulated raters (dialometer simulate)."
    if n:
        reasons = {reason: f"{'from' if 'raters' in reason else 'on'} {reason}" for reason in own}
        each = listed(f"{count:,} {reasons[reason]}" for reason, count in own.items())
        if len(own) == 1:
            each = f"{'it is' if n == 1 else 'they are'} {listed(reasons.values())}"
        of = f" of {SOURCES_READ.get(data.sources[0], 'human raters')}" if others else ""
        what = f"The one judgment{of} is" if n == 1 else f"All {n:,} judgments{of} are"
        text = f"{what} excluded, so there is nothing to analyse: {each}."
        table = excluded_raters_table(data)
        if table is None:
            return Findings(
                text, "", next_steps=("Check the quality rules and who was excluded: the dashboard shows both.",)
            )
        step = "Check the quality rules: the table below lists who was excluded and why."
        return Findings(text, "", sections=(Section("raters", "The raters", parts=(table,)),), next_steps=(step,))
    if others and data.n_left_out.get(OTHER_SOURCE):
        text = f"There are no judgments of {SOURCES_READ.get(data.sources[0], 'human raters')} yet."
        step = f"Report on the raters there are: {listed(f'--source {source}' for source in others)}."
    problem = f"{text.removesuffix('.')}; the report grows with them."
    return Findings(text, "", sections=(Section("none", "Results", problem=problem),), next_steps=(step,))


def families(study: Study, about: Literal["raters", "judges"] = "raters") -> list[Family]:
    """The families that fit a study, the one that gives the answer first; those of reports about raters, or about judges.

    Where the primary comparison names its criteria, a family that tests them gives the answer rather than one that does not.
    """
    known = [ANALYSES.get(name) for name in ANALYSES]
    fitting = [family for family in known if family.is_about == about and family.fits(study)]
    declared = study.spec.analysis
    named = [one for one in declared.comparisons if one.name == declared.primary and one.criteria]

    def place(family: Family) -> tuple[float, int]:
        is_first = family.rank > 1 and any(family.decides(study, comparison) for comparison in named)
        return (min(family.rank, DECIDING_RANK) if is_first else family.rank), family.rank

    return sorted(fitting, key=place)


DECIDING_RANK = 9.5
"""Before the families that answer by the kind of data alone."""


def grouped_by(study: Study, by: Sequence[str]) -> Study:
    """The study with further subgroups; a question that it does not ask is an error."""
    known = study.rater_variables
    for name in by:
        if name not in known:
            listed = f"; it asks: {', '.join(known)}" if known else ": it has no questions about raters"
            raise UnknownName(f"the study has no question '{name}'{listed}", remedy=did_you_mean(name, known))
    subgroups = list(dict.fromkeys([*study.spec.analysis.subgroups, *by]))
    analysis = study.spec.analysis.model_copy(update={"subgroups": subgroups})
    return replace(study, spec=study.spec.model_copy(update={"analysis": analysis}))


def _capital(method: Method) -> Method:
    """The method with a capital letter, as all rows of the table have it."""
    return replace(method, what=f"{method.what[:1].upper()}{method.what[1:]}")


def analyse(
    study: Study,
    judgments: Store | StudyData,
    *,
    seed: int | None = None,
    n_resamples: int | None = None,
    sources: tuple[str, ...] = (),
    by: Sequence[str] = (),
    only: Sequence[DataChoice] = (),
    engine: Engine = LOCAL,
) -> Report:
    """The report that the study's design asks for. Unfinished and even empty studies get one, which says so.

    Without ``sources`` it is about people, or about simulated raters or models where there are no people. ``by`` names
    questions by whose answers raters are grouped, beside the subgroups that the study declares. With ``only`` it is about a
    part of the data, and exploratory throughout. The families work where
    ``engine`` says, with the same numbers everywhere.
    """
    data = (
        judgments
        if isinstance(judgments, StudyData)
        else load_data(study, judgments, sources=sources, without=_unread(study))
    )
    as_declared = data
    if by:
        study = grouped_by(study, by)
        data = replace(data, study=study)
    if only:
        data = explored(data, only)
        study = data.study
    declared = study.spec.analysis
    options = Options.declared(study)
    options = replace(
        options, n_resamples=n_resamples or options.n_resamples, seed=options.seed if seed is None else seed
    )
    fitting = families(study, "judges" if data.is_about_judges else "raters")
    for family in fitting:
        data, options = family.at_look(data, options)
    findings = (
        list(engine.run(_findings, (data, options), range(len(fitting))))
        if len(data.judgments)
        else [nothing_left(data)]
    )
    if study.spec.analysis.judges is not None and len(findings) > 1:
        findings = [findings[0], *map(_by_raters_alone, findings[1:])]
    lacks = unfinished(as_declared if only else data)
    chosen = (f"Exploratory: only a part of the data was chosen ({in_words(only)}).",) if only else ()
    first = findings[0] if findings else Findings("There is no analysis for this design yet.", "")
    verdicts = tuple(verdict for part in findings for verdict in part.verdicts)
    summary = Summary(
        answer=answer(findings or [first]),
        certainty=certainty(
            findings or [first], has_comparisons=bool(only or declared.comparisons) or not len(data.judgments)
        ),
        headlines=headlines(findings),
        exclusions=exclusions_table(data),
        balance=balance_table(data) if len(study.cells) > 1 else None,
        figure=first.figure,
        claims=first.claims,
        warnings=(*chosen, *warnings(data, lacks), *(warning for part in findings for warning in part.warnings)),
        verdicts=verdicts,
        next_steps=() if only else next_steps(data, findings, so_far(data)),
        hypotheses=verdict_table(verdicts, options.correction, options.confidence),
    )
    return Report(
        study=study.spec.name,
        title=study.spec.title,
        summary=summary,
        sections=tuple(
            _without(first.figure, section)
            for section in (
                *(
                    section
                    for part in findings
                    for section in part.sections
                    if not (only and section.title == CONFIRMATORY_TITLE)  # there is none, and that is no advice here
                ),
                *(section for part in findings for section in part.closing),
            )
        ),
        methods=tuple(dict.fromkeys(_capital(method) for part in findings for method in part.methods)),
        provenance=_provenance(replace(data, study=as_declared.study), options, by, only),
        is_finished=not lacks,
    )


RATERS_ALONE = (
    "These are the tests of a study without judges. Their estimates and confidence intervals differ somewhat from those of raters "
    "alone in the section above, which are made like the corrected ones (by a jackknife), so that the two can be compared."
)


def _by_raters_alone(findings: Findings) -> Findings:
    """What families say that know of no judge: exploratory where the confirmatory analysis is raters corrected by judges."""

    def explores(section: Section) -> Section:
        parts = (
            part
            if isinstance(part, Turns) or not part.is_confirmatory
            else replace(part, title="By raters alone", is_confirmatory=False)
            for part in section.parts
        )
        section = replace(section, parts=tuple(parts))
        if not section.is_confirmatory:
            return section
        title, paragraphs = "The same comparisons by raters alone", (*section.paragraphs, RATERS_ALONE)
        return replace(section, title=title, paragraphs=paragraphs, is_confirmatory=False)

    return replace(findings, sections=tuple(map(explores, findings.sections)))


def _without(shown: Figure | None, section: Section) -> Section:
    """The section without the figure that the summary shows already."""
    if shown is None:
        return section
    parts = tuple(
        part
        for part in section.parts
        if not (isinstance(part, Figure) and (part.title, part.alt) == (shown.title, shown.alt))
    )
    return replace(section, parts=parts)


def _unread(study: Study) -> tuple[str, ...]:
    """Columns that no analysis of the study reads. Declared statistics and families of other packages may read any."""
    fitting = [*families(study), *families(study, "judges")]
    further = ANALYSES.get("further_statistics")
    is_known = all(family is not further and type(family).__module__.startswith("dialometer.") for family in fitting)
    return UNREAD if is_known else ()


def _findings(shared: tuple[StudyData, Options], number: int) -> Findings:
    """What one of the study's families finds; a part of the work that can be done anywhere."""
    data, options = shared
    return _run(families(data.study, "judges" if data.is_about_judges else "raters")[number], data, options)


def _run(family: Family, data: StudyData, options: Options) -> Findings:
    try:
        return family.run(data, options)
    except NotEnoughData as error:
        return Findings("Not enough data.", str(error), sections=(Section("none", "Results", problem=str(error)),))
    except DialometerError as error:
        return Findings(
            "The analysis could not be made.", str(error), sections=(Section("none", "Results", problem=str(error)),)
        )


def _provenance(
    data: StudyData, options: Options, by: Sequence[str], only: Sequence[DataChoice]
) -> dict[str, str | int | float]:
    rated = data.rated
    made: dict[str, str | int | float] = {
        "study": data.study.spec.name,
        "fingerprint": fingerprint(data.study),
        "seed": options.seed,
        "n_resamples": options.n_resamples,
        "confidence": options.confidence,
        "n_judgments": len(rated),
        "n_raters": rated["rater"].n_unique(),
        "n_items": rated["item"].n_unique(),
        "sources": ", ".join(data.sources),
        "dialometer": __version__,
        "command": report_command(data, options, by, only),
    }
    if only:
        made["only"] = in_words(only)
    if data.look is not None and data.look.stopped:
        made["stopped"] = data.look.stopped
        made["stopped_because"] = data.look.stop_words
    times = data.judgments["answered_at"]
    if times.count():
        first, last = pl.Series([times.min(), times.max()]).dt.strftime("%Y-%m-%d %H:%M UTC")
        made |= {"first_judgment": first, "last_judgment": last}
    if data.sources != ("simulated",):
        made["declared_analysis"] = _declared_since(data.study, times.min())
    return made


def _declared_since(study: Study, first_judgment: object) -> str:
    """Whether the lock shows that the declared analysis is older than the data. A simulated rater's clock shows nothing."""
    at = declared_at(study)
    if at is None:
        return "not frozen, so nothing shows since when"
    frozen = f"frozen on {at:%Y-%m-%d}"
    if not isinstance(first_judgment, datetime):
        return frozen
    return f"{frozen}, {'before' if at <= first_judgment else 'after'} the first judgment"


def report_command(data: StudyData, options: Options, by: Sequence[str] = (), only: Sequence[DataChoice] = ()) -> str:
    """The command that makes this report again, every setting written out."""
    folder = data.study.folder.resolve().name if data.study.folder else data.study.spec.name
    settings = [f"--seed {options.seed}", f"--resamples {options.n_resamples}"]
    settings += [f"--source {source}" for source in data.sources]
    settings += [f"--by {shlex.quote(question)}" for question in by]
    settings += [f"--only {shlex.quote(str(choice))}" for choice in only]
    return f"dialometer report {shlex.quote(folder)} {' '.join(settings)}"


def analyse_folder(
    folder: str | Path, *, database: str = "", seed: int | None = None, n_resamples: int | None = None
) -> Report:
    """The report of the study in a folder, from the database beside it or the one named (``postgresql://…``)."""
    study = load_study(Path(folder))
    with Store.open(database or Path(folder) / DATABASE_FILE, create=False) as store:
        return analyse(study, store, seed=seed, n_resamples=n_resamples)
