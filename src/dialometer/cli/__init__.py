"""The command line: one file per verb, one folder per group of verbs. Only here are concrete parts wired together."""

from __future__ import annotations

import errno
import re
import sys
from functools import cache
from typing import Any, NoReturn

import typer

from dialometer._version import __version__
from dialometer.cli.interruption import INTERRUPTED, InterruptibleCommands
from dialometer.cli.verbs import add_verbs
from dialometer.errors import DialometerError

EXIT_PROBLEM = 1
"""The exit status for a mistake in the input or a refused request; the message says which."""


PANELS: dict[str, tuple[str, ...]] = {
    "Look around": ("demo", "look"),
    "Plan a study": ("new", "respond", "translate", "check", "power", "preregister", "freeze", "schema"),
    "Collect": (
        "serve",
        "recruit",
        "simulate",
        "judge",
        "status",
        "control",
        "privacy",
        "backup",
        "restore",
        "verify",
    ),
    "Results": ("report", "compare", "export", "import", "archive", "reproduce"),
    "Models and systems": ("learn", "retrieval", "bots", "local-model"),
}
"""Under which heading help and reference show a verb, in the order of a study."""

_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
_WORDS = {"Path": "PATH", "'str'": "TEXT", "[str]": "TEXT", "int": "NUMBER", "float": "NUMBER"}


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"dialometer {__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The application with every verb below this folder. Verb files import what they need only when they run."""
    app = typer.Typer(
        name="dialometer",
        cls=InterruptibleCommands,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings=_CONTEXT,
    )

    @app.callback()
    def _main(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    ) -> None:
        """Which conversational agent is better, by how much, and can the answer be trusted?

        Start with: **dialometer new compare my-study**, then **dialometer check my-study**.
        """

    add_verbs(app, __name__)
    _arrange(app)
    return app


def _arrange(app: typer.Typer) -> None:
    """Verbs under their headings; what other packages add comes last, under a heading of its own."""
    order = [name for names in PANELS.values() for name in names]
    heading = {name: panel for panel, names in PANELS.items() for name in names}
    for entries in (app.registered_commands, app.registered_groups):
        for entry in entries:
            entry.rich_help_panel = heading.get(str(entry.name), "Other")
        entries.sort(key=lambda entry: order.index(str(entry.name)) if entry.name in order else len(order))


@cache
def command_line() -> Any:
    """Every verb in one command, its values named; building it takes a tenth of a second, so a process does it once."""
    command = typer.main.get_command(build_app())
    name_values(command)
    return command


def main() -> None:
    """Runs the command line. Errors are printed as one message without a traceback."""
    try:
        command_line()()
    except DialometerError as error:
        _end_with(str(error))
    except ModuleNotFoundError as error:
        extra = _extra_of(error.name or "")
        if not extra:
            raise
        _end_with(f"this needs {error.name}, which is not installed — pip install 'dialometer[{extra}]'")
    except BrokenPipeError:
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        if not error.filename and error.errno not in _NO_FAULT_OF_OURS:
            raise
        _end_with(_explain(error))


_NO_FAULT_OF_OURS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors while writing, which the system reports without the name of the file."""


def _end_with(message: str) -> NoReturn:
    from rich.markup import escape

    from dialometer.cli.console import errors

    errors.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    sys.exit(EXIT_PROBLEM)


def _explain(error: OSError) -> str:
    """An error about a file, worded like all other messages."""
    remedies = {
        FileExistsError: "something is there already; choose another place",
        FileNotFoundError: "check the path; folders above it must exist",
        IsADirectoryError: "this is a folder; name a file",
        NotADirectoryError: "a part of this path is a file; choose another place",
        PermissionError: "check who may read and write there, or choose another place",
    }
    if error.errno == errno.EROFS:
        remedies[OSError] = "this place can only be read; choose another"
    remedy = remedies.get(type(error), "check whether the disk is full and whether the path is right")
    # Of a copy that fails, the second name is the one that was written.
    place = error.filename2 or error.filename
    return f"{place}: {error.strerror} — {remedy}" if place else f"{error.strerror} — {remedy}"


def name_values(command: Any) -> None:
    """Values in the help: nothing for a switch, NUMBER rather than the name of a type, names of arguments in capitals."""
    for child in getattr(command, "commands", {}).values():
        name_values(child)
    # The library creates --help on demand and keeps it.
    help_option = command.get_help_option(typer.Context(command, **_CONTEXT))
    for parameter in (*command.params, *([help_option] if help_option else ())):
        if parameter.metavar is not None:
            continue
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.name.upper()
        else:
            kind = str(getattr(getattr(parameter, "type_descriptor", None), "annotation", ""))
            word = next((word for part, word in _WORDS.items() if part in kind), None)
            parameter.metavar = "" if parameter.is_flag else word


def _extra_of(module: str) -> str:
    """The extra of this package that installs a module; empty where there is none."""
    from importlib.metadata import requires

    names = {"faiss": "faiss-cpu", "PIL": "pillow"}
    package = names.get(module.partition(".")[0], module.partition(".")[0]).replace("_", "-").lower()
    for extra in ("learn", "postgres", "ray", "local-model"):
        for line in requires("dialometer") or ():
            name, _, marker = line.partition(";")
            if f'"{extra}"' in marker.replace("'", '"') and re.split(r"[^\w.-]", name.strip())[0].lower() == package:
                return extra
    return ""
