"""A study's texts in Markdown as HTML: consent, instructions, debriefing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

# HTML in texts is shown as text. Images would come from another host, and pages load nothing from elsewhere.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


@dataclass(frozen=True, slots=True)
class Prose:
    """A text's first heading, which becomes the page's own, and the rest."""

    heading: str
    body: Markup


@lru_cache(maxsize=256)
def render_prose(text: str) -> Prose:
    """The text with one main heading at most: it is taken out when the text begins with it, later ones step down."""
    tokens = _MARKDOWN.parse(text)
    heading = ""
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        heading = "".join(child.content for child in tokens[1].children or ())
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close") and token.tag == "h1":
            token.tag = "h2"
        for child in token.children or ():
            _open_elsewhere(child)
    return Prose(heading, Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})))  # nosec B704  # HTML in Markdown is off


def _open_elsewhere(token: Token) -> None:
    """Links open beside the study, so that following one does not leave the page that is being answered."""
    if token.type == "link_open":
        token.attrSet("target", "_blank")
        token.attrSet("rel", "noopener noreferrer")
