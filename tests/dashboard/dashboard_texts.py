"""Every English text that pages of the dashboard show, found in templates, code, the study's schema and lists of words."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dialometer
from dialometer.design.load import load_study
from dialometer.design.pairs import RULES
from dialometer.design.templates import all_about_templates, template_folder
from dialometer.errors import DialometerError
from dialometer.exchange.exports.inventory import EXPLAINED, NOT_STORED
from dialometer.exchange.own_systems.item_columns import _COMMON, _COUNTS, _PLACES
from dialometer.flow.review import _NOT_FINISHED
from dialometer.model.item import KIND_WORDS
from dialometer.quality import RULES as QUALITY_RULES
from dialometer.recruit.platforms import PLATFORMS
from dialometer.storage.access.accounts import ROLES
from dialometer.web.dashboard.app import _STATUSES
from dialometer.web.dashboard.dashboard import GROUP_WORDS
from dialometer.web.dashboard.numbers import over_time
from dialometer.web.dashboard.pages.after import pay
from dialometer.web.dashboard.pages.control import _STATES
from dialometer.web.dashboard.pages.form import STEPS, form_schema
from dialometer.web.dashboard.pages.quality import ACTIONS, WHEN
from dialometer.web.dashboard.pages.raters import STATES
from dialometer.web.dashboard.pages.studies import SCREEN_WORDS
from dialometer.web.dashboard.pages.together import comments, review
from dialometer.web.dashboard.study_form import label_of
from dialometer.web.dashboard.translating import messages

PACKAGE = Path(dialometer.__file__).parent
TEMPLATES = PACKAGE / "web" / "templates" / "dashboard"
DASHBOARD = PACKAGE / "web" / "dashboard"
WITH_ERRORS = ("web/dashboard", "web/server/security.py", "storage/access", "design/versions.py", "design/edit_yaml.py")
WITH_ERRORS += ("folder_files.py",)
"""Where the errors are raised that pages show; what checks of a study file say may be English, which the page says."""
WORDS = """
    Jan, Feb, Mar, Apr, May, Jun, Jul, Aug, Sep, Oct, Nov, Dec, open, closed, draft, running, paused, not started, broken, error,
    warning, confirmatory, exploratory, condition, quota, state, passed, failed, excluded, taken back, person, simulated, model,
    import, flag, exclude, screen out, user, agent, to, of, waiting, under way, settled, practice, counts, does not count, no
    judgments, screening, consent, instructions, item, chat, attention, comprehension, more, debriefing, entries, entry, raters,
    rater, items, texts, text, flags, disagreements, disagreement, judgments, judgment, Condition, Language, Item, supported, not
    supported, undecided, Table of items, Table of raters, Table of flags, Table of disagreements, Pay list, Audit log, of an
    earlier version, command line, all raters
"""
"""States, kinds and headings that a page gets as a value."""
ENDED = [
    "was screened out",
    "finished, but is excluded from the analysis; a rater who worked is paid unless there is a reason",
]
"""Why somebody is paid or not, in the pay list."""
PLACES = [*_COMMON, *_COUNTS, *(place for places in _PLACES.values() for place in places), ("", "Not used")]


@cache
def _trees(folder: Path) -> tuple[ast.Module, ...]:
    paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in paths)


def _texts(node: ast.AST | None) -> Iterator[str]:
    """What a literal says, with ``{1}``, ``{2}`` … for what an f-string fills in."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            parts, n = [], 0
            for value in values:
                n += not isinstance(value, ast.Constant)
                parts.append(str(value.value) if isinstance(value, ast.Constant) else f"{{{n}}}")
            yield "".join(parts)
        case ast.IfExp(body=body, orelse=other):
            yield from _texts(body)
            yield from _texts(other)


def _calls(folder: Path) -> Iterator[tuple[str, ast.Call]]:
    for tree in _trees(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                match node.func:
                    case ast.Name(id=name) | ast.Attribute(attr=name):
                        yield name, node


@cache
def of_templates() -> set[str]:
    """Texts between tags, and attributes that are read out."""
    return {text for path in TEMPLATES.glob("*.html") for text in messages(path.read_text(encoding="utf-8"))}


@cache
def of_pages() -> set[str]:
    """What code of the dashboard says: sentences, headings of tables, entries of the audit log."""
    found: set[str] = set()
    for name, call in _calls(DASHBOARD):
        if name == "translated":
            found |= set(_texts(call.args[0]))
        elif name in ("GridColumn", "Offer"):
            found |= set(_texts(call.args[1]))
        elif name in ("note", "add") and len(call.args) > 1 and not isinstance(call.func, ast.Name):
            found |= {text for text in _texts(call.args[1]) if " " in text or text in ("invited", "commented")}
    for name, call in _calls(PACKAGE / "cli"):
        if name == "log_action":
            found |= set(_texts(call.args[2]))
    for tree in _trees(DASHBOARD):  # messages that wait in a tuple with what fills them in
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Tuple)
                and "message" in ast.dump(node.targets[0])
            ):
                found |= set(_texts(node.value.elts[0]))
    return _with_words(found)


@cache
def of_lists() -> set[str]:
    """Words that the code keeps in lists."""
    found = (
        set(" ".join(WORDS.split()).split(", "))
        | set(GROUP_WORDS.values())
        | set(STATES.values())
        | set(SCREEN_WORDS.values())
        | set(RULES.values())
    )
    found |= (
        set(ACTIONS.values()) | set(WHEN.values()) | set(pay.WORDS.values()) | set(review.WORDS.values()) | set(ROLES)
    )
    found |= (
        set(comments.PARTS.values()) | {title for _, _, title in _STATUSES} | {said for _, said in _STATES.values()}
    )
    found |= {text for title, about, *_ in STEPS.values() for text in (title, about)} | set(over_time(()))
    found |= {text for one in EXPLAINED if one.table in review.ABOUT_PEOPLE for text in (one.what, one.why)} | set(
        NOT_STORED
    )
    found |= set(_NOT_FINISHED.values()) | set(ENDED) | {words for _, words in PLACES}
    platforms = {PLATFORMS.get(name).label for name in PLATFORMS.names()}
    found |= {label for label in platforms if label[0].islower()}  # the others are names
    found |= {name.replace("_", " ") for name in QUALITY_RULES.names()} | set(KIND_WORDS.values())
    found |= {" ".join(load_study(template_folder(one.name)).spec.description.split()) for one in all_about_templates()}
    return found | {one.question for one in all_about_templates() if one.question}


@cache
def of_schema() -> set[str]:
    """Labels and help of the form."""
    found: set[str] = set()
    waiting = [{key: form_schema()[key] for key in ("properties", "$defs")}]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("properties"), dict):
                found |= {label_of(key) for key in node["properties"]}
            if isinstance(node.get("description"), str):
                found.add(node["description"])
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found


@cache
def of_errors() -> set[str]:
    """What errors say, and how to put them right."""
    kinds, waiting = {"Problem"}, [DialometerError]
    while waiting:
        kind = waiting.pop()
        kinds.add(kind.__name__)
        waiting += kind.__subclasses__()
    found: set[str] = set()
    for place in WITH_ERRORS:
        for name, call in _calls(PACKAGE / place):
            if name in kinds:
                parts = [
                    *call.args[: 2 if name == "Problem" else 1],
                    *(one.value for one in call.keywords if one.arg in ("message", "remedy")),
                ]
                found |= {text for part in parts for text in _texts(part)}
    return _with_words(found)


def _with_words(texts: set[str]) -> set[str]:
    return {text for text in texts if re.search(r"[^\W\d_]", re.sub(r"\{\d+\}", "", text))}
