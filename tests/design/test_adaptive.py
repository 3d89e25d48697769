"""Which systems a rater is given where that is drawn: balance, adaptive draws, recorded probabilities, refusals."""

import json
import re
from collections import Counter

import pytest

from dialometer.design.adaptive import chances, open_by_ratings, open_by_votes, sets_of, weight_of
from dialometer.design.assign import build_plan, draw_more, draw_session
from dialometer.design.load import check_study, load_study
from dialometer.design.templates import copy_template, template_folder
from dialometer.model.design import Assignment
from dialometer.model.session import PairVotes, Snapshot
from dialometer.model.study import Study
from dialometer.stats.sequential.adaptive import LEAST
from dialometer.storage.rows import draw_from_json, draw_to_json

STUDY = load_study(template_folder("arena"))
LIKERT, ACUTE = load_study(template_folder("likert")), load_study(template_folder("acute"))


def drawn(study, n):
    counts, draws = Counter(), []
    for ordinal in range(1, n + 1):
        draw = draw_session(study, Snapshot(ordinal=ordinal, item_counts=dict(counts)))
        counts.update(item for ids in draw.items.values() for item in ids)
        draws.append(draw)
    return draws


def test_balanced_pairs_meet_equally_often_in_every_item():
    draws = drawn(STUDY, 36)
    met = Counter((item, pair.systems) for draw in draws for item, pair in draw.pairs.items())
    assert len(met) == 6 * 3
    assert set(met.values()) == {6}
    assert {pair.probability for draw in draws for pair in draw.pairs.values()} == {round(1 / 3, 9)}
    assert draw_from_json(draw_to_json(draws[0])) == draws[0]
    sides = Counter(task.systems for draw in draws for task in build_plan(STUDY, draw).tasks)
    assert len(sides) == 6, "either system may be on the left"
    plan = build_plan(STUDY, draws[0])
    assert all(set(task.systems) == set(draws[0].pairs[task.item_id].systems) for task in plan.tasks)


def adaptive(study, **changes):
    design = study.spec.design.model_copy(update={"assignment": Assignment(rule="adaptive", floor=0.3), **changes})
    return Study(spec=study.spec.model_copy(update={"design": design}), items=study.items, texts=study.texts)


def test_uncertain_pairs_come_more_often_and_every_pair_keeps_a_chance():
    arena = STUDY.spec.arena.model_copy(update={"pairs": "uncertain", "floor": 0.3})
    study = Study(spec=STUDY.spec.model_copy(update={"arena": arena}), items=STUDY.items, texts=STUDY.texts)
    openness = open_by_votes(study, {("haze", "reed"): PairVotes(0, 900, 0)})
    assert openness["haze", "reed"] == LEAST
    draws = [draw_session(study, Snapshot(ordinal=n, openness=openness)) for n in range(1, 200)]
    drawn = [draw.pairs["plant"] for draw in draws if "plant" in draw.pairs]
    assert Counter(pair.systems for pair in drawn)["haze", "reed"] < len(drawn) / 6
    likely = chances(sets_of(study, study.items_by_id["plant"]), openness, 0.3)
    assert likely.min() >= 0.1
    assert {pair.probability for pair in drawn} == {round(chance, 9) for chance in likely.tolist()}


def test_raters_see_the_systems_that_were_drawn_for_them():
    study = adaptive(LIKERT, systems_per_item=2, judgments_per_item=None)
    openness = open_by_ratings(
        study, study.spec.scales["helpfulness_7"], [("rules", 6, 90), ("retrieval", 6, 90), ("neural", 2, 90)]
    )
    assert openness == {("rules", "retrieval"): 1.0, ("rules", "neural"): LEAST, ("retrieval", "neural"): LEAST}
    snapshots = [Snapshot(ordinal=n, openness=openness) for n in range(1, 41)]
    draws = [draw_session(study, snapshot) for snapshot in snapshots]
    assert draws == [draw_session(study, snapshot) for snapshot in snapshots], "the same state gives the same draw"
    assert draw_from_json(draw_to_json(draws[0])) == draws[0]
    for draw in draws:
        tasks = [task for task in build_plan(study, draw).tasks if not task.is_practice]
        assert {task.item_id for task in tasks} - set(draw.pairs) <= study.gold_ids, "gold items are shown whole"
        assert all(
            set(task.systems) == set(draw.pairs[task.item_id].systems) for task in tasks if task.item_id in draw.pairs
        )
    drawn = [pair for draw in draws for pair in draw.pairs.values()]
    met = Counter(pair.systems for pair in drawn)
    assert met["rules", "retrieval"] / len(drawn) == pytest.approx(0.8, abs=0.08)
    assert {round(pair.probability, 4) for pair in drawn} == {0.8, 0.1}
    assert (
        weight_of(study, LIKERT.items_by_id["luggage"] if "luggage" in LIKERT.items_by_id else LIKERT.items[5], 1 / 3)
        == 1
    )
    assert not draw_session(study, Snapshot(ordinal=1, source="model")).pairs, "judges rate everything"


def test_items_are_drawn_by_the_systems_they_show():
    study = adaptive(ACUTE, judgments_per_item=None)
    open_pair = {("fern", "moss"): 0.9, ("fern", "reed"): 0.01, ("fern", "clove"): 0.01}
    draws = [draw_session(study, Snapshot(ordinal=n, openness=open_pair)) for n in range(1, 31)]
    for draw in draws:
        ids = [item for item in draw.items["main"] if item not in study.gold_ids]
        assert len(ids) == 8
        assert set(ids) == set(draw.pairs)
        assert {item: set(study.items_by_id[item].systems) for item in ids} == {
            item: set(pair.systems) for item, pair in draw.pairs.items()
        }
        assert sum(pair.systems == ("fern", "moss") for pair in draw.pairs.values()) <= 4, "no item comes twice"
    met = Counter(pair.systems for draw in draws for pair in draw.pairs.values())
    assert met["fern", "moss"] / 30 > 3.5
    assert min(met.values()) >= 10
    more = draw_more(
        adaptive(ACUTE, judgments_per_item=None, items_per_rater="unlimited", batch_size=4), draws[0], Snapshot(1)
    )
    assert {item: more.pairs[item] for item in draws[0].pairs} == draws[0].pairs
    assert len(more.pairs) == 12


LIKERT_TEXT = (
    "  items_per_rater: 10\n  judgments_per_item: 5\n",
    "  items_per_rater: 10\n  systems_per_item: 2\n  assignment: adaptive\n",
)
ACUTE_TEXT = ("  judgments_per_item: 5\n", "  assignment: {rule: adaptive, floor: 0.2}\n")


@pytest.mark.parametrize(
    ("template", "changes", "message"),
    [
        ("likert", [LIKERT_TEXT], ""),
        ("acute", [ACUTE_TEXT], ""),
        ("likert", [LIKERT_TEXT, ("  systems_per_item: 2\n", "")], "every rater gets|all items show the same systems"),
        ("likert", [LIKERT_TEXT, ("  systems_per_item: 2", "  systems_per_item: 3")], "every rater sees all systems"),
        ("likert", [LIKERT_TEXT, ("analysis:\n", "analysis:\n  model: ordinal\n")], "the ordinal model does not use"),
        (
            "acute",
            [ACUTE_TEXT, ("floor: 0.2}", "floor: 0.2}\n  judgments_per_item: 5")],
            "the same number of raters in the end",
        ),
        ("acute", [ACUTE_TEXT, ("items_per_rater: 8", "items_per_rater: all")], "every rater gets all items"),
        ("acute", [ACUTE_TEXT, ("floor: 0.2", "floor: 0.05")], "out of range"),
        ("strategies", [("design:\n", "design:\n  assignment: adaptive\n")], "these items do not"),
        ("anchoring", [("design:\n", "design:\n  assignment: adaptive\n")], "tests of conditions"),
        ("arena", [("design:\n", "design:\n  assignment: adaptive\n")], "use 'pairs: uncertain'"),
    ],
)
def test_adaptive_assignment_is_refused_where_it_cannot_hold(template, changes, message, tmp_path):
    copy_template(template, tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text)
    found = [f"{p.message}; {p.remedy}" for p in check_study(tmp_path / "s")[1] if p.severity == "error"]
    assert [one for one in found if re.search(message, one)] if message else not found, found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("kind: arena", "kind: chat"), "only items of the kind arena"),
        (("  pairs: balanced", "  pairs: uncertain\n  floor: 0"), "arena.floor"),
        (("  messages: same", "  messages: both"), "arena.messages"),
        (("      type: scripted\n", "      type: wizard\n"), "a person cannot answer as one of two systems"),
        (
            (
                "type: pairwise\n    allow_tie: true\n    allow_both_bad: true",
                "type: spans\n    mark_categories: [{name: a}]",
            ),
            "a live conversation has none beforehand",
        ),
    ],
)
def test_what_cannot_be_held_is_refused_in_words(change, message, tmp_path):
    copy_template("arena", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    text = file.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change))
    assert any(message in f"{problem.field}: {problem.message}" for problem in check_study(tmp_path / "s")[1])


@pytest.mark.parametrize(
    ("systems", "message"),
    [(["maple"], "two systems meet"), ("maple", "list of systems"), (["maple", "oak"], "unknown system 'oak'")],
)
def test_items_name_the_systems_that_can_meet(systems, message, tmp_path):
    copy_template("arena", tmp_path / "s")
    file = tmp_path / "s" / "items.jsonl"
    items = [json.loads(line) for line in file.read_text().splitlines()]
    items[0]["systems"] = systems
    file.write_text("\n".join(map(json.dumps, items)))
    assert any(message in problem.message for problem in check_study(tmp_path / "s")[1])
