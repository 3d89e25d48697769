"""Judges in the study file: what may be written, which items people get, and that the draw is recorded with its probability."""

import shutil
from dataclasses import replace

import pytest

from dialometer.design.assign import draw_session
from dialometer.design.load import load_study, read_study
from dialometer.design.lock import fingerprint, part_hashes
from dialometer.design.templates import template_folder
from dialometer.errors import StudyError
from dialometer.model.judges import Judge, JudgedAnalysis, PeopleRate, draw_for_people
from dialometer.model.session import Snapshot
from dialometer.model.study import Study
from dialometer.storage.rows import draw_from_json, draw_to_json

LIKERT = load_study(template_folder("likert"))


def judged(**rate) -> Study:
    design = LIKERT.spec.design.model_copy(update={"people_rate": PeopleRate(**rate), "items_per_rater": "all"})
    spec = LIKERT.spec.model_copy(update={"design": design, "judges": [Judge(name="strict", kind="scores")]})
    return replace(LIKERT, spec=spec)


def test_short_forms_mean_the_long_ones():
    assert PeopleRate.model_validate(0.3) == PeopleRate(share=0.3)
    assert JudgedAnalysis.model_validate("strict") == JudgedAnalysis(use=["strict"])
    assert JudgedAnalysis.model_validate(["a", "b"]).use == ["a", "b"]
    with pytest.raises(ValueError, match="need 'by'"):
        PeopleRate(shares={"a": 0.5})


def test_each_stratum_gives_its_share_and_never_nothing():
    strata = {f"i{n}": "abc"[n % 3] for n in range(30)}
    chances = draw_for_people(strata, PeopleRate(share=0.5, by="topic", shares={"b": 1.0, "c": 0.01}), seed=3)
    by_stratum = {stratum: [item for item in chances if strata[item] == stratum] for stratum in "abc"}
    assert {stratum: len(items) for stratum, items in by_stratum.items()} == {"a": 5, "b": 10, "c": 1}
    assert {chances[item] for item in by_stratum["a"]} == {0.5}
    assert {chances[item] for item in by_stratum["c"]} == {0.1}


def test_over_many_seeds_every_item_is_drawn_equally_often():
    strata = dict.fromkeys(map(str, range(8)), "")
    drawn = [item for seed in range(800) for item in draw_for_people(strata, PeopleRate(share=0.25), seed)]
    assert all(150 < drawn.count(item) < 250 for item in strata)


def test_people_get_their_share_and_judges_everything():
    study = judged(share=0.5)
    people = draw_session(study, Snapshot(ordinal=1))
    model = draw_session(study, Snapshot(ordinal=2, source="model"))
    given, all_given = ({i for ids in draw.items.values() for i in ids} for draw in (people, model))
    assert given - study.gold_ids < all_given - study.gold_ids
    assert given <= set(study.chances_for_people)
    assert set(people.chances) == given - study.gold_ids
    assert not model.chances
    assert draw_from_json(draw_to_json(people)) == people


def test_studies_without_judges_keep_their_locks():
    assert set(LIKERT.chances_for_people.values()) == {1.0}
    assert "study.yaml: judges" not in part_hashes(LIKERT)
    assert fingerprint(judged(share=0.5)) != fingerprint(LIKERT)


def test_unknown_judges_and_strata_are_named(tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(template_folder("likert"), folder)
    text = (folder / "study.yaml").read_text()
    share = "  people_rate: {by: block, shares: {nowhere: 0.5}}\n"
    text = text.replace("\ndesign:\n", f"\njudges:\n  - {{name: strict, kind: scores}}\ndesign:\n{share}")
    text = text.replace("\nanalysis:\n", "\nanalysis:\n  judges: strikt\n")
    (folder / "study.yaml").write_text(text)
    with pytest.raises(StudyError) as caught:
        load_study(folder)
    problems = {problem.field: problem.message for problem in caught.value.problems}
    assert problems["analysis.judges.0"] == "there is no judge 'strikt'"
    assert problems["design.people_rate.shares.nowhere"] == "there is no stratum 'nowhere'"


def problems_of(tmp_path, template, **changes):
    """What check says of a template with judges in its analysis and these texts replaced."""
    folder = tmp_path / template
    shutil.copytree(template_folder(template), folder)
    text = (folder / "study.yaml").read_text()
    for old, new in {
        "\ndesign:\n": "\njudges:\n  - {name: one, kind: scores}\n  - {name: two, kind: scores}\ndesign:\n",
        **changes,
    }.items():
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "study.yaml").write_text(text)
    _, problems = read_study(folder)
    return {problem.field: (problem.severity, problem.message) for problem in problems}


def test_designs_and_scales_that_judges_cannot_correct_are_refused_by_name(tmp_path):
    judges = {"\nanalysis:\n": "\nanalysis:\n  judges: one\n"}
    factors = problems_of(tmp_path, "anchoring", **judges)["analysis.judges"]
    assert factors == (
        "error",
        "raters cannot be corrected by judges in a study with factors: a judge sees one condition only",
    )
    severity, message = problems_of(tmp_path, "best-worst", **judges)["analysis.judges"]
    assert severity == "error"
    assert "best_worst" in message
    assert "choices between two responses" in message
    assert "live dialogues" in problems_of(tmp_path, "chat", **judges)["analysis.judges"][1]
    unknown = problems_of(tmp_path, "likert", **judges, **{"\n    scale: ": "\n    scale: no_"})
    assert next(message for _, message in unknown.values()).startswith("there is no scale")


def test_models_of_labels_need_several_judges_and_labels(tmp_path):
    weighed = "\nanalysis:\n  judges: {use: [%s], combine: dawid_skene}\n"
    alone = problems_of(tmp_path / "a", "likert", **{"\nanalysis:\n": weighed % "one"})
    assert "one is named" in alone["analysis.judges.combine"][1]
    both = {"\nanalysis:\n": weighed % "one, two"}
    assert "analysis.judges.combine" not in problems_of(tmp_path / "b", "likert", **both)
