"""The command line: one file per verb, found by this folder. Only here are concrete parts wired together."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys

import typer

from dialometer._version import __version__
from dialometer.errors import DialometerError

EXIT_PROBLEM = 1
"""Something is wrong with the input, or the study refused; the message says what."""


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"dialometer {__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The application with every verb of this folder. Verb files import what they need only when they run."""
    app = typer.Typer(
        name="dialometer",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def _main(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    ) -> None:
        """Which conversational agent is better, by how much, and can the answer be trusted?

        Start with: **dialometer new anchoring my-study**, then **dialometer check my-study**.
        """

    # A file named after another verb, as learn_train after learn, is added by that verb.
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    for name in names:
        parent, _, rest = name.partition("_")
        if not (rest and parent in names):
            importlib.import_module(f"{__name__}.{name}").add_to(app)
    return app


def main() -> None:
    """Runs the command line; what is wrong is said in one message, without a traceback."""
    try:
        build_app()()
    except DialometerError as error:
        from dialometer.cli._console import errors

        errors.print(f"[bold red]error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(EXIT_PROBLEM)
    except ModuleNotFoundError as error:
        extra = _extra_of(error.name or "")
        if not extra:
            raise
        from dialometer.cli._console import errors

        told = f"this needs {error.name}, which is not installed — pip install 'dialometer[{extra}]'"
        errors.print(f"[bold red]error:[/] {_escape(told)}", soft_wrap=True)
        sys.exit(EXIT_PROBLEM)
    except BrokenPipeError:
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


def _extra_of(module: str) -> str:
    """The extra of this package that brings a module along; empty for modules that no extra names."""
    from importlib.metadata import requires

    names = {"sklearn": "scikit-learn", "faiss": "faiss-cpu", "PIL": "pillow"}
    package = names.get(module.partition(".")[0], module.partition(".")[0]).replace("_", "-").lower()
    for extra in ("learn", "postgres", "ray"):
        for line in requires("dialometer") or ():
            name, _, marker = line.partition(";")
            if f'"{extra}"' in marker.replace("'", '"') and re.split(r"[^\w.-]", name.strip())[0].lower() == package:
                return extra
    return ""


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
