"""A hook of the documentation's builder: formulas become MathML, which browsers draw without a script from elsewhere.

Markdown takes ``<math>`` for a paragraph of its own, so formulas travel through it as empty tags and are drawn afterwards.
"""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

from latex2mathml.converter import convert

CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", flags=re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"\$\$(.+?)\$\$", flags=re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\w$])")
TAG = re.compile(r'<(div|span) class="formula" data-latex="([^"]*)"></\1>')


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with every formula outside code in a tag."""
    parts = CODE.split(markdown)
    parts[::2] = [_mark(part) for part in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, **_: Any) -> str:
    """The page as HTML with every marked formula drawn."""
    return TAG.sub(_draw, html)


def _mark(text: str) -> str:
    text = BLOCK.sub(lambda found: _tag("div", found[1].strip()), text)
    return INLINE.sub(lambda found: _tag("span", found[1]), text)


def _tag(name: str, formula: str) -> str:
    return f'<{name} class="formula" data-latex="{escape(" ".join(formula.split()))}"></{name}>'


def _draw(found: re.Match[str]) -> str:
    name, formula = found[1], unescape(found[2])
    drawn = convert(formula, display="block" if name == "div" else "inline")
    return f'<{name} class="formula">{drawn}</{name}>'
