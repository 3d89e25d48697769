"""Markdown of systems: shown as chat programs show it, and nothing in it runs or loads anything."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest

from dialometer.markup.code import LANGUAGES, MAX_COLOURED, _lexer
from dialometer.markup.markdown import MAX_BRACKETS, MAX_MARKDOWN, images_in, render_markdown
from dialometer.markup.mathematics import MAX_FORMULA, mathml

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><use href='data:,x'/></svg>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x) ![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    "![x](//evil.example/pixel.png)",
    '![x" onerror="alert(1)](media/a.png)',
    '[x](https://a.example/"onmouseover="alert(1))',
    "<https://a.example/<script>>",
    "```<img src=x onerror=alert(1)>\n</code></pre><script>alert(1)</script>\n```",
    "```html\n<script>alert(1)</script>\n```",
    "`</code><script>alert(1)</script>`",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\href{javascript:alert(1)}{x}$",
    "$$\\class{x}{<style>*{display:none}</style>}$$",
    "$\\unicode{x3c}script>$",
    "| <b onclick=alert(1)> | b |\n|---|---|\n| <iframe src=//evil> | c |",
    "<style>*{display:none}</style>\n\n<form action=//evil><input name=csrf>",
    "[a]: javascript:alert(1)\n\n[a]",
    '<math><mtext><style><img src=x onerror="alert(1)"></style></mtext></math>',
    "image:x ![a](image:x)",
]
ALLOWED_ATTRIBUTES = {"class", "dir", "tabindex", "start", "src", "alt", "loading", "display"}


class Elements(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_runs_and_nothing_is_loaded(text):
    html = render_markdown(text, frozenset({"media/a.png"}), lambda path: f"/media/{path}")
    for tag, attributes in Elements(html).found:
        assert tag not in {"script", "style", "iframe", "svg", "form", "input", "object", "embed", "link", "meta", "a"}
        assert not [name for name in attributes if name.startswith("on") or name in ("href", "style", "srcset", "id")]
        assert attributes.get("src") in (None, "/media/media/a.png")


def test_what_chat_programs_show():
    html = render_markdown("# Title\n\nOne\ntwo **b** *e* ~~s~~ `c`\n\n> q\n\n1. a\n2. b\n\n### Deep\n\n---")
    for part in (
        '<h3 class="heading-1" dir="auto">Title</h3>',
        "One<br>\ntwo <strong>b</strong> <em>e</em> <s>s</s> <code>c</code>",
        '<blockquote dir="auto">',
        '<ol dir="auto">',
        '<h4 class="heading-3" dir="auto">Deep</h4>',  # no level of the page's headings is left out
        "<hr>",
    ):
        assert part in html


def test_tables_have_a_box_and_alignment():
    html = render_markdown("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert '<div class="table-box" tabindex="0"><table dir="auto">' in html
    assert '<td class="align-right">2</td>' in html
    assert "style=" not in html


def test_code_has_colours_and_its_language():
    html = render_markdown("```python\nreturn '<b>'\n```\n\n    plain < code")
    assert '<p class="code-name">python</p>' in html
    assert '<span class="k">return</span>' in html
    assert "&lt;b&gt;" in html
    assert "plain &lt; code</code>" in html
    unknown = render_markdown("```nolang\nx = 1 < 2\n```")
    assert "<code>x = 1 &lt; 2</code>" in unknown


def test_links_show_their_address_and_lead_nowhere():
    html = render_markdown("[guide](https://example.org/a) <https://example.org> [bad](javascript:x)")
    assert '<span class="link">guide</span> <span class="link-to" dir="ltr">(https://example.org/a)</span>' in html
    assert html.count("link-to") == 1
    assert "[bad](javascript:x)" in html
    assert "<a" not in html


def test_only_images_that_the_study_has():
    text = "![A fern](media/f%C3%A4rn.png) ![other](media/other.png)"
    html = render_markdown(text, frozenset({"media/färn.png"}), lambda path: f"/m/{len(path)}.png")
    assert '<img class="picture" src="/m/14.png" loading="lazy" alt="A fern">' in html
    assert '<span class="no-image">other</span>' in html
    assert images_in("a ![b](my%20pic.png) [![c](<d e.png>)](f) `![g](h.png)` ![](i(j).png)") == [
        "my pic.png",
        "d e.png",
        "i(j).png",
    ]
    said = 'Write src="image:fern.png".'
    assert said in render_markdown(said, address=lambda path: f"/m/{path}"), (
        "words that look like ours stay as they are"
    )


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("$a^2$ and \\(b\\)", 2),
        ("It costs $5 and $10.", 0),
        ("From $5-$10 or US$ 3 and $ 4 $", 0),
        ("$$x$$ in a line", 1),
        ("$$\nx\n+ y\n$$", 1),
        ("\\[ x \\]\n\nafter", 1),
        ("`$a$` and \\$a\\$", 0),
        ("```\n$$\nx\n$$\n```", 0),
        ("$$\nnever closed", 0),
    ],
)
def test_formulas(text, formulas):
    assert render_markdown(text).count("<math") == formulas


def test_formulas_as_mathml():
    assert "<mfrac><mrow><mi>x</mi></mrow><mrow><mi>y</mi></mrow></mfrac>" in mathml("\\frac{x}{y}", is_block=False)
    assert mathml("\\int", is_block=True).startswith('<div class="formula" tabindex="0"><math ')
    assert "∫" in mathml("\\int", is_block=True)
    assert mathml("\\frac{", is_block=False) == '<code class="formula-source">\\frac{</code>'
    assert mathml("a < b \\text{ & c}", is_block=False).count("&lt;") == 1


def test_nothing_is_lost_of_long_texts():
    long = render_markdown("a " * (MAX_MARKDOWN // 2) + "\n\nthe end <b>")
    assert "the end &lt;b&gt;" in long
    brackets = render_markdown("[" * (MAX_BRACKETS + 1))
    assert brackets.count("[") == MAX_BRACKETS + 1


@pytest.mark.parametrize(
    "part", [">", "[", "*a", "$a ", "$", "`a", "[a](", "|", "<", "![", "\\(", "$$a\n", "&#", "- ", "_a"]
)
def test_texts_that_try_to_take_long_do_not(part):
    """What grows with the square of a text takes minutes here; the limit is far above what a busy machine needs."""
    began = time.process_time()
    render_markdown(part * (8_000 // len(part)))
    assert time.process_time() - began < 100


@pytest.mark.parametrize(
    ("language", "part"), [("python", " \n"), ("javascript", '"\\'), ("csharp", "a\n"), ("easytrieve", "\t")]
)
def test_code_that_tries_to_take_long_does_not(language, part):
    began = time.process_time()
    blocks = [f"```{language}\n{part * (n // len(part))}x\n```\n\n" for n in (19_000, *[3_000] * 40)]
    assert render_markdown("".join(blocks)).count("code-name") == 41
    assert time.process_time() - began < 15


def test_every_language_of_the_list_is_known():
    assert [name for name in sorted(LANGUAGES) if _lexer(name) is None] == []


def test_code_is_coloured_up_to_its_limit():
    block = "```python\nx = 'a'\n```\n\n"
    assert render_markdown(block * 3).count('<span class="s1">') == 3
    long = [f"```{language}\n{sign * MAX_COLOURED} \n```\n\n" for language, sign in (("", "y"), ("python", "z"))]
    html = render_markdown(block.join(["", *long, ""]))
    assert html.count('<span class="s1">') == 3, "what stays plain does not count"
    assert "z" * MAX_COLOURED in html


def test_the_end_of_a_formula_is_not_looked_for_in_all_of_a_text():
    assert "<math" in render_markdown(f"\\(a{' ' * (MAX_FORMULA - 1)}\\)")
    assert "<math" not in render_markdown(f"\\(a{' ' * MAX_FORMULA}\\)")


def test_the_same_text_gives_the_same_html():
    text = "# a\n\n$x$ ```b```\n\n| a |\n|---|\n| b |"
    assert render_markdown(text) == render_markdown(str(text))
    assert not re.search(r"\bid=", render_markdown(text))
