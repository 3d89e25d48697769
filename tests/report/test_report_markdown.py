"""Markdown, read with a Markdown reader: what stands in the study is shown as it stands."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich_report import HOSTILE

from dialometer.model.report import Turns
from dialometer.report import render
from dialometer.report.formats.markdown import _turns, escape

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts = []

    def handle_data(self, data):
        self.texts.append(data)


def text_of(html):
    reader = Text()
    reader.feed(html)
    reader.close()
    return " ".join("".join(reader.texts).split())


printable = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp", "Zs"), include_characters=" "), max_size=60
)


@given(printable)
def test_any_text_is_shown_as_it_stands(text):
    html = READER.render(escape(text))
    assert text_of(html) == " ".join(text.split())
    assert re.fullmatch(r"(<p>[^<]*</p>\n)?", html)


@given(printable)
def test_any_text_fits_into_a_cell(text):
    html = READER.render(f"| a | b |\n| :--- | ---: |\n| {escape(text)} | x |")
    assert html.count("<td") == 2
    assert text_of(html) == " ".join(f"a b {text} x".split())


words = st.text(st.sampled_from("crime 5.,*~-!’"), min_size=1, max_size=8)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=4))
def test_marks_change_no_letter_and_no_space_of_a_transcript(parts):
    """Equal, inserted or replaced, equal …: what is marked is left out. Only a struck word keeps the spaces around it."""
    stretches = [("replace", one, two) if k % 2 else ("equal", two, two) for k, (one, two) in enumerate(parts)]
    assert "".join(_both(stretches)[1].split()) == "".join("".join(two for _, _, two in stretches).split())
    inserted = [("insert", "", two) if kind == "replace" else (kind, two, two) for kind, _, two in stretches]
    first, second = _both(inserted)
    assert second == " ".join("".join(two for _, _, two in inserted).split())
    assert "".join(first.split()) == "".join("".join(one for _, one, _ in inserted).split())


def _both(stretches):
    """What a reader sees of both transcripts."""
    html = READER.render("\n\n".join(_turns(Turns("t", "T", (("user", tuple(stretches)),)))))
    html = html.partition("<li>")[2].partition("</li>")[0].partition("user:</strong>")[2]
    first = text_of(re.sub("<strong>.*?</strong>|<b>.*?</b>|<s>|</s>", "", html))
    second = text_of(re.sub("<s>.*?</s>|<del>.*?</del>", "", html))
    return first, second


def test_a_changed_end_of_a_sentence_has_no_added_spaces():
    parts = (("equal", "no crime", "no crime"), ("insert", "", ". How much"), ("equal", " was it?", " was it?"))
    assert "no crime<b>. How much</b> was it?" in _turns(Turns("t", "T", (("user", parts),)))[1]


@pytest.fixture(scope="module")
def html(rendered):
    return READER.render((rendered / "report.md").read_text(encoding="utf-8"))


def test_the_whole_report(report, html, rendered):
    assert html.count("<h1>") == 1
    assert html.count("<table>") == len(report.tables()) + 1
    shown = text_of(html)
    for words in (
        report.title,
        report.summary.answer,
        HOSTILE,
        "Interim report.",
        "not enough data",
        "58%, 95% confidence interval [49, 67]",
    ):
        assert words in shown
    assert "<script" not in html
    for link in re.findall(r'<img src="([^"]+)"', html):
        assert (rendered / link).exists()
    assert html.count("<img") == len(report.figures()) - 1


def test_problems_and_gaps_are_told(html):
    shown = text_of(html)
    assert "This part could not be computed: The questionnaire has no question 'experience'" in shown
    assert "This figure cannot be drawn" in shown
    assert "1 rater; at least 2 are needed" in shown


def test_changes_of_a_transcript_are_marked(html):
    assert "<s>flight 214</s> <strong>the next flight, 214</strong>" in html
    assert "<strong>I am sorry, that is a nuisance.</strong>" in html


def test_without_figure_files_there_are_no_links(report, tmp_path):
    render(report, tmp_path, formats=["markdown"])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "](" not in text
    assert "Means with intervals" in text
