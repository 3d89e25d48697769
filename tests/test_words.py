"""One word for one thing: words that were given up do not come back in what users read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COVERED = ("README.md", "docs", "src/dialometer")
NOT_COVERED = ("docs/decisions", "docs/reference/statistics.md", "docs/reference/python.md")
RETIRED = {
    r"told (?:apart )?from chance|demonstrabl[ey]": "(not) significant",
    r"p values?": "p-value",
    r"mend|mends|mended": "fix",
    r"whoever": "anyone who, or say who it is",
    r"set aside|kept out of the analysis|(?:are|is|was|were) left out": "excluded",
    r"without further ado": "by default",
    r"lets? expect": "predicts",
    r"an own": "a personal, a separate, your own",
    r"in another situation": "does not match the requirements",
    r"around it stand": "it also includes",
    r"(?<!help )(?<!hotel )desk": "dashboard",
    r"(?:rooms of|room of) the house": "packages",
    r"stands?(?! (?:for|out)\b)(?!-in)": "is, are",
    r"goes on(?! to\b)|may go on(?! talking)|go on (?:where|with|there|here|as|or finish|beyond)|by going on": "continue",
    r"went on with|save and go on": "continue",
    r"cannot be told|(?:is|are) told (?:in|by|elsewhere|from|apart)": "recognise, distinguish, say",
    r"from (?:a |this |which )?confidence(?: of)?(?: [^ ]+)? on": "at a confidence of ... or more",
    r"(?:not|n't|never) believed?|to believe": "trust",
    r"(?:system|agent|model|bot)'s repl(?:y|ies)|(?:suggested|ready-made|last|best|worst|possible) repl(?:y|ies)": "response",
    r"--cell anchor|per cell(?! of)|(?:draws?|closed) a? ?cell|cells stay": "condition",
    r"(?:no|a rater's|a person's|their) places?(?= (?:left|is free|are open|open))": "slot",
    r"wished": "wanted, requested",
    r"people corrected": "human raters corrected by judges",
    r"declared (?:tests?|comparisons?|hypothes[ei]s|analysis|analyses|questions?|differences?)": "confirmatory",
    r"(?:chat )?partners?": "system",
    r"(?:rater's|person's|nobody's|free|taken|number of) places?": "slot",
    r"people (?:rated?|judged?|took part|take part|have taken part|have come)": "raters",
    r"(?:opens? (?:it|the study)|serve it) to people": "raters",
    r"(?:judgments?|ratings|mean) of (?:the )?(?:people|a person)": "human raters",
    r"(?:models?|models'|programs|raters,) (?:and|beside|with|not) people": "human raters",
    r"one person's (?:rating|judgment|answer)s?|the same (?:person|people) (?:gives?|rated|judged|preferred)": "rater",
    r"(?:same|other|different|single|most) people": "raters",
    r"no sign that": "no significant difference",
    r"(?:if|may be) left out": "by default, optional",
    r"places? on the screen": "position on the screen",
    r"buys something": "is a trade-off",
    r"commonest": "most frequent",
    r"tells (?:which|whether|how|what|you|more|less|little)": "says, shows",
    r"speaks? of": "is about",
}
ALLOWED = {
    "docs/how-to/add-a-reader.md": ("desk",),  # the help desk of the example
    "docs/reference/dialogues.md": ("desk", "is left out", "are left out"),  # a hotel's system; the option leave_out
    "docs/reference/rated-dialogues.md": ("desk",),
    "src/dialometer/simulate/conversation_texts.yaml": (
        "desk",
        "goes on",
        "partner",
        "chat partners",
    ),  # one to work at; rice that cooks
    "src/dialometer/cli/retrieval/words.py": ("goes on",),  # how a question continues, a word after another
    "src/dialometer/flow/locales/de.json": ("stand", "partner"),  # German; the name of a text
    # What participants read: "system" would tell them that nobody human answers.
    **{
        f"src/dialometer/design/templates/{name}": (
            "partner",
            "partners",
            "chat partner",
            "chat partners",
            "most people",
            "people rate",
            "goes on",
        )
        for name in (
            *(f"acute/{file}" for file in ("consent.md", "instructions.md", "study.yaml")),
            *(f"chat/{file}" for file in ("consent.md", "debriefing.md", "instructions.md", "study.yaml")),
        )
    },
    **{f"src/dialometer/flow/locales/{name}.json": ("partner",) for name in ("ar", "en", "es")},
    "src/dialometer/design/templates/anchoring/consent.md": ("people judge",),
    "src/dialometer/design/templates/anchoring/debriefing.md": ("people rate",),
    "src/dialometer/design/templates/compare/debriefing.md": ("people rate",),
    "src/dialometer/design/templates/mqm/debriefing.md": ("different people",),
    "src/dialometer/design/library.yaml": ("most people",),  # as published
    "src/dialometer/web/rater/contents.py": ("partner",),  # the name of such a text
    "src/dialometer/web/templates/chat.html": ("partner",),
    "docs/reference/glossary.md": ("rater's place", "number of places"),  # synonyms
    # The dashboard's earlier address and files, which still work.
    "src/dialometer/web/dashboard/running_studies.py": ("desk",),
    "src/dialometer/web/run.py": ("desk",),
    # Labels of keys and descriptions of templates, as they are looked up; "Stand" is a German word.
    "src/dialometer/web/locales/de.json": ("people rate", "chat partners", "stand"),
    "src/dialometer/web/locales/es.json": ("people rate", "chat partners"),
    "src/dialometer/web/locales/ar.json": ("people rate", "chat partners"),
}
"""Texts in which a word means something else."""


def files() -> Iterator[Path]:
    for name in COVERED:
        path = ROOT / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in found:
            is_out = any(str(file.relative_to(ROOT)).startswith(out) for out in NOT_COVERED)
            if file.suffix in (".md", ".py", ".yaml", ".html", ".json") and not is_out:
                yield file


def texts_of(file: Path) -> list[tuple[int, str]]:
    """What users read: all of a page or template; of code the strings, and the docstrings of commands, which are their help."""
    content = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return list(enumerate(content.splitlines(), start=1))
    tree = ast.parse(content)
    lines = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {id(value) for value in lines} if "cli" not in file.parts else set()
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return [(node.lineno, node.value) for node in strings if isinstance(node.value, str)]


@pytest.mark.parametrize("pattern", RETIRED)
def test_a_retired_word_does_not_come_back(pattern, pages):
    expression = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    wrong = [
        f"{name}:{line}: '{found[0]}': write '{RETIRED[pattern]}'"
        for name, rows in pages.items()
        for line, text in rows
        if (found := expression.search(text)) and found[0].lower() not in ALLOWED.get(name, ())
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def pages():
    return {str(file.relative_to(ROOT)): texts_of(file) for file in files()}
