r"""Mathematics in Markdown: ``$…$``, ``$$…$$``, ``\(…\)`` and ``\[…\]`` become MathML, which browsers draw by themselves.

A dollar sign is money more often than mathematics, so the rules of Pandoc decide: no space after the first, none before the
last, and no digit after it; nor does a formula begin with a number and a word.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape, unescape
from xml.etree import ElementTree  # nosec B405  # writes XML, reads none

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

MAX_FORMULA = 2_000
"""Characters; a longer one is shown as it was written."""
MAX_LINES = 40
_OPENINGS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_PRICE = re.compile(r"\d[\d.,]*\s+[^\W\d_]{2,}")
"""What follows the sign of a price: a number and a word."""
_BLOCKS = (("$$", "$$"), ("\\[", "\\]"))


def use_mathematics(parser: MarkdownIt) -> None:
    """Teach a parser formulas in lines and formulas of their own."""
    parser.inline.ruler.before("escape", "formula", _inline_rule)
    parser.block.ruler.before("fence", "formula_block", _block_rule, {"alt": ["paragraph", "reference", "blockquote"]})


@lru_cache(maxsize=4_096)
def mathml(formula: str, *, is_block: bool) -> str:
    """The formula as MathML; one that cannot be read is shown as it was written."""
    source = formula.strip()
    if source and len(source) <= MAX_FORMULA:
        try:
            element = convert_to_element(source, display="block" if is_block else "inline")
            # The converter writes signs as entities and does not escape what stands in text: both are put right here.
            for part in element.iter():
                part.text = unescape(part.text) if part.text else part.text
            written = ElementTree.tostring(element, encoding="unicode")
            return f'<div class="formula" tabindex="0">{written}</div>' if is_block else written
        except Exception:  # nosec B110  # the converter raises whatever its parts do; the source says as much
            pass
    return f'<code class="formula-source">{escape(source)}</code>'


def _inline_rule(state: StateInline, silent: bool) -> bool:
    source, start = state.src, state.pos
    if source[start] not in "$\\":
        return False
    for opening, closing in _OPENINGS:
        if not source.startswith(opening, start):
            continue
        inside = start + len(opening)
        end = _end(source, inside, state.posMax, closing)
        if end < 0 or not source[inside:end].strip():
            continue
        if opening == "$" and not _is_formula(source, inside, end, state.posMax):
            continue
        if not silent:
            state.push("formula", "math", 0).content = mathml(source[inside:end], is_block=False)
        state.pos = end + len(closing)
        return True
    return False


def _end(source: str, start: int, limit: int, closing: str) -> int:
    """Where the formula ends, past escaped signs; -1 where it does not, or not before it is too long."""
    limit = min(limit, start + MAX_FORMULA + len(closing))
    while True:
        end = source.find(closing, start, limit)
        if end < 0 or closing[0] == "\\" or source[end - 1] != "\\":
            return end
        start = end + 1


def _is_formula(source: str, inside: int, end: int, limit: int) -> bool:
    after = source[end + 1] if end + 1 < limit else ""
    if source[inside].isspace() or source[end - 1].isspace() or after.isdigit():
        return False
    return not _PRICE.match(source[inside:end])


def _block_rule(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A formula that begins a line of its own and may go over several."""
    if state.is_code_block(first):
        return False
    text = state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]]
    marks = next(((opening, closing) for opening, closing in _BLOCKS if text.startswith(opening)), None)
    if marks is None:
        return False
    opening, closing = marks
    lines = [text[len(opening) :]]
    line = first
    while not lines[-1].rstrip().endswith(closing):
        line += 1
        if line >= last or state.isEmpty(line) or len(lines) > MAX_LINES:
            return False
        lines.append(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]])
    formula = "\n".join(lines).rstrip().removesuffix(closing)
    if not formula.strip() or closing in formula:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.block, token.map, token.content = True, [first, line + 1], mathml(formula, is_block=True)
        state.line = line + 1
    return True
