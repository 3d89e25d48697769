"""Code with its words in colours: classes only, so that the page's own sheet gives them light and dark colours."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MAX_COLOURED = 3_000
"""Characters of code in one text; what would be more is shown without colours. The rules of most languages take the square of
some texts: 20,000 spaces and line ends of Python took two seconds, in which nobody else was served."""
_NAMES = """
    bash bat c c# c++ console cpp cs csharp css dart diff docker dockerfile elixir go haskell html ini java javascript js json jsx
    julia kotlin latex lua make makefile markdown matlab md perl php powershell py pycon python python3 r rb rs ruby rust scala scss
    sh shell sql swift tex toml ts tsx typescript xml yaml yml
"""
LANGUAGES = frozenset(_NAMES.split())
"""Languages that are coloured. Rules of rare ones take the cube: 2,000 tabs of one took ten seconds."""
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def coloured(code: str, language: str) -> str:
    """The code as HTML inside ``<pre>``; of a language that is not known it is only escaped."""
    name = language.strip().lower()
    lexer = _lexer(name) if name in LANGUAGES else None
    if lexer is None:
        return escape(code)
    return str(highlight(code, lexer, _FORMATTER)).rstrip("\n")
