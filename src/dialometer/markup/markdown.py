"""Markdown of systems to HTML. Nothing in it runs, and nothing is loaded from elsewhere.

Two walls: the parser has HTML switched off and writes only the elements below, and what it wrote is cleaned once more
against a list of elements and attributes (nh3). Links are shown with their address and lead nowhere; images are those of
the study's folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape, unescape
from typing import Any
from urllib.parse import unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from dialometer.markup.code import MAX_COLOURED, coloured
from dialometer.markup.mathematics import use_mathematics

MAX_MARKDOWN = 200_000
"""Characters of one text; what comes after them is shown as it was written."""
MAX_BRACKETS = 5_000
"""A text with more of them is shown as it was written: the time that links take grows with the square of their number."""
MAX_ADDRESS = 60
IMAGE_PREFIX = "image:"
"""How the HTML names an image of the study's folder, until a page says where it is served."""

_SCHEMES = frozenset({"http", "https", "mailto"})
_IMAGE = re.compile(r'(?<=<img class="picture" )src="image:([^"]*)"')
_OTHER_SOURCE = re.compile(r'(?<=<img )([^<>]*?)src="(?!image:)[^"]*"')
_BLOCKS = frozenset({"paragraph_open", "bullet_list_open", "ordered_list_open", "blockquote_open", "heading_open"})


class _Renderer(RendererHTML):
    """The HTML of each element, where it differs from the usual."""

    def formula(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return tokens[idx].content

    formula_block = formula

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
        label = f'<p class="code-name">{escape(language)}</p>' if language else ""
        source = token.content.rstrip("\n")
        n_coloured = env.get("n_coloured", 0) + len(source)
        if language and n_coloured <= MAX_COLOURED:
            env["n_coloured"], code = n_coloured, coloured(source, language)
        else:
            code = escape(source)
        return f'<div class="code-box">{label}<pre dir="ltr" tabindex="0"><code>{code}</code></pre></div>\n'

    code_block = fence

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-box" tabindex="0"><table dir="auto">\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<span class="link">'

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The address follows the words, so that raters see where a system sends people."""
        address = str(tokens[idx].meta.get("address", ""))
        return f'</span> <span class="link-to" dir="ltr">({escape(address)})</span>' if address else "</span>"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        words = escape(token.content, quote=True)
        source = _source(token)
        if source not in env["images"]:
            return f'<span class="no-image">{words}</span>'
        return f'<img class="picture" src="{IMAGE_PREFIX}{escape(source, quote=True)}" alt="{words}">'


class _Parser(MarkdownIt):
    """Knows which addresses are links; all others are shown as they were written. Relative ones may name images."""

    def validateLink(self, url: str) -> bool:  # noqa: N802  # the parser's own name
        try:
            scheme = urlsplit(url.strip()).scheme
        except ValueError:
            return False
        return not scheme or scheme.lower() in _SCHEMES


def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    use_mathematics(parser)
    return parser


_PARSER = _parser()


def _cut(text: str) -> tuple[str, str]:
    """What is read as Markdown, and what is shown as it was written."""
    n_shown = MAX_MARKDOWN if text.count("[") <= MAX_BRACKETS else 0
    return text[:n_shown], text[n_shown:]


def _source(image: Token) -> str:
    return unquote(str(image.attrs.get("src", "")))


def images_in(text: str) -> list[str]:
    """The paths of the images that a text names, as :func:`render_markdown` looks for them."""
    tokens = _PARSER.parse(_cut(text)[0])
    return [_source(child) for token in tokens for child in token.children or () if child.type == "image"]


@lru_cache(maxsize=2_048)
def _rendered(text: str, images: frozenset[str]) -> str:
    shown, rest = _cut(text)
    env: dict[str, Any] = {"images": images}
    tokens = _PARSER.parse(shown, env)
    _arrange(tokens)
    html = _PARSER.renderer.render(tokens, _PARSER.options, env)
    if rest:
        html += f'<pre class="rest">{escape(rest)}</pre>'
    return _clean(html)


def render_markdown(
    text: str, images: frozenset[str] = frozenset(), address: Callable[[str], str] = lambda path: path
) -> str:
    """The text as HTML. ``images`` are the paths that may be shown, ``address`` says where a page finds one of them."""
    html = _rendered(text, images)
    if IMAGE_PREFIX not in html:
        return html
    return _IMAGE.sub(lambda match: f'src="{escape(address(unescape(match[1])), quote=True)}" loading="lazy"', html)


def prepare() -> None:
    """Load what the first text would wait for: tables of signs for formulas, rules for code."""
    _rendered("`a` $\\sum x$\n\n```python\nx\n```", frozenset())


def _arrange(tokens: Sequence[Token]) -> None:
    """Headings below those of the page and without gaps, the direction of each block, and where links lead."""
    levels = sorted({token.tag for token in tokens if token.type == "heading_open"})
    steps = {level: f"h{min(6, 3 + number)}" for number, level in enumerate(levels)}
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.attrSet("class", f"heading-{token.tag[1:]}")
            token.tag = steps[token.tag]
        if token.type in _BLOCKS:
            token.attrSet("dir", "auto")
        if token.type in ("th_open", "td_open"):
            _align(token)
        if token.children:
            _show_addresses(token.children)


def _align(token: Token) -> None:
    """How a column is aligned, by a class: styles in elements are forbidden on our pages."""
    style = str(token.attrs.pop("style", ""))
    if style:
        token.attrSet("class", f"align-{style.rpartition(':')[2]}")


def _show_addresses(children: Sequence[Token]) -> None:
    opened: list[tuple[Token, int]] = []
    for index, child in enumerate(children):
        if child.type == "link_open":
            opened.append((child, index))
        elif child.type == "link_close" and opened:
            opening, start = opened.pop()
            address = str(opening.attrs.get("href", ""))
            words = "".join(inner.content for inner in children[start:index])
            if words.strip() != address:
                child.meta["address"] = address if len(address) <= MAX_ADDRESS else address[: MAX_ADDRESS - 1] + "…"


_MATHML = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "ms", "mfrac", "msqrt", "mroot", "mstyle", "merror"),
    *("mpadded", "mphantom", "mfenced", "menclose", "msub", "msup", "msubsup", "munder", "mover", "munderover"),
    *("mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd", "mlabeledtr"),
}
_HTML = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("table", "thead", "tbody", "tr", "th", "td", "div", "span", "img"),
}
_MATH_ATTRIBUTES = {
    *("display", "mathvariant", "stretchy", "fence", "separator", "lspace", "rspace", "minsize", "maxsize", "form"),
    *("movablelimits", "accent", "accentunder", "linethickness", "columnalign", "rowspacing", "columnspacing"),
    *("columnlines", "rowlines", "notation", "width", "height", "depth", "displaystyle", "scriptlevel", "largeop"),
    *("symmetric", "open", "close"),
}
_CLEANER = nh3.Cleaner(
    tags=_HTML | _MATHML,
    clean_content_tags={"script", "style"},
    attributes={
        **dict.fromkeys(_MATHML, _MATH_ATTRIBUTES),
        **{tag: {"class", "dir"} for tag in _HTML},
        "ol": {"start", "dir"},
        "pre": {"dir", "tabindex", "class"},
        "div": {"class", "tabindex"},
        "img": {"src", "alt", "class"},
    },
    url_schemes={"image"},
    link_rel=None,
    strip_comments=True,
)


def _clean(html: str) -> str:
    return _OTHER_SOURCE.sub("", _CLEANER.clean(html))
