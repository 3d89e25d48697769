"""Every problem at once, each at its line and column with a remedy."""

import json
import shutil
import time

import pytest
import yaml

from dialometer.design.load import check_study, load_study
from dialometer.design.positions import parse_yaml
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.errors import DialometerError, StudyError, UnknownName
from dialometer.flow.screens import fill
from dialometer.model.recruitment import Recruitment

GOOD = """\
dialometer: 1
name: tiny
title: A tiny study
seed: 7
speakers: {A: person, B: person}
systems:
  - name: one
  - name: two
items:
  kind: responses
scales:
  likes: {type: likert, points: 5}
criteria:
  - name: quality
    question: How good is it?
    scale: likes
recruitment:
  quota: 10
"""
ITEM = {
    "id": "i1",
    "context": [{"speaker": "A", "text": "Hello"}],
    "responses": {"one": "Hi", "two": "Who is there?"},
}


@pytest.fixture
def study_dir(tmp_path):
    for name in ("consent", "instructions", "debriefing"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    (tmp_path / "study.yaml").write_text(GOOD)
    (tmp_path / "items.jsonl").write_text(json.dumps(ITEM) + "\n")
    return tmp_path


def problems(folder, *, severity="error"):
    return [p for p in check_study(folder)[1] if p.severity == severity]


def edit(folder, old, new):
    path = folder / "study.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def line_of(folder, fragment, file="study.yaml"):
    for number, line in enumerate((folder / file).read_text().splitlines(), start=1):
        if fragment in line:
            return number, line.index(fragment) + 1
    raise AssertionError(fragment)


def test_a_good_study_loads(study_dir):
    study = load_study(study_dir)
    assert study.spec.title == "A tiny study"
    assert study.items[0].responses == {"one": "Hi", "two": "Who is there?"}
    assert study.cells == ({},)
    assert not problems(study_dir)


@pytest.mark.parametrize("name", template_names())
def test_templates_are_in_order(name):
    study, found = check_study(template_folder(name))
    assert study is not None
    assert found == []


def test_few_transcript_pairs_are_said_unless_claims_are_about_them_only(tmp_path):
    copy_template("strategies", tmp_path / "s")
    items = tmp_path / "s" / "items.jsonl"
    few = [line for line in items.read_text().splitlines() if json.loads(line)["id"].rsplit("-", 1)[1] in "12"]
    items.write_text("\n".join(few) + "\n")
    (found,) = check_study(tmp_path / "s")[1]
    assert found.severity == "warning"
    assert "empathy (2), formality (2)" in found.message
    assert "items: fixed" in found.remedy
    file = tmp_path / "s" / "study.yaml"
    file.write_text(file.read_text().replace("  correction: holm", "  correction: holm\n  items: fixed"))
    assert check_study(tmp_path / "s")[1] == []


def test_bins_are_checked(tmp_path):
    copy_template("strategies", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    written = file.read_text()
    for bins, message in (
        ("{ages: [18, 30]}", "there is no question 'ages'"),
        ("{gender: [30, 18]}", "in rising order"),
        ("{comment: [18, 30]}", "'comment' is not a subgroup"),
    ):
        file.write_text(written.replace("  correction: holm", f"  correction: holm\n  bins: {bins}"))
        assert any(message in problem.message for problem in check_study(tmp_path / "s")[1]), message


def test_the_templates_that_are_promised():
    names = "acute anchoring arena avatar best-worst chat compare judged likert mqm pairs rubric strategies wizard"
    assert template_names() == names.split()


@pytest.mark.parametrize(
    ("old", "new", "fragment", "message", "remedy"),
    [
        ("question: How", "qestion: How", "qestion", "unknown key 'qestion'", "did you mean 'question'?"),
        ("scale: likes", "scale: like", "scale: like", "no scale 'like'", "did you mean 'likes'?"),
        ("type: likert", "type: lickert", "type: lickert", "unknown scale 'lickert'", "did you mean 'likert'?"),
        ("points: 5", "points: 50", "points: 50", "50 is out of range", "≤ 11"),
        (
            "kind: responses",
            "kind: response",
            "kind: response",
            "'response' is not one of",
            "did you mean 'responses'?",
        ),
        ("seed: 7", "seed: -7", "seed: -7", "out of range", "≥ 0"),
        ("seed: 7", "seed: seven", "seed: seven", "whole number, not 'seven'", "correct the value"),
        ("  - name: two", "  - name: one", "name: one", "given twice", "rename"),
        ("name: tiny", "name: tiny study", "name: tiny study", "cannot be a name", "letters"),
        ("quota: 10", "quota: 10\n  quota: 11", "quota: 11", "given twice", "keep one"),
        ("  quota: 10", "  quotas: 10", "quotas", "unknown key 'quotas'", "did you mean 'quota'?"),
    ],
)
def test_errors_name_the_place_and_the_remedy(study_dir, old, new, fragment, message, remedy):
    edit(study_dir, old, new)
    found = [p for p in problems(study_dir) if message in p.message]
    assert found, [str(p) for p in problems(study_dir)]
    line, column = line_of(study_dir, fragment) if fragment != "name: one" else (8, 5)
    assert (found[0].file, found[0].line, found[0].column) == ("study.yaml", line, column)
    assert remedy in found[0].remedy


@pytest.mark.parametrize(
    ("n", "message"), [(3, "no item has more than 2 responses"), (1, ""), (0, "0 is out of range")]
)
def test_how_many_systems_of_an_item_are_shown_is_checked(study_dir, n, message):
    edit(study_dir, "recruitment:", f"design: {{systems_per_item: {n}}}\nrecruitment:")
    found = [p.message for p in problems(study_dir)]
    assert (message in " ".join(found)) if message else not found


def test_all_problems_come_at_once(study_dir):
    edit(study_dir, "question: How good is it?", "qestion: How good is it?")
    edit(study_dir, "points: 5", "points: 50")
    edit(study_dir, "seed: 7", "sed: 7")
    bad = {**ITEM, "id": "i2", "responses": {"one": "Hi", "tow": "x"}}
    with (study_dir / "items.jsonl").open("a") as file:
        file.write(json.dumps(bad) + "\nnot json\n")
    (study_dir / "consent.md").unlink()
    found = {(p.file, p.line): p.message for p in problems(study_dir)}
    assert ("items.jsonl", 2) in found
    assert "unknown system 'tow'" in found["items.jsonl", 2]
    assert "not valid JSON" in found["items.jsonl", 3]
    assert any("unknown key 'sed'" in message for message in found.values())
    assert any("'seed' is missing" in message for message in found.values())
    assert any("unknown key 'qestion'" in message for message in found.values())
    assert any("50 is out of range" in message for message in found.values())
    with pytest.raises(StudyError) as caught:
        load_study(study_dir)
    assert len(caught.value.problems) >= 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": [{"speaker": "C", "text": "Hello"}]}, "unknown speaker 'C'"),
        ({"context": [{"speaker": "A", "text": " "}]}, "'text' is empty"),
        ({"context": []}, "needs at least one turn"),
        ({"context": [{"speaker": "A", "text": "a\u0007b"}]}, "control character U+0007"),
        ({"responses": {"one": "Hi"}}, "no response of two"),
        ({"id": "i1"}, "was given on line 1"),
        ({"respones": {}}, "unknown key 'respones'"),
        ({"block": "b"}, "unknown block 'b'"),
        ({"metadata": 3}, "should be an object"),
    ],
)
def test_items_are_checked_by_line(study_dir, change, message):
    with (study_dir / "items.jsonl").open("a") as file:
        file.write("\n" + json.dumps({**ITEM, "id": "i2", **change}) + "\n")
    found = [p for p in problems(study_dir) if message in p.message]
    assert found, [str(p) for p in problems(study_dir)]
    assert found[0].file == "items.jsonl"
    assert found[0].line == 3
    assert found[0].remedy


def test_texts_are_normalised(study_dir):
    (study_dir / "items.jsonl").write_text(json.dumps({**ITEM, "responses": {"one": "Cafe\u0301", "two": "x\r\ny"}}))
    item = load_study(study_dir).items[0]
    assert item.responses == {"one": "Café", "two": "x\ny"}


@pytest.mark.parametrize("text", ["", "a: [1, 2", "\t- x", "just words", "a: &x [*x]\nb: 1"])
def test_broken_yaml_is_told_not_raised(study_dir, text):
    (study_dir / "study.yaml").write_text(text)
    assert problems(study_dir)


def test_alias_bombs_are_stopped(study_dir):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for here, there in zip("bcdefgh", "abcdefg", strict=True):
        bomb += f"{here}: &{here} [{', '.join(['*' + there] * 10)}]\n"
    (study_dir / "study.yaml").write_text(bomb)
    assert any("too many values" in p.message for p in problems(study_dir))


def test_a_file_of_too_many_values_is_not_composed():
    """Translations may have 16 MB, which took a quarter of a minute and more than a gigabyte, before they were refused."""
    text = "".join(f"k{number}: v\n" for number in range(1_000_000))
    began = time.process_time()
    assert [p.message for p in parse_yaml(text, "x").problems] == ["the file expands to too many values"]
    assert time.process_time() - began < 15
    prose = "".join(f"k{number}: |\n  A text: one, two - three? {'[' * 9}\n" for number in range(30_000))
    assert len(parse_yaml(prose, "x").data) == 30_000, "signs in texts are no values"


def test_words_that_old_yaml_reads_as_truth_stay_words(study_dir):
    edit(
        study_dir,
        "recruitment:",
        "pre_questionnaire:\n  - {name: q, text: Sure, scale: yn, accept: [yes]}\nrecruitment:",
    )
    edit(study_dir, "  likes:", "  yn: {type: choice, options: [yes, no]}\n  likes:")
    assert load_study(study_dir).spec.scales["yn"].options == ["yes", "no"]


@pytest.mark.parametrize(("written", "read"), [("08", 8), ("010", 10), ("0", 0), ("!!int 7", 7), ("!!int '010'", 10)])
def test_numbers_are_decimal_as_in_yaml_1_2(study_dir, written, read):
    edit(study_dir, "seed: 7", f"seed: {written}")
    assert load_study(study_dir).spec.seed == read


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("9" * 5000, "the number 999999999999… is too large"),
        ("1e999", "the number 1e999… is too large"),
        ("!!bool x", "'x' is not true or false, as the tag '!!bool' says"),
        ("!!int x", "'x' is not a whole number, as the tag '!!int' says"),
        ("!!float ''", "'' is not a number, as the tag '!!float' says"),
        ("!!timestamp x", "the tag '!!timestamp' is not used in study files"),
        ("!!binary '!'", "the tag '!!binary' is not used in study files"),
        ("!own x", "the tag '!own' is not used in study files"),
        ("0x10", "should be a whole number, not '0x10'"),
    ],
)
@pytest.mark.parametrize("place", ["seed: {}", "{}: 7"])
def test_what_old_yaml_trips_over_is_a_problem_with_its_line(study_dir, written, message, place):
    line = line_of(study_dir, "seed: 7")[0]
    edit(study_dir, "seed: 7", place.format(written))
    found = problems(study_dir)
    assert found
    if place.startswith("seed"):
        assert [(p.message, p.line, bool(p.remedy)) for p in found] == [(message, line, True)]


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000])
def test_items_that_json_cannot_hold_are_a_problem_of_their_line(study_dir, value):
    (study_dir / "items.jsonl").write_text(json.dumps(ITEM) + '\n{"id": ' + value + "\n")
    (found,) = problems(study_dir)
    assert (found.file, found.line) == ("items.jsonl", 2)
    assert found.remedy


def test_anchors_need_what_they_show(study_dir):
    edit(study_dir, "recruitment:", "design:\n  factors:\n    - {name: anchor, levels: [none, both]}\nrecruitment:")
    messages = [p.message for p in problems(study_dir)]
    assert any("has no standard response" in message for message in messages)
    assert any("needs a magnitude scale with a modulus" in message for message in messages)


@pytest.mark.parametrize(
    ("presentation", "message"),
    [
        ("anchor: number, anchor_values: {fluenzy: 100}", "there is no criterion 'fluenzy'"),
        ("anchor: number, anchor_values: {CRITERION: 0}", "0 is out of range"),
        ("anchor: number, anchor_values: {CRITERION: 9}", "9 is not on the scale"),
        ("task: 'Rate {{criterion}}.'", "nothing is known under {{criterion}}"),
        ("task: 'Compare with {{anchor}}.'", "see no value"),
    ],
)
def test_anchor_values_and_tasks_are_checked(study_dir, presentation, message):
    criterion = yaml.safe_load((study_dir / "study.yaml").read_text())["criteria"][0]["name"]
    edit(study_dir, "recruitment:", f"presentation: {{{presentation.replace('CRITERION', criterion)}}}\nrecruitment:")
    assert [p.message for p in problems(study_dir) if message in p.message]


def test_anchor_values_that_nobody_sees_are_named(study_dir):
    criterion = yaml.safe_load((study_dir / "study.yaml").read_text())["criteria"][0]["name"]
    edit(study_dir, "recruitment:", f"presentation: {{anchor_values: {{{criterion}: 3}}}}\nrecruitment:")
    assert [p.message for p in problems(study_dir, severity="warning")] == ["no condition shows these values"]


def test_scales_must_fit_what_is_shown(study_dir):
    edit(study_dir, "type: likert, points: 5", "type: best_worst")
    assert any("needs at least 3 alternatives, but an item shows 2" in p.message for p in problems(study_dir))


def test_factors_must_change_something(study_dir):
    edit(study_dir, "recruitment:", "design:\n  factors:\n    - {name: mood, levels: [glad, sad]}\nrecruitment:")
    assert any("no level of the factor 'mood' changes" in p.message for p in problems(study_dir))


def test_placeholders_must_have_values(study_dir):
    (study_dir / "consent.md").write_text("# Consent\n\nIt takes {{ minutes }} minutes, {{plaec}}.\n")
    (found,) = problems(study_dir)
    assert (found.file, found.line) == ("consent.md", 3)


@pytest.mark.parametrize(
    "text", ["{{" + " " * 30_000, "{{" * 15_000, "{{" + "x " * 15_000 + "{{", "{{" + "\t" * 30_000 + "}"]
)
def test_placeholders_that_do_not_end_take_no_time(study_dir, text):
    (study_dir / "consent.md").write_text(f"# Consent\n\n{text}\n")
    study, _ = check_study(study_dir)
    began = time.process_time()
    fill(study, study.spec.presentation, study.texts["consent.md"])
    assert check_study(study_dir)[1] == []
    assert time.process_time() - began < 10


def test_texts_outside_the_folder_are_refused(study_dir):
    edit(study_dir, "recruitment:", "texts: {consent: ../secret.md}\nrecruitment:")
    (study_dir.parent / "secret.md").write_text("x")
    assert any("outside" in p.message for p in problems(study_dir))


def test_new_never_overwrites(tmp_path):
    copy_template("likert", tmp_path / "s")
    with pytest.raises(DialometerError, match="not an empty folder"):
        copy_template("likert", tmp_path / "s")
    with pytest.raises(UnknownName, match="did you mean 'likert'"):
        copy_template("lickert", tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_levels_and_blocks_change_what_is_seen(tmp_path):
    shutil.copytree(template_folder("anchoring"), tmp_path / "s")
    study = load_study(tmp_path / "s")
    seen = [(study.presentation(c).anchor, study.presentation(c).layout) for c in study.cells]
    assert seen == [("none", "together"), ("none", "one_per_screen"), ("both", "together"), ("both", "one_per_screen")]


def test_texts_left_over_from_another_study_are_noticed(tmp_path):
    copy_template("acute", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    file.write_text(
        file.read_text().replace("speakers: {Speaker 1: user, Speaker 2: agent}", "speakers: {User: user, Bot: agent}")
    )
    items = tmp_path / "s" / "items.jsonl"
    items.write_text(items.read_text().replace("Speaker 1", "User").replace("Speaker 2", "Bot"))
    instructions = tmp_path / "s" / "instructions.md"
    instructions.write_text(instructions.read_text() + "\nYou will see 50 conversations.\nFern is the newest.\n")
    warnings = [problem for problem in check_study(tmp_path / "s")[1] if problem.severity == "warning"]
    said = {problem.message: problem for problem in warnings}
    assert said["the text mentions 'Speaker 2', who is not a speaker of this study"].file == "instructions.md"
    assert "the text says '50 conversations', but a rater gets 9 items" in said
    assert said["the text names the system 'Fern'"].line == len(instructions.read_text().splitlines())


def test_a_text_with_more_responses_than_items_show_is_noticed(tmp_path):
    copy_template("best-worst", tmp_path / "s")
    text = tmp_path / "s" / "instructions.md"
    text.write_text(text.read_text().replace("are four **responses**", "are six **responses**"))
    messages = [problem.message for problem in check_study(tmp_path / "s")[1]]
    assert messages == ["the text says six responses, but items show 4"]


def test_a_role_that_is_a_list_is_told_not_raised(study_dir):
    edit(study_dir, "{A: person, B: person}", "{A: [person], B: person}")
    assert any("speakers" in (p.field or "") for p in problems(study_dir))


def test_raters_cost_their_pay_and_the_fee():
    recruitment = Recruitment(pay_cents=125_000, fee_percent=20)
    assert recruitment.pay == "1,250.00 USD"
    assert recruitment.cost_cents(3) == pytest.approx(450_000)
