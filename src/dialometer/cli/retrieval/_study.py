"""Between retrieval and studies: a pooled study folder out, the crowd's ratings of one in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialometer.model.file_names import STUDY_FILE

if TYPE_CHECKING:
    from dialometer.retrieval.knowledge_base import KnowledgeBase
    from dialometer.retrieval.labels.crowd_ratings import CrowdRatings
    from dialometer.retrieval.queries import QuerySet


TEMPLATE = "avatar"
HEADER = """\
# Answers that retrievers picked, judged one at a time in the flow of a conversation; written by `dialometer retrieval pool`.
#
# Method after Chierici and Habash (HumEval 2021): three turns of context, the candidate as the fourth, a rating from 1 to 5,
# three raters each, as many as a rater likes, and no rater who rejects an answer that the maker marked as right. The first
# gold rule looks at all of those; the second hands one of a few to every rater with each batch, so that nobody goes unchecked.
"""
DEBRIEFING = """\
# Thank you!

You have reached the end of the study.

## What we wanted to know

The responses were recorded beforehand by one person. For each question a program has to find the one recorded answer that suits,
and we compare several ways of finding it. What makes an answer good is less clear than it sounds: the person would accept only
what is true, while a visitor is content with anything that makes sense. That is why we ask several people about each response.

Among the responses were also those that the person would give. As they suit the question, they help us to recognise sessions in
which the pieces were not read.

## Your data and your questions

If you no longer want your ratings to be used, or would like to hear about the results, write to {{contact}} and say when you
took part.
"""


def write_study(
    folder: Path,
    items: Sequence[Mapping[str, Any]],
    systems: Mapping[str, tuple[str, str]],
    *,
    name: str,
    n_raters: int,
    seed: int = 0,
) -> list[Path]:
    """An avatar study: the template's wording and rules with these systems (name to label and description) and items."""
    from dialometer.design.edit_yaml import yaml_text
    from dialometer.design.positions import parse_yaml
    from dialometer.design.templates import template_folder
    from dialometer.errors import DialometerError
    from dialometer.retrieval.pool import handed_out

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DialometerError(f"'{folder}' exists and is not an empty folder", remedy="choose another name")
    source = template_folder(TEMPLATE)
    study = parse_yaml((source / STUDY_FILE).read_text(encoding="utf-8"), "").data
    n_questions = len({item["metadata"]["question"] for item in items})
    study |= {
        "name": name,
        "description": f"Evaluation of answer retrieval: {len(items)} candidate answers to {n_questions} questions, pooled "
        f"from {len(systems)} retrievers. Raters do not know who picked a candidate.",
        "systems": [{"name": n, "label": label, "description": about} for n, (label, about) in systems.items()],
    }
    study["design"] |= {"judgments_per_item": n_raters, "n_practice_items": 0}
    study["seed"] = seed
    study["quality"] = _quality(study["quality"], handed_out(items, seed=seed))
    study["analysis"]["comparisons"] = [
        {
            "name": "retrievers",
            "between": "systems",
            "levels": list(systems),
            "criteria": ["fit"],
            "hypothesis": "The first answers of the retrievers are not judged to fit equally well.",
        }
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STUDY_FILE).write_text(HEADER + yaml_text(study), encoding="utf-8")
    rows = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (folder / "items.jsonl").write_text(rows, encoding="utf-8")
    shutil.copyfile(source / "consent.md", folder / "consent.md")
    instructions = (source / "instructions.md").read_text(encoding="utf-8")
    (folder / "instructions.md").write_text(_without_practice(instructions), encoding="utf-8")
    (folder / "debriefing.md").write_text(DEBRIEFING, encoding="utf-8")
    return sorted(folder.iterdir())


def _quality(rules: list[dict[str, Any]], handed_out_ids: list[str]) -> list[dict[str, Any]]:
    """The template's rules; with every batch a rater also gets one gold answer, so that nobody goes unchecked."""
    if not handed_out_ids:
        return [rule for rule in rules if rule["rule"] != "gold"]
    gold = next(rule for rule in rules if rule["rule"] == "gold")
    checking = {"rule": "gold", "items": handed_out_ids, "acceptable": deepcopy(gold["acceptable"]), "per_rater": 1}
    return [*rules, {**checking, "action": "flag"}]


def _without_practice(text: str) -> str:
    """The template's instructions without their last paragraph, which announces a practice item."""
    kept, _, last = text.rstrip().rpartition("\n\n")
    return f"{kept}\n" if "practice" in last else text


@dataclass(frozen=True)
class StudyRatings:
    """The crowd's ratings, and the mean from which their scale calls an answer right."""

    ratings: CrowdRatings
    good_from: float | None = None


def crowd_of(
    path: Path, kb: KnowledgeBase, query_set: QuerySet, database: str = "", *, lenient: bool = False
) -> StudyRatings:
    """Ratings from a table, or from the folder of a judged study (raters excluded by its rules do not count)."""
    from dialometer.cli.console import errors
    from dialometer.retrieval.labels.crowd_ratings import read_crowd_ratings

    if path.is_dir():
        rated = _crowd_of_study(path, kb, query_set, database)
    else:
        rated = StudyRatings(read_crowd_ratings(path, kb, query_set.queries, lenient=lenient))
    if rated.ratings.n_left_out:
        errors.print(f"{rated.ratings.n_left_out} ratings excluded: their question or answer is not known here")
    return rated


def _crowd_of_study(folder: Path, kb: KnowledgeBase, query_set: QuerySet, database: str) -> StudyRatings:
    """Questions go by their id, else by the text of the turn before the candidate where only one question has it."""
    from dataclasses import replace

    from dialometer.analysis.base.data import load_data
    from dialometer.analysis.families.candidates.pool import pool_of
    from dialometer.cli.options import open_store, open_study
    from dialometer.errors import DialometerError
    from dialometer.retrieval.labels.crowd_ratings import QuestionNames, crowd_ratings

    study = open_study(folder)
    if study.spec.items.kind != "candidate":
        remedy = "name a study that 'dialometer retrieval pool' wrote"
        raise DialometerError("the items of this study are not candidate answers", where=str(folder), remedy=remedy)
    with open_store(folder, database, create=False) as store:
        data = load_data(study, store)
    criterion = study.spec.criteria[0]
    rated = pool_of(data, criterion.name, study.spec.scales[criterion.scale])
    names = QuestionNames(query_set.queries)
    questions = []
    for name, text in zip(rated.questions, rated.question_texts, strict=True):
        known = names.find(name)[0]
        questions.append(known or names.find(text)[0])
    answers = [kb.find(name) for name in rated.answers]
    texts = dict(zip(rated.answer.tolist(), rated.candidate_texts, strict=True))
    answers = [kb.find(texts[number]) if answer is None else answer for number, answer in enumerate(answers)]
    rows = []
    n_left_out = 0
    for candidate, value in zip(rated.candidate.tolist(), rated.value.tolist(), strict=True):
        question, answer = questions[rated.question[candidate]], answers[rated.answer[candidate]]
        if answer is None or not question:
            n_left_out += 1
        else:
            rows.append((question, answer, float(value)))
    if not rows:
        remedy = (
            f"the study asks '{rated.questions[0]}', the dialogues '{query_set.queries[0].id}'; name the right files"
        )
        raise DialometerError("no question of the study is one of these dialogues", where=str(folder), remedy=remedy)
    return StudyRatings(replace(crowd_ratings(rows), n_left_out=n_left_out), rated.good_from)
