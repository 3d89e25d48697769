"""A hook of the documentation's builder: formulas become MathML, which browsers draw without a script from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", flags=re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"\$\$(.+?)\$\$", flags=re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\w$])")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with every formula outside code converted."""
    parts = CODE.split(markdown)
    parts[::2] = [_convert(part) for part in parts[::2]]
    return "".join(parts)


def _convert(text: str) -> str:
    text = BLOCK.sub(lambda found: f"<div>{convert(found[1].strip(), display='block')}</div>", text)
    return INLINE.sub(lambda found: convert(found[1]), text)
