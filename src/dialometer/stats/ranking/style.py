"""How responses are written: length, headings, lists, bold type and code, counted in their Markdown.

People prefer long and formatted responses to a degree that has little to do with what they say. Counted for both sides of a
vote, style enters the paired model as covariates (:mod:`dialometer.stats.ranking.covariates`), so that systems can be compared
as if they wrote alike. The difference of two sides is taken relative to their sum, ``(a - b) / (a + b)``, which is between -1
and 1 and the same for short and long responses; this is what the style control of Chatbot Arena does (Li, Angelopoulos and
Chiang 2024, *Does style matter?*).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from dialometer.stats.observations import Floats

STYLE = ("words", "headings", "lists", "bold", "code")
"""The features, in the order of :func:`style_counts`."""
STYLE_LABELS = {
    "words": "Length (words)",
    "headings": "Headings",
    "lists": "List items",
    "bold": "Bold passages",
    "code": "Code blocks and code in lines",
}
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}[ \t]+\S", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)(?:(?!\1).)+?(?<=\S)\1")


def style_counts(texts: Iterable[str]) -> tuple[int, ...]:
    """Words, headings, list items, bold passages and pieces of code of some texts together.

    What looks like formatting inside code is code.
    """
    total = [0] * len(STYLE)
    for text in texts:
        prose, n_blocks = _FENCE.subn("\n", text)
        prose, n_inline = _CODE.subn(" ", prose)
        counts = (
            len(text.split()),
            len(_HEADING.findall(prose)),
            len(_LIST.findall(prose)),
            len(_BOLD.findall(prose)),
            n_blocks + n_inline,
        )
        total = [sum(pair) for pair in zip(total, counts, strict=True)]
    return tuple(total)


def relative_differences(first: Floats, second: Floats) -> Floats:
    """``(a - b) / (a + b)`` for counts of both sides (votes by features); 0 where neither side has any."""
    total = first + second
    return np.asarray(np.divide(first - second, total, out=np.zeros_like(total), where=total > 0))
