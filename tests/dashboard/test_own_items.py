"""Items by drag and drop: any file that the readers know, columns mapped by choosing, problems as on the command line."""

import io
import json
import zipfile

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.web.dashboard.running_studies import StudyFolders

TABLE = (
    "question;old bot;new;topic\n"
    "How far is it?;Two miles.;About two miles, half an hour on foot.;travel\n"
    'Is it open?;Yes.;"Yes; until six.";travel\n'
    "What does it cost?;Ten.;Ten euros for adults.;money\n"
)


@pytest.fixture
def parent(tmp_path):
    for name in ("likert", "pairs", "chat", "wizard"):
        copy_template(name, tmp_path / "studies" / name)
    return tmp_path / "studies"


@pytest.fixture
def ada(make_site, parent):
    return make_site(StudyFolders(parent=str(parent))).owner()


def drop(ada, name, content, study="likert"):
    content = content.encode() if isinstance(content, str) else content
    return ada.post(f"/studies/{study}/add-items", files={"items": (name, content, "application/octet-stream")})


def sheet(rows):
    """The smallest spreadsheet file."""
    cells = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>" for row in rows
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")
    return packed.getvalue()


def items_in(folder):
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]


def test_a_table_is_mapped_and_used(ada, parent):
    drop(ada, "../My answers.csv", TABLE)
    assert ada.status == 200, ada.text
    assert "3 rows, read as 3 items of the kind responses with the systems old_bot, new" in ada.text
    ada.get("/studies/likert/add-items/1/s")
    assert "Yes; until six." in ada.text
    assert "How relevant is this response" in ada.text, "as raters will see it"
    ada.post("/studies/likert/add-items", {"use": "1", "c1": "metadata", "how": "instead"})
    assert ada.status == 200
    study = load_study(parent / "likert")
    assert [system.name for system in study.spec.systems] == ["new"], "one column was said to be no system"
    assert "Systems removed, since no item shows them: rules, retrieval, neural." in ada.text
    assert study.items[0].metadata == {"old_bot": "Two miles.", "topic": "travel"}
    assert study.items[0].context[0].speaker == "Traveller", "the study's own name of the user"
    comparison = study.spec.analysis.comparisons[0]
    assert comparison.levels == []
    assert study.spec.design.items_per_rater == "all"
    assert study.spec.quality[0].rule == "attention", "rules about gold items that are gone, too"
    assert not (parent / "likert" / ".versions" / "uploaded").exists()


@pytest.mark.parametrize(
    "table",
    [
        "question,GPT 4,my model\nHow far?,Far.,Very far.\n",
        "prompt,model,response\nHow far?,GPT 4,Far.\nHow far?,my model,Very far.\n",
    ],
    ids=["a column each", "named in each row"],
)
def test_reports_call_systems_as_the_file_does(ada, parent, table):
    drop(ada, "answers.csv", table)
    assert ("1 row," if table.count("\n") == 2 else "2 rows,") in ada.text
    ada.post("/studies/likert/add-items", {"use": "1"})
    systems = load_study(parent / "likert").spec.systems
    assert [(system.name, system.label) for system in systems] == [("GPT_4", "GPT 4"), ("my_model", "my model")]
    assert [item["responses"] for item in items_in(parent / "likert")] == [{"GPT_4": "Far.", "my_model": "Very far."}]


def test_more_items_come_beside_those_there(ada, parent):
    before = items_in(parent / "likert")
    rows = [["id", "context", "rules", "retrieval", "neural"], ["x1", "Where is it?", "There.", "Over there.", "Here."]]
    drop(ada, "more.xlsx", sheet(rows))
    ada.post("/studies/likert/add-items", {"use": "1", "how": "more"})
    assert items_in(parent / "likert") == [
        *before,
        {
            "id": "x1",
            "context": [{"speaker": "Traveller", "text": "Where is it?"}],
            "responses": {"rules": "There.", "retrieval": "Over there.", "neural": "Here."},
        },
    ]
    assert "No errors." in ada.text


def test_problems_have_line_and_remedy_and_nothing_is_saved(ada, parent):
    before = (parent / "likert" / "items.jsonl").read_bytes()
    drop(ada, "answers.csv", TABLE.replace("Two miles.", "").replace("Is it open?", ""))
    for said in ("answers.csv:2", "no response of old_bot", "give one response per declared system", "answers.csv:3"):
        assert said in ada.text
    assert ada.post("/studies/likert/add-items", {"use": "1"}).status == 422
    drop(ada, "answers.csv", "a;b\n1\n")
    assert "answers.csv:2" in ada.text
    assert "the row has 1 cells, the header 2" in ada.text
    drop(ada, "empty.csv", "\n")
    assert "empty.csv" in ada.text
    for broken in ("broken.xlsx", "broken.csv.gz"):
        drop(ada, broken, b"PK\x03\x04" + b"\x00" * 40)
        assert ada.status == 200
        assert "This cannot be read" in ada.text
        assert str(parent) not in ada.page, "no folder of the server is shown"
    for start, said in ((b"%PDF-1.7\n%\xe2", "a PDF file"), (b"PK\x03\x04docx", "an archive or a document")):
        drop(ada, "answers.csv", start + b"\x00" * 40)
        assert f"this is {said}" in ada.text
        assert "save what it holds as .xlsx, CSV or text" in ada.text
    path = parent / "likert" / "study.yaml"
    path.write_text(path.read_text().replace("file: items.jsonl", "file: ../outside.jsonl"))
    drop(ada, "own.jsonl", before)
    ada.post("/studies/likert/add-items", {"use": "1"})
    assert not (parent / "outside.jsonl").exists(), "nothing is written beside the study"
    assert (parent / "likert" / "items.jsonl").read_bytes() == before
    assert ada.post("/studies/likert/add-items", {}).status == 422


def test_pasted_text_and_rows_of_one_response_each(ada, parent):
    rows = (
        "prompt\tsystem\tresponse\nHow far?\tone\tFar.\nHow far?\ttwo\tVery far.\nWhy?\tone\tSo.\nWhy?\ttwo\tBecause.\n"
    )
    ada.post("/studies/likert/add-items", {"pasted": rows})
    ada.post("/studies/likert/add-items", {"use": "1"})
    assert [item["responses"] for item in items_in(parent / "likert")] == [
        {"one": "Far.", "two": "Very far."},
        {"one": "So.", "two": "Because."},
    ]
    ada.post("/studies/chat/add-items", {"pasted": "Ask about bread.\nAsk about tea.\n"})
    assert "2 lines" in ada.text
    ada.post("/studies/chat/add-items", {"use": "1"})
    systems = [system.name for system in load_study(parent / "chat").spec.systems]
    assert [(item["scenario"], item["system"]) for item in items_in(parent / "chat")] == [
        (text, system) for text in ("Ask about bread.", "Ask about tea.") for system in systems
    ]


def test_two_responses_of_one_system_to_one_context_are_an_error(ada, parent):
    rows = "prompt,system,response\nHow far?,one,Far.\nHow far?,two,Very far.\nHow far?,one,Near.\nHow far?,two,Very far.\n"
    drop(ada, "rows.csv", rows)
    assert "rows.csv:4" in ada.text
    assert "another response of one to the same context was given on line 2" in ada.text
    assert "rows.csv:5" not in ada.text, "the same response twice, as where several people rated it"
    assert ada.post("/studies/likert/add-items", {"use": "1"}).status == 422
    ada.get("/studies/likert/add-items?skip=1")
    assert "rows with errors that are skipped: 1" in ada.text
    ada.post("/studies/likert/add-items", {"use": "1", "skip": "1"})
    assert [item["responses"] for item in items_in(parent / "likert")] == [{"one": "Far.", "two": "Very far."}]


def test_rows_of_one_item_belong_together_wherever_they_are_in_a_large_file(ada, parent):
    rows = [f"Question {n}?,{system},Answer {n} of {system}." for system in ("one", "two") for n in range(400)]
    drop(ada, "rows.csv", "\n".join(["prompt,system,response", *rows]))
    assert "The first 500 are shown and checked here" in ada.text
    assert "no response of" not in ada.text
    ada.post("/studies/likert/add-items", {"use": "1"})
    items = items_in(parent / "likert")
    assert len(items) == 400
    assert items[399]["responses"] == {"one": "Answer 399 of one.", "two": "Answer 399 of two."}


def test_columns_that_are_not_chosen_yet_are_said_once_and_without_json(ada):
    rows = "".join(f"meaning {n},sentence {n % 3},{('a', 'b')[n % 2]}\n" for n in range(40))
    drop(ada, "sentences.csv", f"mr,ref,team\n{rows}")
    assert "40 problems" in ada.text
    assert ada.text.count("'responses' is missing") == 3, "the first of many that are alike"
    assert "choose the column that holds it, or correct the file" in ada.text
    assert '{"system"' not in ada.text


def test_dialogues_of_any_format(ada, parent):
    chats = [
        {"messages": [{"role": "user", "content": f"Hi {n}"}, {"role": "assistant", "content": "Hello."}]} for n in "12"
    ]
    drop(ada, "gamma.jsonl", "".join(json.dumps(chat) + "\n" for chat in chats))
    assert "2 dialogues, format messages" in ada.text
    ada.post("/studies/likert/add-items", {"use": "1"})
    assert items_in(parent / "likert")[1]["context"] == [{"speaker": "Traveller", "text": "Hi 2"}]
    assert items_in(parent / "likert")[1]["responses"] == {"gamma": "Hello."}
    pair = "first\tversion_1\tversion_2\nx\tUser: Hi\\nAgent: Hello\t"
    ada.post("/studies/pairs/add-items", {"pasted": pair})
    assert ada.status == 200


def test_two_files_are_matched(ada, parent):
    files = [
        ("items", (f"{name}.csv", f"question,answer\nHow?,{said}\nWhy?,{said}!\n".encode(), "text/csv"))
        for name, said in (("one", "So"), ("two", "Thus"))
    ]
    ada.post("/studies/likert/add-items", files=files)
    assert "rows are matched by their context" in ada.text
    ada.post("/studies/likert/add-items", {"use": "1"})
    assert [item["responses"] for item in items_in(parent / "likert")] == [
        {"one": "So", "two": "Thus"},
        {"one": "So!", "two": "Thus!"},
    ]


@pytest.mark.parametrize("name", ["likert", "pairs", "chat", "wizard"])
def test_items_in_their_own_form_stay_as_they_are(ada, parent, name):
    content = (parent / name / "items.jsonl").read_bytes()
    drop(ada, "own.jsonl", content, name)
    ada.post(f"/studies/{name}/add-items", {"use": "1"})
    before = [json.loads(line) for line in content.splitlines()]
    assert items_in(parent / name) == before
    assert "No errors." in ada.text


def test_rows_with_errors_are_skipped_where_somebody_wants_that(ada, parent):
    drop(ada, "answers.csv", TABLE + ";Nothing was asked.;Nobody asked.;none\n")
    assert "Skip the rows with errors" in ada.text
    assert ada.post("/studies/likert/add-items", {"use": "1"}).status == 422
    ada.get("/studies/likert/add-items", skip="1")
    assert "rows with errors that are skipped: 1" in ada.text
    assert "Skip the rows" not in ada.text
    ada.post("/studies/likert/add-items", {"use": "1", "skip": "1", "c3": "metadata", "how": "instead"})
    assert "3 items saved." in ada.text
    assert len(items_in(parent / "likert")) == 3


def test_dialogues_of_several_systems_become_whole_dialogues(ada, parent):
    said = [("user", "Hi"), ("agent", "Hello."), ("user", "Bye")]
    dialogues = [
        {"id": "d1", "system": "one", "turns": [{"speaker": who, "text": text} for who, text in said]},
        {"id": "d2", "system": "two", "turns": [{"speaker": who, "text": text} for who, text in said]},
    ]
    drop(ada, "chats.jsonl", "".join(json.dumps(dialogue) + "\n" for dialogue in dialogues))
    assert "with the systems one, two" in ada.text
    assert "no response of two" in ada.text
    assert "Skip the rows" not in ada.text, "nothing would be left"
    ada.get("/studies/likert/add-items", kind="dialogue")
    assert "2 items of the kind dialogue with the systems one, two" in ada.text
    ada.get("/studies/likert/add-items/0/s", kind="dialogue")
    assert "Bye" in ada.text
    ada.post("/studies/likert/add-items", {"use": "1", "kind": "dialogue", "how": "instead"})
    study = load_study(parent / "likert")
    assert study.spec.items.kind == "dialogue"
    assert [item.system for item in study.items] == ["one", "two"]


def test_a_dialogue_gives_its_last_response_and_one_without_a_context_can_be_skipped(ada, parent):
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    chats = [
        {"id": "c1", "messages": [*turns, {"role": "user", "content": "Bye"}]},
        {"id": "c2", "messages": turns[1:]},
    ]
    drop(ada, "gamma.jsonl", "".join(json.dumps(chat) + "\n" for chat in chats))
    assert "(c2: context)" in ada.text, "a dialogue has no line of its own"
    assert "Skip the rows with errors" in ada.text
    ada.post("/studies/likert/add-items", {"use": "1", "skip": "1"})
    [item] = items_in(parent / "likert")
    assert item["responses"] == {"gamma": "Hello."}
    assert [turn["text"] for turn in item["context"]] == ["Hi"]


def test_labels_are_no_reference_responses(ada):
    rows = "".join(f"Question {n}?,Answer {n}.,Other answer {n}.,{('first', 'second')[n % 2]}\n" for n in range(40))
    drop(ada, "judged.csv", f"prompt,first,second,human\n{rows}")
    chosen = ada.page.partition('name="c3"')[2].partition("</select>")[0]
    assert 'value="metadata" selected' in chosen
