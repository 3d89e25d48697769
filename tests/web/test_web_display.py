"""Responses as people saw them: Markdown, tool calls, system prompts, media and long texts on the pages."""

from __future__ import annotations

import json
import re
import zlib

import pytest
import yaml

from dialometer.design.items import ItemReader
from dialometer.design.load import check_study, load_study
from dialometer.exchange.exports.export_tables import SCREENS
from dialometer.markup.markdown import _rendered
from dialometer.model.media import address_of_file
from dialometer.model.tool_steps import MAX_SHOWN

STUDY = """
dialometer: 1
name: shown
title: Shown
seed: 1
systems: [{name: alpha}, {name: beta}]
items: {kind: responses}
scales: {choice: {type: pairwise}}
criteria: [{name: better, question: Which?, scale: choice}]
design: {system_order: fixed, item_order: fixed}
"""
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 30 + b"\0\0\0\0IEND" + zlib.crc32(b"IEND").to_bytes(4, "big")
LONG = "word " * 400
CALL = {"name": "search", "arguments": {"query": "ferns"}, "result": "<b>found</b>"}
ITEM = {
    "id": "one",
    "system_prompt": "Be brief.",
    "context": [{"speaker": "User", "text": "Why?", "media": [{"path": "media/fern.png", "alt": "A brown fern"}]}],
    "responses": {
        "alpha": {"text": "**Dry** air $x^2$ <script>", "tool_calls": [CALL], "system_prompt": "Rhyme."},
        "beta": LONG,
    },
}


@pytest.fixture
def write(tmp_path):
    def make(item=ITEM, **presentation):
        folder = tmp_path / "study"
        (folder / "media").mkdir(parents=True, exist_ok=True)
        (folder / "media" / "fern.png").write_bytes(PNG)
        (folder / "study.yaml").write_text(STUDY + f"presentation: {json.dumps(presentation)}\n")
        (folder / "items.jsonl").write_text(json.dumps(item) + "\n")
        for name in ("consent", "instructions", "debriefing"):
            (folder / f"{name}.md").write_text(f"# {name}\n")
        return folder

    return make


@pytest.fixture
def first_item(site, write):
    """A rater in front of the first item."""

    def walk(item=ITEM, **presentation):
        served = site(load_study(write(item, **presentation)))
        browser = served.browser().arrive()
        browser.walk_to(served, "item")
        return served, browser

    return walk


def test_plain_texts_look_as_before(first_item):
    _, browser = first_item({**ITEM, "responses": {"alpha": "**Dry** <script>", "beta": "b"}})
    assert '<p class="response-text" dir="auto">**Dry** &lt;script&gt;</p>' in browser.page
    assert "rich.css" in browser.page
    for absent in ('class="response-text rich"', "folding.js", "Be brief.", "word-count", "cut-switch"):
        assert absent not in browser.page


def test_markdown_tools_prompts_and_word_counts(first_item):
    served, browser = first_item(text="markdown", system_prompt="shown", tools="shown", word_count="shown")
    page = browser.page
    assert '<div class="response-text rich"><p dir="auto"><strong>Dry</strong> air <math display="inline">' in page
    assert "&lt;script&gt;" in page
    assert '<details class="step" open>' in page
    assert "&lt;b&gt;found&lt;/b&gt;" in page
    assert "{\n  &#34;query&#34;: &#34;ferns&#34;\n}" in page
    assert page.index("Be brief.") < page.index("Rhyme.")
    assert "400 words" in page
    assert "alpha" not in page
    image = re.search(r'<img class="picture" src="([^"]+)" alt="A brown fern"', page)[1]
    assert image == f"/media/{address_of_file('media/fern.png')}"
    answer = served.client.get(image)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/png", PNG)
    assert "img-src 'self' data:; font-src 'self'; media-src 'self'" in answer.headers["content-security-policy"]
    assert served.client.get("/media/fern.png").status_code == 404


def test_hidden_tools_leave_no_trace(first_item):
    _, browser = first_item(tools="hidden")
    assert "search" not in browser.page


def test_programs_and_judges_see_what_people_see(site, write):
    served = site(load_study(write(system_prompt="shown")))
    program = served.open_api()
    item = program.walk_to(served.study, "item")["item"]
    assert item["system_prompt"] == "Be brief."
    (turn,) = item["options"][0]["turns"]
    assert turn["tool_calls"] == [{**CALL, "arguments": '{"query": "ferns"}', "is_cut": False}]
    assert item["context"][0]["media"][0]["alt"] == "A brown fern"


def test_opening_a_long_response_is_stored_and_exported(first_item):
    served, browser = first_item(fold_words=100)
    places = re.findall(r'class="unseen cut-switch" type="checkbox" name="opened" value="(\d)"', browser.page)
    assert places == ["2"]
    assert '<div class="cut cut-18">' in browser.page
    assert "folding.js" in browser.page
    browser.send({"opened": "2"})  # nothing answered: the page comes back with the text open
    assert re.search(r'name="opened" value="2"[^>]* checked>', browser.page)
    browser.send({"better": "1", "opened": ["2", "2", "7", "beta"]})
    visit = next(visit for visit in served.store.records.visits() if visit.screen == "item/one")
    assert visit.opened == ("beta",)
    assert "opened" in SCREENS.columns


@pytest.mark.slow
def test_a_tool_result_of_ten_megabytes(first_item):
    call = {"name": "dump", "arguments": "x" * 5_000, "result": '{"a": "' + "y" * 10_000_000 + '"}'}
    item = {**ITEM, "responses": {"alpha": {"text": "a", "tool_calls": [call]}, "beta": "b"}}
    served, browser = first_item(item)
    assert len(browser.page) < 60_000
    assert "\u202f".join(("10", "000", "009")) in browser.page
    browser.send({"better": "1"})
    assert len(list(served.store.records.judgments())) == 1
    assert served.study.items[0].tool_calls["alpha"][0].result.count("y") == 10_000_000
    assert MAX_SHOWN < 5_000


def test_images_of_markdown_texts_are_checked_and_served(first_item, write):
    item = {
        **ITEM,
        "responses": {"alpha": "![A fern](media/fern.png) ![x](media/no.png)", "beta": "![y](//evil/z.png)"},
    }
    _, browser = first_item(item, text="markdown")
    assert f'src="/media/{address_of_file("media/fern.png")}"' in browser.page
    assert "evil" not in browser.page
    folder = write(item, text="markdown")
    (folder / "media" / "no.png").write_text("no image")
    problems = [problem for problem in check_study(folder)[1] if "Markdown" in problem.message]
    assert [(problem.severity, problem.file, problem.line) for problem in problems] == [
        ("warning", "items.jsonl", 1)
    ] * 2
    assert "'no.png' is not a valid image" in problems[0].message


def test_formatting_is_a_condition(write):
    folder = write()
    text = (
        (folder / "study.yaml")
        .read_text()
        .replace("design: {", "design: {factors: [{name: text, levels: [plain, markdown]}], ")
    )
    (folder / "study.yaml").write_text(text)
    study = load_study(folder)
    assert [study.presentation(condition).text for condition in study.cells] == ["plain", "markdown"]
    assert study.shows_markdown


def test_two_responses_of_four_thousand_words(first_item):
    """How long it takes is measured by `python -m bench display`; here each text is drawn once for all looks at it."""
    paragraph = "The **air** in the `room` is dry, and $x_1$ grows with it. " * 8
    text = "\n\n".join(f"## Part {n}\n\n{paragraph}\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |" for n in range(40))
    assert len(text.split()) > 4_000
    _rendered.cache_clear()
    _, browser = first_item({**ITEM, "responses": {"alpha": text, "beta": text + "\n\nEnd."}}, text="markdown")
    drawn = _rendered.cache_info().misses
    browser.get("/s")
    assert _rendered.cache_info().misses == drawn > 0
    assert browser.page.count("<table") == 80


def test_items_without_the_new_fields_are_equal():
    reader = ItemReader("dialogue", {}, ["x"], "items.jsonl")
    (item,) = reader.read(b'{"id": "a", "system": "x", "turns": [{"speaker": "user", "text": "b"}]}')
    assert (item.system_prompt, item.turns[0].tool_calls, item.turns[0].media) == ("", (), ())


@pytest.mark.parametrize(("template", "address"), [("chat", "/s/chat"), ("arena", "/s/arena")])
def test_live_replies_in_markdown(site, make_study, template, address):
    agent = {"type": "scripted", "options": {"otherwise": ["**Hello** <script>"]}}
    systems = [{"name": name, "agent": agent} for name in ("larch", "rowan")]
    folder = make_study(template, n_items=None).folder
    lines = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()][:1]
    item = {**lines[0], **({"system": "larch"} if template == "chat" else {"systems": ["larch", "rowan"]})}
    (folder / "items.jsonl").write_text(json.dumps(item) + "\n")
    text = (folder / "study.yaml").read_text()
    spec = yaml.safe_load(text) | {"systems": systems, "presentation": {"text": "markdown"}, "analysis": {}}
    (folder / "study.yaml").write_text(yaml.safe_dump(spec))
    served = site(load_study(folder))
    browser = served.browser().start()
    browser.walk_to(served, "chat")
    headers = {"X-CSRF-Token": browser.fields["csrf"]}
    answer = browser.client.post(address, json={"text": "*me*"}, headers=headers)
    events = [json.loads(line) for line in answer.text.splitlines()]
    replies = [event for event in events if event.get("reply")]
    assert {reply["html"] for reply in replies} == {'<p dir="auto"><strong>Hello</strong> &lt;script&gt;</p>\n'}
    browser.get("/s")
    assert '<div class="said rich"><p dir="auto"><strong>Hello</strong> &lt;script&gt;</p>' in browser.page
    assert '<p class="said" dir="auto">*me*</p>' in browser.page
