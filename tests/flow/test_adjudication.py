"""Adjudication: finding disagreements, settling them in a session, keeping both, and saying so in report and export."""

import json
import re

import pytest

from dialometer.analysis.base.data import load_data, load_exported
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.common.settled import settled_section
from dialometer.design.load import check_study, load_study
from dialometer.errors import AssignmentError
from dialometer.exchange.exports.export import export_study
from dialometer.flow.adjudication import disputes_of, find_disputes
from dialometer.flow.simulated import EngineAccess
from dialometer.model.session import Dispute, Draw
from dialometer.scales.likert import Likert
from dialometer.scales.magnitude import Magnitude
from dialometer.scales.spans import Spans
from dialometer.simulate.run import settle, simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.rows import draw_from_json, draw_to_json

RULE = "\nadjudication:\n  criteria: [quality]\n  distance: 1\n"


@pytest.fixture
def study(shorten):
    folder = shorten("compare", n_items=2, replace={"items_per_rater: 12": "items_per_rater: all"}).folder
    with (folder / "study.yaml").open("a") as file:
        file.write(RULE)
    return load_study(folder)


def walk(person, values):
    """All screens of a session; ``values`` by item and system, or 4."""
    while person.screen.kind != "done":
        screen = person.screen
        answers = person.answers(screen)
        if screen.item is not None:
            step = person.flow.path(person.session).steps[screen.step]
            for field in screen.fields:
                if field.name.startswith("quality."):
                    system = step.task.systems[int(field.target) - 1]
                    answers[field.name] = values.get((screen.item.id, system), 4)
        person.submit(answers)


def judged(arrive, study, answers):
    flow = None
    for number, values in enumerate(answers):
        person = arrive(study, f"p{number}")
        walk(person, values)
        flow = person.flow
    return flow


def adjudicator(arrive, flow):
    session = flow.arrive_to_settle("Ana").session
    person = arrive(flow.study, "p0")
    person.session_id = session.id
    return person


def test_a_third_person_settles_and_everything_is_kept(study, arrive, tmp_path):
    first, second = (item.id for item in study.rated_items if item.id not in study.gold_ids)
    names = [system.name for system in study.spec.systems]
    # On the first item they are two points apart on one system; one point on the second item is allowed.
    flow = judged(arrive, study, [{}, {(first, names[1]): 6, (second, names[0]): 5}])
    disputes = find_disputes(study, flow.store)
    assert {key: [(d.criterion, d.system) for d in several] for key, several in disputes.items()} == {
        (0, first): [("quality", names[1])]
    }
    assert [(one.item_id, one.state) for one in disputes_of(study, flow.store)] == [(first, "waiting")]

    person = adjudicator(arrive, flow)
    assert person.session.source == "adjudicator"
    assert disputes_of(study, flow.store)[0].state == "under way"
    with pytest.raises(AssignmentError, match="no disagreement is waiting"):
        flow.arrive_to_settle("Ben")
    screen = person.walk_to("item")
    (field,) = screen.fields
    assert sorted(said.answer for said in field.said) == ["4 Neither good nor bad", "6 Good"]
    assert [said.who for said in field.said] == ["Rater A:", "Rater B:"]
    person.submit({field.name: 7})
    assert person.session.state == "completed"
    assert disputes_of(study, flow.store)[0].state == "settled"

    data = load_data(study, flow.store)
    own = data.judgments.filter(data.judgments["item"] == first)["value"].to_list()
    assert 7 not in own
    assert 6 in own
    assert data.settled["value"].to_list() == [7]
    counts, results = settled_section(data, Options.declared(study)).parts
    assert counts.rows == (("Overall quality", 4, 1, 1, 0, 0),)
    of_second = next(row for row in results.rows if row[1] == study.spec.systems[1].label)
    assert of_second[2].value == pytest.approx(((4 + 6) / 2 + 4) / 2)
    assert of_second[3].value == pytest.approx((7 + 4) / 2)

    export_study(study, flow.store, tmp_path / "out", include_practice=True)
    lines = (tmp_path / "out/adjudications.csv").read_text().splitlines()
    assert len(lines) == 2
    again = load_exported(study, tmp_path / "out")
    assert again.settled["value"].to_list() == [7]
    assert again.judgments["value"].to_list() == data.judgments["value"].to_list()


def test_an_adjudicator_comes_back_to_what_waits_by_then(study, arrive):
    first, second = (item.id for item in study.rated_items if item.id not in study.gold_ids)
    name = study.spec.systems[0].name
    flow = judged(arrive, study, [{}, {(first, name): 7}])
    one = flow.arrive_to_settle("Ana").session
    assert flow.arrive_to_settle("Ana").session.id == one.id
    person = adjudicator(arrive, flow)
    walk(person, {})
    other = study.spec.systems[1].name
    judged(arrive, study, [{}, {}, {(first, name): 1, (first, other): 1, (second, name): 7}])
    states = {row.item_id: row.state for row in disputes_of(study, flow.store)}
    assert states == {first: "waiting", second: "waiting"}
    later = flow.arrive_to_settle("Ana").session
    assert later.id != one.id
    given = {item: [d.system for d in several] for item, several in later.draw.disputes.items()}
    assert given == {first: [other], second: [name]}, "what is settled stays settled, what came since waits"
    with pytest.raises(AssignmentError, match="no disagreement is waiting"):
        flow.arrive_to_settle("Ben")
    person.session_id = later.id
    walk(person, {})
    assert {row.state for row in disputes_of(study, flow.store)} == {"settled"}


def test_what_an_excluded_adjudicator_settled_waits_again(study, arrive):
    first = next(item.id for item in study.rated_items if item.id not in study.gold_ids)
    flow = judged(arrive, study, [{}, {(first, study.spec.systems[0].name): 7}])
    person = adjudicator(arrive, flow)
    walk(person, {})
    flow.store.exclusions.exclude(person.session_id, "the test", "a slip", flow.clock())
    assert [row.state for row in disputes_of(study, flow.store)] == ["waiting"]
    assert list(flow.arrive_to_settle("Ben").session.draw.disputes) == [first]
    with pytest.raises(AssignmentError, match="no disagreement is waiting"):
        flow.arrive_to_settle("Cleo")


RANKING = {
    "type: best_worst\n    best_label: Best response\n    worst_label: Worst response": "type: ranking",
    "type: best_worst\n    best_label: Most empathetic\n    worst_label: Least empathetic": "type: ranking",
}


@pytest.mark.parametrize(
    ("template", "replace", "answer", "rows"),
    [
        (
            "best-worst",
            {},
            r"(Best response|Most empathetic): Response \d · \w+ \w+: Response \d",
            "Tuned model, worst",
        ),
        ("best-worst", RANKING, r"Response \d > Response \d > Response \d", "Tuned model, mean rank"),
        ("acute", {}, r"Conversation [12]", "Moss"),
        ("mqm", {}, r"(“.+” \(.+, (Minor|Major|Critical)\)|I found nothing wrong\.)", "Large model"),
        ("rubric", {}, r"[A-D]: (Yes|No|Does not apply)( · [A-D]: (Yes|No|Does not apply))+", "Plain prompt"),
    ],
    ids=["best-worst", "ranking", "pairwise", "spans", "checklist"],
)
def test_every_way_of_judging_can_be_settled(shorten, arrive, template, replace, answer, rows):
    n = {"best-worst": 12}.get(template, 8)
    folder = shorten(template, replace={f"items_per_rater: {n}": "items_per_rater: all", **replace}).folder
    with (folder / "study.yaml").open("a") as file:
        file.write("\nadjudication: {}\n")
    study = load_study(folder)
    flow = arrive(study).flow
    access, truth = EngineAccess(flow), draw_truth(study, 1)
    simulate(study, access, truth, n_raters=4, seed=1, start_ms=1_800_000_000_000)
    person = arrive(study, "watching")
    person.session_id = flow.arrive_to_settle("Ana", source="simulated_adjudicator").session.id
    screen = person.walk_to("item")
    assert screen.fields
    for field in screen.fields:
        assert len(field.said) > 1 or field.scale.point_texts()
        assert all(re.match(answer, said.answer) for said in field.said), field.said
    settle(study, access, truth, n_adjudicators=1, seed=1, start_ms=1_800_001_000_000)
    waiting = [one.item_id for one in disputes_of(study, flow.store, "simulated_adjudicator") if one.state == "waiting"]
    assert waiting == []
    _, results = settled_section(load_data(study, flow.store, sources=("simulated",)), Options.declared(study)).parts
    assert rows in [row[1] for row in results.rows]
    if template in ("best-worst", "acute"):
        assert all(0 <= own.low <= own.high <= 100 for *_, own, _, _ in results.rows if own.has_interval)


def test_simulated_adjudicators_settle_all(shorten, arrive):
    folder = shorten("rubric", n_items=3, replace={"items_per_rater: 8": "items_per_rater: all"}).folder
    with (folder / "study.yaml").open("a") as file:
        file.write("\nadjudication: {}\n")
    study = load_study(folder)
    flow = arrive(study).flow
    access, truth = EngineAccess(flow), draw_truth(study, 1)
    simulate(study, access, truth, n_raters=4, seed=1, start_ms=1_800_000_000_000)
    progress = settle(study, access, truth, n_adjudicators=2, seed=1, start_ms=1_800_001_000_000)
    rows = disputes_of(study, flow.store, "simulated_adjudicator")
    assert rows
    assert {one.state for one in rows} == {"settled"}
    assert progress.n_judgments == sum(
        len(several) for several in find_disputes(study, flow.store, "simulated_adjudicator").values()
    )
    assert not load_data(study, flow.store, sources=("simulated",)).n_left_out.get("another source of raters")


def test_what_counts_as_a_disagreement():
    likert = Likert(points=7)
    assert likert.differ([3, 5], 1)
    assert not likert.differ([3, 4], 1)
    assert Magnitude().differ([10, 25], 2)
    assert not Magnitude().differ([10, 20], 2)
    spans = Spans(mark_categories=[{"name": "style"}])
    mark = {"turn": 0, "start": 0, "end": 4, "text": "Some", "category": "style", "severity": "minor"}
    one, other = ({"n_words": 9, "marks": [{**mark, "comment": comment}]} for comment in ("odd", ""))
    assert not spans.differ([one, other])
    assert spans.differ([one, {"n_words": 9, "marks": []}])


def test_draws_keep_what_is_to_be_settled():
    draw = Draw(3, 0, ("main",), {"main": ("a",)}, disputes={"a": (Dispute("quality", "v1", None, (4, 9)),)})
    assert draw_from_json(draw_to_json(draw)) == draw
    assert "disputes" not in json.loads(draw_to_json(Draw(1, 0, (), {})))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("adjudication: {criteria: [qality]}", "there is no criterion 'qality'"),
        ("adjudication: {raters: 9}", "9 have to judge it first"),
    ],
)
def test_rules_that_cannot_work_are_refused(shorten, rule, words):
    folder = shorten("compare", replace={"items_per_rater: 12": "items_per_rater: all"}).folder
    text = (folder / "study.yaml").read_text()
    (folder / "study.yaml").write_text(f"{text}\n{rule}\n")
    assert any(words in problem.message for problem in check_study(folder)[1])
