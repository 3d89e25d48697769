"""Writes the pages of the reference that follow from the code: ``python scripts/write_reference.py`` (``--check`` only compares).

The command line comes from the commands themselves, the study file from its schema, the Python names and the statistics from
their docstrings, so none of them can say what the code does not.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import typer

import dialometer
from dialometer.cli import PANELS, build_app
from dialometer.design.schema import study_schema

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by scripts/write_reference.py; change the code, then run it again. -->\n"


def command_line() -> str:
    """Every verb with its arguments, options and examples."""
    lines = [
        NOTE,
        "# Command line",
        "",
        "Results go to standard output, everything else to standard error; colours are not used when the output is not a",
        "terminal or `NO_COLOR` is set. Commands that print results take `--json`. `dialometer --install-completion` sets up",
        "completion for your shell.",
        "",
        "| Exit code | Meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | something is wrong with the input, or a check failed; the message says what, where and how to fix it |",
        "| 2 | the command line itself could not be read: an unknown option, a missing argument |",
        "| 130 | interrupted with Ctrl+C |",
        "",
    ]
    root = typer.main.get_command(build_app())
    verbs = getattr(root, "commands", {})
    panels = _panels(verbs)
    lines += ["| Group | Commands |", "|---|---|"]
    for panel, names in panels.items():
        paths = [path for name in names for path, _ in _commands(verbs[name], ("dialometer", name))]
        links = [f"[{' '.join(path[1:])}](#{'-'.join(path)})" for path in paths]
        lines.append(f"| [{panel}](#{panel.lower().replace(' ', '-')}) | {', '.join(links)} |")
    lines.append("")
    for panel, names in panels.items():
        lines += [f"## {panel}", ""]
        for name in names:
            for path, command in _commands(verbs[name], ("dialometer", name)):
                lines += _describe_command(path, command)
    return "\n".join(lines) + "\n"


def _panels(verbs: Iterable[str]) -> dict[str, list[str]]:
    """Verbs under the headings of the help; one that has none is listed last."""
    known = {name for names in PANELS.values() for name in names}
    listed = {panel: [name for name in names if name in verbs] for panel, names in PANELS.items()}
    others = [name for name in verbs if name not in known]
    return {**listed, **({"Other": others} if others else {})}


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name in sorted(children):
        yield from _commands(children[name], (*path, name))


def _describe_command(path: tuple[str, ...], command: click.Command) -> list[str]:
    parameters = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    usage = " ".join([*path, *(_place(one) for one in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"### {' '.join(path)}", "", _plain(command.help or ""), "", "```text", usage, "```", ""]
    if parameters:
        lines += ["| Argument or option | Default | Meaning |", "|---|---|---|"]
        lines += [_row(one) for one in (*arguments, *options)]
        lines.append("")
    if command.epilog:
        lines += [_plain(command.epilog), ""]
    return lines


def _place(argument: click.Parameter) -> str:
    name = (argument.metavar or argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _row(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    is_option = names[0].startswith("-")
    shown = (
        ", ".join(f"`{name}`" for name in names) if is_option else f"`{_cell(parameter.metavar or names[0].upper())}`"
    )
    default = parameter.default
    is_told = default not in (None, (), [], "", False) and not callable(default) and not parameter.required
    if is_told and not isinstance(default, bool | int | float | str):
        default = ", ".join(map(str, default)) if isinstance(default, list | tuple) else default
    meaning = _plain(getattr(parameter, "help", "") or "").replace("\n", " ")
    return f"| {shown} | {f'`{default}`' if is_told else ''} | {_cell(meaning)} |"


def study_file() -> str:
    """Every field of study.yaml, part by part."""
    schema = study_schema()
    lines = [
        NOTE,
        "# Study file",
        "",
        "A study is a folder with `study.yaml`, its items (`items.jsonl`) and its texts (Markdown). `dialometer new` writes a",
        "complete one, `dialometer check` names every problem with its line, and `dialometer schema` prints the schema behind",
        "this page for editors that complete as you type.",
        "",
    ]
    lines += _describe_object("study.yaml", schema)
    for name, part in sorted(schema.get("$defs", {}).items()):
        if part.get("properties"):
            lines += _describe_object(name, part)
        elif part.get("enum"):
            lines += [f"## {name}", "", "One of " + ", ".join(f"`{value}`" for value in part["enum"]) + ".", ""]
    return "\n".join(lines) + "\n"


def _describe_object(name: str, schema: dict[str, Any]) -> list[str]:
    lines = [f"## {name}", "", _plain(schema.get("description", "")), ""]
    required = schema.get("required", [])
    lines += ["| Field | Kind | Default | Meaning |", "|---|---|---|---|"]
    for field, about in schema["properties"].items():
        default = "*required*" if field in required else _default(about)
        lines.append(f"| `{field}` | {_kind(about)} | {default} | {_cell(_plain(about.get('description', '')))} |")
    return [*lines, ""]


def _default(about: dict[str, Any]) -> str:
    default = about.get("default")
    return "" if default in (None, "", [], {}) or isinstance(default, dict) else f"`{default}`".replace("|", "\\|")


def _kind(about: dict[str, Any]) -> str:
    if "$ref" in about:
        name = about["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about or "oneOf" in about:
        kinds = dict.fromkeys(_kind(one) for one in about.get("anyOf") or about["oneOf"])
        return " or ".join(kind for kind in kinds if kind != "nothing") or "nothing"
    if "const" in about:
        return f"`{about['const']}`"
    if "enum" in about:
        return " or ".join(f"`{value}`" for value in about["enum"])
    if about.get("type") == "array":
        return f"list of {_kind(about['items'])}" if about.get("items") else "list"
    if about.get("type") == "object":
        extra = about.get("additionalProperties")
        return f"mapping to {_kind(extra)}" if isinstance(extra, dict) and extra else "mapping"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "nothing",
    }
    return names.get(about.get("type", ""), "anything") + _bounds(about)


def _bounds(about: dict[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    told = [f"{sign} {about[key]:g}" for key, sign in signs.items() if key in about]
    return f" ({', '.join(told)})" if told else ""


STEPS = {
    "A study and its judgments": (
        "new_study", "load_study", "simulate_raters", "read_judgments", "read_dialogues", "power",
    ),
    "Statistics of judgments": (
        "icc", "compare", "equivalence", "leaderboard", "leaderboard_with_covariates", "ordinal_model", "generalizability",
        "rater_severity", "fleiss_kappa", "gwet", "dawid_skene", "mace", "bootstrap", "statistics", "compute",
    ),
    "Statistics of plain columns": (
        "mann_whitney", "wilcoxon_signed_rank", "friedman", "permutation_two_groups", "hedges_g", "proportion_difference",
        "mcnemar", "pearson", "spearman", "kendall", "judged_mean", "judged_mean_bootstrap",
    ),
    "Reports": ("analyse_folder", "analyse", "render"),
    "Tables": ("to_pandas", "to_frame"),
    "Retrieved answers": ("evaluate_retrievers",),
    "A learned evaluator": (
        "read_ratings", "simulate_ratings", "train_evaluator", "load_evaluator", "score_dialogues", "report_evaluator",
    ),
    "What they give and take": ("Report", "Estimate", "Study", "Store", "long_table", "DialometerError"),
}  # fmt: skip


def python_names() -> str:
    """The public names of the package, in the order of an analysis."""
    lines = [
        NOTE,
        "# Python",
        "",
        "`import dialometer as dm` gives the names below; each loads what it needs when it is first used. Everything else is",
        "importable too, and may change between versions.",
        "",
        "```python",
        "import dialometer as dm",
        "",
        'dm.new_study("strategies", "my-study")',
        'judgments = dm.simulate_raters("my-study", n_raters=12)',
        'print(dm.compare(judgments, "experimental", "control", "utility"))',
        'print(dm.equivalence(judgments, "experimental", "control", 0.1, "utility").details["is_equivalent"])',
        'print(dm.fleiss_kappa(judgments, "utility"))',
        "frame = judgments.to_pandas()  # every function takes pandas tables, too",
        'report = dm.analyse_folder("my-study", n_resamples=200)',
        "print(report.summary.answer)",
        'dm.render(report, "my-report")  # page, tables, figures',
        "```",
        "",
        "In a notebook, a report, a table, a figure or an estimate as the last line of a cell shows itself, and an error is one",
        "sentence. [A whole analysis in a notebook](../notebooks/whole-analysis.ipynb) goes through all of it.",
        "",
    ]
    left = sorted(set(dialometer.__all__) - {name for names in STEPS.values() for name in names} - {"__version__"})
    if left:
        sys.exit(f"public names without a place in STEPS: {', '.join(left)}")
    for step, names in STEPS.items():
        lines += [f"## {step}", ""]
        for name in names:
            thing = getattr(dialometer, name)
            lines += [f"### {name}", "", *_signature(name, thing), _docstring(thing), ""]
            if inspect.isclass(thing):
                lines += _methods(thing)
    return "\n".join(lines) + "\n"


def _methods(thing: type) -> list[str]:
    lines = []
    for name, member in inspect.getmembers(thing):
        if name.startswith("_") or not inspect.getdoc(member) or not name.islower():
            continue
        is_own = getattr(member, "__module__", "dialometer").startswith("dialometer")
        if not is_own or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        first = inspect.getdoc(member).split("\n\n")[0].replace("\n", " ")  # type: ignore[union-attr]
        lines.append(f"- `{name}`: {_plain(first)}")
    return [*lines, ""] if lines else []


def _signature(name: str, thing: Any) -> list[str]:
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return []
    if len(signature) > 600:
        return []
    # Annotations are texts here, defaults are not: only the former lose their quotes.
    bare = re.sub(r"""(: |-> )(?:'([^']*)'|"([^"]*)")""", r"\1\2\3", signature)
    return ["```text", f"{name}{bare}", "```", ""]


def statistics() -> str:
    """Every statistic with what it is, where it comes from and what it was checked against."""
    lines = [
        NOTE,
        "# Statistics",
        "",
        "What each statistic is, its source, and the independent implementation or published value it is checked against in the",
        "tests. The formulas of the most used ones stand in [formulas](formulas.md). All of them give an `Estimate`: a value, its",
        "interval, the method in words, the number of judgments, raters and items behind it, and notes.",
        "",
    ]
    package = importlib.import_module("dialometer.stats")
    for group in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not group.ispkg:
            continue
        folder = importlib.import_module(group.name)
        lines += [f"## {group.name.rpartition('.')[2]}", "", _docstring(folder), ""]
        for name in sorted(module.name for module in pkgutil.iter_modules(folder.__path__)):
            module = importlib.import_module(f"{group.name}.{name}")
            functions = [
                (title, function)
                for title, function in inspect.getmembers(module, inspect.isfunction)
                if function.__module__ == module.__name__ and not title.startswith("_") and inspect.getdoc(function)
            ]
            lines += [f"### {name}", "", _docstring(module), ""]
            if functions:
                short = [title for title, _ in functions if title in dialometer.__all__]
                own = f" Also as {' and '.join(f'`dm.{title}`' for title in short)}." if short else ""
                lines += [f"Import: `from {module.__name__} import {functions[0][0]}`.{own}", ""]
            for title, function in functions:
                lines += [f"- **`{title}`**: {_inline(inspect.getdoc(function) or '')}", ""]
            lines.append("")
    return "\n".join(lines) + "\n"


def _docstring(thing: Any) -> str:
    text = _plain(inspect.getdoc(thing) or "")
    # A table drawn with signs keeps its form.
    return re.sub(r"((?:^[=]+ .*\n|^[=]+\n)(?:.*\n)*?^=[= ]+$)", r"```text\n\1\n```", text, flags=re.MULTILINE)


def _inline(text: str) -> str:
    # Four spaces: Markdown ends a list at a paragraph that stands further out.
    return "\n".join(f"    {line}" if line else line for line in _plain(text).split("\n")).lstrip()


def _plain(text: str) -> str:
    """Docstrings in the words of Markdown: double backquotes and roles become single ones."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.cleandoc(text))
    return text.replace("``", "`").replace("\b", "").strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES = {
    "command-line.md": command_line,
    "study-file.md": study_file,
    "python.md": python_names,
    "statistics.md": statistics,
}


def main() -> None:
    """Writes the pages, or with ``--check`` says which are out of date."""
    is_checking = "--check" in sys.argv
    outdated = []
    for name, write in PAGES.items():
        text = re.sub(r"\n{3,}", "\n\n", write())
        path = FOLDER / name
        if is_checking:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                outdated.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if outdated:
        sys.exit(f"out of date: {', '.join(outdated)}; run: python scripts/write_reference.py")


if __name__ == "__main__":
    main()
