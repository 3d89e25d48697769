"""The page, read as a tree: it stands alone, is escaped, and its structure can be followed without seeing it."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich_report import HEBREW, HOSTILE, rich_report

from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Headline, Summary, Turns
from dialometer.report.drawing import DrawingError, Drawings, draw_svg, for_page
from dialometer.report.formats.html_page import html_page, html_part
from dialometer.report.interval_bar import interval_bar
from dialometer.report.numbers import as_sentence, reproduce_lines, write_headline

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Every element with its attributes and the path of open elements; complains about what is not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def source(rendered):
    return (rendered / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_it_stands_alone(source, page):
    assert not re.findall(r"https?://|//[a-z]+\.[a-z]", source)
    for tag in ("script", "link", "img", "iframe", "object", "base"):
        assert not page.all(tag), tag
    assert all(a["href"].startswith("#") for a in page.all("a"))
    assert not [name for _, attributes, _ in page.elements for name in attributes if name.startswith("on")]
    assert "@import" not in source
    policy = next(meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'")


def test_texts_are_shown_as_they_stand(source, page):
    assert "<script" not in source
    assert "<b>" not in source
    assert page.text.count(" ".join(HOSTILE.split())) >= 3
    assert HEBREW in page.text
    assert "why: <b>nobody</b> came" in page.text


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes, _ in page.elements:
        for name in ("href", "aria-labelledby"):
            if name in attributes:
                assert attributes[name].removeprefix("#") in ids
        for reference in re.findall(r"url\(#([^)]+)\)", " ".join(filter(None, attributes.values()))):
            assert reference in ids


def test_headings_tables_and_figures_can_be_followed(report, page):
    levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert len(page.all("table")) == len(page.all("caption")) == len(report.tables()) + 1
    assert all(th["scope"] in ("col", "row") for th in page.all("th"))
    drawings = [svg for svg in page.all("svg") if svg.get("role") == "img"]
    assert {svg["aria-label"] for svg in drawings} == {f.alt for f in report.figures() if f.name != "broken"}
    contents = [a["href"] for a in page.all("a")]
    assert all(contents.count(f"#section-{section.name}") == 2 for section in report.sections)


def test_charts_are_real_text_in_two_widths(page, report):
    assert page.text.count("page per question") >= 4
    svg_texts = [1 for tag, _, path in page.elements if tag == "text" and "svg" in path]
    assert len(svg_texts) > 100
    assert len([svg for svg in page.all("svg") if svg.get("class") == "chart-drawing"]) == 2 * (
        len(report.figures()) - 1
    )


def test_what_the_first_screen_says(page):
    for words in (
        "Interim report.",
        "The study is not finished",
        "Raters who saw an anchor gave ratings 17% higher",
        "Fairly certain",
        "95% confidence interval [49, 67] · p = .081",
        "Table 1 Left out, and why",
        "Table 2 Balance of conditions",
        "one group has 2 raters; at least 3 are needed",
        "Confirmatory declared in the study file (frozen on 2026-01-08, before the first judgment)",
    ):
        assert words in page.text, words


def test_a_finished_study_does_not_claim_to_be_unfinished(report):
    text = html_page(rich_report(is_finished=True))
    assert "Interim" not in text
    assert "not finished" not in text


def test_badges_differ_from_their_section(page):
    assert "Table 5 Share preferring the experimental transcript Confirmatory" in page.text
    assert "Figure 3 Effects and their intervals Exploratory" in page.text
    assert "Figure 2 Distribution of ratings All judgments" in page.text


def test_problems_are_calm_and_the_rest_appears(page):
    assert "This part could not be computed. The questionnaire has no question 'experience'" in page.text
    assert "This figure cannot be drawn:" in page.text
    assert "How to reproduce this" in page.text


def test_changes_of_a_transcript_are_marked(source, page):
    assert re.search(r"<del><span class=\"hidden\">[^<]+</span>flight 214<span", source)
    assert re.search(r"</del> <ins><span class=\"hidden\">[^<]+</span>the next flight, 214<span", source)
    assert re.search(r"nuisance\.<span class=\"hidden\">\]</span></ins> I can book", source)


def test_a_bare_summary():
    report = replace(
        rich_report(), summary=Summary("Nobody took part yet.", "Nothing is known."), sections=(), methods=()
    )
    page = Page(html_page(report))
    assert "Nobody took part yet." in page.text
    assert not page.all("svg")


def test_how_to_get_it_again(report):
    sentence, command = reproduce_lines(report)
    assert sentence == (
        "The same study files (fingerprint sha256:4f9c1f0e7a52), the same judgments, dialometer 0.1.0 and seed 7 "
        "give the same numbers again, to the last digit. This report was made with:"
    )
    assert command == "dialometer report STUDY_FOLDER"
    assert reproduce_lines(replace(report, provenance={"command": "dialometer report x"}))[1] == "dialometer report x"


def test_headlines_in_words():
    share = Estimate(0.583, 120, "p", 0.494, 0.668, unit="share", p_value=0.081)
    words = write_headline(Headline("x", share, ""))
    assert (words.value, words.unit, words.interval, words.test) == (
        "58%",
        "",
        "95% confidence interval [49, 67]",
        "p\u00a0=\u00a0.081",
    )
    elo = write_headline(Headline("x", Estimate(1512.3, 9, "Elo", 1480, 1544, unit="Elo"), ""))
    assert (elo.value, elo.unit) == ("1,512", "Elo")
    untested = Estimate(0.0, 4, "t-test", unit="points", details={"p_adjusted": None})
    assert write_headline(Headline("x", untested, "")).test == "", (
        "as a report from its file has a p-value that is none"
    )
    assert not write_headline(Headline("x", None, "")).is_known
    assert write_headline(Headline("x", unknown("m", "why"), "")).notes == ("why",)
    assert as_sentence("the file is gone") == "The file is gone."
    assert as_sentence(" Why? ") == "Why?"
    assert as_sentence("") == ""


def test_bars_show_what_no_effect_would_be():
    share = interval_bar(Estimate(0.6, 9, "p", 0.5, 0.7, unit="share", details={"null": 0.5}))
    assert (share.value, share.low, share.high, share.reference) == (60, 50, 70, 50)
    assert (share.start_text, share.reference_text, share.end_text) == ("0%", "50%", "100%")
    near = interval_bar(Estimate(0.4, 9, "icc", 0.3, 0.5))
    assert near.reference is not None
    assert near.reference < near.low < near.value < near.high < 100
    ratio = interval_bar(Estimate(1.17, 9, "ratio", 1.08, 1.27, unit="times"))
    assert ratio.reference < ratio.low
    assert ratio.reference_text == "1"
    far = interval_bar(Estimate(1500, 9, "Elo", 1490, 1510))
    assert far.reference is None
    assert far.start_text == "1,488"
    assert interval_bar(None) is None
    assert interval_bar(unknown("m", "why")) is None
    assert interval_bar(Estimate(1, 9, "m")) is None
    assert interval_bar(Estimate(1, 9, "m", 1, float("inf"))) is None


def test_drawings_do_not_clash_and_are_made_once(report, monkeypatch):
    figure = report.figures()[0]
    drawings = Drawings()
    one, two = drawings.inline(figure, "one"), drawings.inline(figure, "two")
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    monkeypatch.setattr("dialometer.report.drawing.draw_svg", None)
    assert drawings.inline(figure, "one") == one


def test_drawings_fetch_nothing_and_say_what_is_wrong():
    with pytest.raises(DrawingError, match="not allowed"):
        draw_svg({"data": {"url": "https://example.org/x.csv"}, "mark": "bar", "encoding": {"x": {"field": "a"}}})
    with pytest.raises(DrawingError, match="no size"):
        for_page("<p>not a drawing</p>", prefix="x", alt="y")
    assert 'aria-label="a &quot;b&quot; &lt;c&gt;"' in for_page(
        draw_svg({"mark": "bar", "data": {"values": []}}), prefix="x", alt='a "b" <c>'
    )


def test_turns_that_raters_saw_as_markdown():
    rows = (("agent", (("equal", "a", "**Dry** <script>"),)), ("agent", (("insert", "", "**new**"),)))
    part = html_part(Turns("pair", "Pair", rows, is_markdown=True))
    assert '<div class="rich"><p dir="auto"><strong>Dry</strong> &lt;script&gt;</p>' in part
    assert "**new**" in part  # differences are marked in the text as it was written
