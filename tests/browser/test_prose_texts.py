"""Markdown of studies: one main heading, no HTML, no images, links beside the page."""

from __future__ import annotations

from dialometer.web.rater.prose import render_prose


def test_the_first_heading_is_the_page_s_and_later_ones_step_down() -> None:
    prose = render_prose("# One & two\n\nText\n\n# Three\n\n## Four\n")
    assert prose.heading == "One & two"
    assert "<h1" not in prose.body
    assert "<h2>Three</h2>" in prose.body
    assert "<h2>Four</h2>" in prose.body


def test_a_text_without_heading_leaves_it_to_the_page() -> None:
    prose = render_prose("Text first\n\n# Then a heading")
    assert prose.heading == ""
    assert "<h2>Then a heading</h2>" in prose.body


def test_html_shows_as_text_and_unsafe_links_do_not_link() -> None:
    body = render_prose(
        "<script>x()</script> <img src=x onerror=y> [a](javascript:z) ![b](https://example.org/b.png)"
    ).body
    assert "<script" not in body
    assert "<img" not in body
    assert "javascript:z" in body
    assert 'href="javascript' not in body


def test_tables_and_lists_are_drawn() -> None:
    body = render_prose("| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n- y\n").body
    assert "<table>" in body
    assert body.count("<li>") == 2
