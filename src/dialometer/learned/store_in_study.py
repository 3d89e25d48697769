"""Scores of a model as judgments of a study: a session of source ``model``, which the report sets beside people.

The model may be an evaluator trained here or a large language model asked elsewhere; all that is needed is a number for each
item. Numbers within the ends of the criterion's scale are stored as they are, also between its points, as expected ratings lie;
others keep only their order, which is laid over the ratings that people gave (rank by rank).
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.design.load import load_study
from dialometer.design.lock import fingerprint
from dialometer.errors import AnswerError, DialometerError, NotEnoughData
from dialometer.learned.data.rated_study import people_or_simulated
from dialometer.learned.experiments.rating_values import Noisy
from dialometer.model.file_names import DATABASE_FILE
from dialometer.model.quality import Finding
from dialometer.model.scale import Scale
from dialometer.model.session import Answer, Judgment
from dialometer.model.study import Study
from dialometer.model.values import to_number
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import plain_column, table_rows
from dialometer.storage.imports import ImportedSession
from dialometer.storage.store import Store
from dialometer.storage.table import long_table, session_name

Floats = NDArray[np.float64]
Key = tuple[str, str]
"""An item and the system judged."""
NAME_PART, NAME_QUESTION, FOLDS_QUESTION = "model", "name", "folds"
"""Where the session keeps the model's name and, of cross-fitted scores, the number of folds; the report reads them from there."""


def read_scores(path: Path) -> tuple[dict[Key, float], int]:
    """Scores from a CSV file with ``id`` (or ``item``), ``score`` and, where an item shows several systems, ``system``.

    Also how many rows have no score: 'learn score' writes such for dialogues without a turn of an agent.
    """
    problems = Problems(path.name)
    scores: dict[Key, float] = {}
    n_empty = 0
    source = SourceFile(path)
    source.probe()
    for row in table_rows(source, problems, ()):
        cells = {plain_column(name): cell.strip() for name, cell in row.cells.items()}
        key = (cells.get("id") or cells.get("item") or "", cells.get("system", ""))
        score = to_number(cells.get("score", ""))
        if key[0] and cells.get("score") == "":
            n_empty += 1
        elif not key[0] or score is None:
            message, remedy = "a row needs id and a number as score", "fix it"
            problems.of_file(problems.problem(message, remedy=remedy, line=row.line))
        elif key in scores:
            message = f"a second score for '{key[0]}'"
            problems.of_file(problems.problem(message, remedy="give each thing one score", line=row.line))
        else:
            scores[key] = score
    problems.finish()
    if not scores:
        raise NotEnoughData("the file holds no scores", where=path.name, remedy="give a CSV with id and score")
    return scores, n_empty


def store_judge(
    folder: Path,
    name: str,
    scores: Mapping[Key, float],
    *,
    criterion: str = "",
    database: str = "",
    n_folds: int = 0,
) -> int:
    """Stores a model's judgments under its name; says how many. The same scores of the same model are refused a second time.

    ``n_folds`` says in how many folds the scores were cross-fitted, where the model learned from ratings of this study.
    """
    study = load_study(folder)
    criterion = criterion or study.spec.criteria[0].name
    if criterion not in study.criteria_by_name:
        raise DialometerError(
            f"the study has no criterion '{criterion}'", where=str(folder), remedy="name one of its criteria"
        )
    scale = study.scale_for(study.criteria_by_name[criterion], study.spec.presentation)
    keys = _known_keys(study, scores, where=str(folder))
    with Store.open(database or folder / DATABASE_FILE, create=False) as store:
        values = _on_scale(scale, [scores[key] for key in scores], _people(store, criterion))
        stamp = int(time.time() * 1000)
        version = store.studies.register(study.spec.name, fingerprint(study), study.spec.model_dump_json(), stamp)
        content = json.dumps([name, criterion, sorted((*key, score) for key, score in scores.items())])
        digest = hashlib.sha256(content.encode()).hexdigest()
        session_id = f"model-{digest[:24]}"
        judgments = [
            Judgment(
                session_id=session_id,
                item_id=item,
                system=system,
                criterion=criterion,
                value=value,
                scale=scale.type,
                block=study.items_by_id[item].block or "main",
                answered_at_ms=stamp,
            )
            for (item, system), value in zip(keys, values, strict=True)
        ]
        about: dict[str, str | int] = {NAME_QUESTION: name} | ({FOLDS_QUESTION: n_folds} if n_folds else {})
        session = ImportedSession(
            id=session_id,
            rater=name,
            condition=study.cells[0],
            judgments=judgments,
            answers=[
                Answer(session_id=session_id, part=NAME_PART, question=question, value=answer)
                for question, answer in about.items()
            ],
            finished_at_ms=stamp,
            source="model",
        )
        store.imports.add(
            [session],
            file_name=f"scores of {name}",
            sha256=digest,
            format="scores",
            study_version=version,
            at_ms=stamp,
            platform="model",
        )
    return len(judgments)


def _known_keys(study: Study, scores: Mapping[Key, float], where: str) -> list[Key]:
    """The items and systems of the scores, each a thing that the study's raters judge."""
    keys, unknown = [], []
    for item_id, system in scores:
        item = study.items_by_id.get(item_id)
        if item is None or item.kind in ("chat", "arena") or (system and system not in item.systems):
            unknown.append(f"{item_id}/{system}" if system else item_id)
            continue
        if not system and len(item.systems) > 1:
            raise DialometerError(
                f"item '{item_id}' shows several systems", where=where, remedy="give the scores a column 'system'"
            )
        keys.append((item_id, system or item.systems[0]))
    if unknown:
        raise DialometerError(
            f"{len(unknown)} scores are of nothing that can be judged in the study, the first is '{unknown[0]}'",
            where=where,
            remedy="use ids of its items; live conversations are scored with 'dialometer learn score'",
        )
    return keys


def _people(store: Store, criterion: str) -> Floats:
    table = long_table(store.records.judgment_batches())
    is_counted = (table["criterion"] == criterion) & ~table["is_practice"]
    rows = people_or_simulated(table.filter(is_counted))
    return np.asarray(rows["value"].drop_nulls().to_numpy(), dtype=np.float64)


def _on_scale(scale: Scale, scores: Sequence[float], people: Floats) -> list[Any]:
    """The scores as answers on the scale: themselves where all fit, else people's ratings in the scores' order."""
    try:
        return [scale.parse(score) for score in scores]
    except AnswerError:
        pass
    low, high = scale.bounds() if scale.is_numeric else (math.nan, math.nan)
    if math.isfinite(high - low) and all(low <= score <= high for score in scores):
        return [float(score) for score in scores]
    if not len(people):
        raise NotEnoughData(
            "the scores do not lie on the criterion's scale, and there are no ratings of human raters to map them to",
            remedy="give scores on the scale, or collect ratings first",
        )
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    shares = (ranks + 0.5) / len(scores)
    laid = np.quantile(people, shares, method="inverted_cdf")
    return [scale.parse(float(value)) for value in laid]


# Noisy ratings of a study back into the study: as flags on the sessions that gave them, which its report shows.


RULE = "noisy_rating"
"""The name under which such flags stand beside those of the study's own rules."""


def flag_noisy(folder: Path, noisy: Sequence[Noisy], *, database: str = "", at_ms: int = 0) -> int:
    """Writes a flag for every noisy rating that has none yet, and says how many were new. Nobody is excluded by it."""
    with Store.open(database or folder / DATABASE_FILE, create=False) as store:
        table = long_table(store.records.judgment_batches())
        session_of = dict(zip(table["judgment"].to_list(), table["session"].to_list(), strict=True))
        ids = {session_name(session.ordinal): session.id for session in store.sessions.all()}
        known = {
            logged.finding.details.get("judgment") for logged in store.records.findings() if logged.finding.rule == RULE
        }
        by_session: dict[str, list[Finding]] = defaultdict(list)
        for rating in noisy:
            judgment = rating.rated.dialogue.metadata["judgment"]
            if judgment in known or judgment not in session_of:
                continue
            item = rating.rated.dialogue.metadata["item"]
            details = {"judgment": judgment, "item": item, "value": rating.value, "smoothed": rating.smoothed}
            by_session[ids[session_of[judgment]]].append(Finding(RULE, "flag", f"{item}: {rating.reason}", details))
        for session_id, findings in by_session.items():
            store.exclusions.add_findings(session_id, findings, at_ms or int(time.time() * 1000))
    return sum(len(findings) for findings in by_session.values())
