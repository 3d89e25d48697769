"""Options that several groups of verbs share, and what most verbs begin with: the study in a folder, its lock, its database."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.agents.access import AgentAccess
    from dialometer.model.dialogue import Role
    from dialometer.model.study import Study
    from dialometer.storage.store import Store


StudyDir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the study.", show_default=False)]
Database = Annotated[
    str,
    typer.Option(
        "--database", envvar="DIALOMETER_DATABASE", help="Database URL (postgresql://…); by default study.db in DIR."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
EngineName = Annotated[str, typer.Option("--engine", help="local, or ray for a cluster.")]
Address = Annotated[str, typer.Option("--address", help="Address of a running Ray cluster.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", envvar="DIALOMETER_CACHE", help="Where embeddings and trained models are kept."),
]


def _declare_speakers(context: typer.Context, entries: list[str] | None) -> list[str] | None:
    """Declares the roles for every file of dialogues that the verb reads, however deep in the work that happens."""
    if entries:
        from dialometer.readers.dialogue_file import DECLARED

        token = DECLARED.set(speaker_roles(entries))
        context.call_on_close(lambda: DECLARED.reset(token))
    return entries


Speakers = Annotated[
    list[str] | None,
    typer.Option(
        "--speakers",
        metavar="NAME=ROLE",
        help="Role of a speaker of the dialogues: user, agent or person; repeat for more.",
        callback=_declare_speakers,
    ),
]


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and is_dataclass(annotation)


def with_option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb for typer of which some parameters are dataclasses: each field of these is an option of its own."""
    parameters = inspect.signature(verb, eval_str=True).parameters
    groups = {name: option.annotation for name, option in parameters.items() if _is_group(option.annotation)}
    options: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            options += [
                parameter.replace(name=field.name, default=field.default, annotation=types[field.name])
                for field in fields(groups[name])
            ]
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(verb)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        verb(**given)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def speaker_roles(entries: list[str] | None) -> dict[str, Role]:
    """``NAME=ROLE`` for each speaker; several may be given with commas between them."""
    from dialometer.errors import DialometerError
    from dialometer.model.dialogue import ROLES

    roles: dict[str, Role] = {}
    single: list[str] = []
    for entry in entries or []:
        parts = entry.split(",")
        single += parts if all(part.rpartition("=")[2].strip() in ROLES for part in parts) else [entry]
    for entry in single:
        name, separator, given = entry.rpartition("=")
        role = next((role for role in ROLES if role == given.strip()), None)
        if not separator or not name.strip() or role is None:
            raise DialometerError(
                f"'{entry}' does not give a speaker a role", remedy=f"NAME=ROLE, where ROLE is {', '.join(ROLES)}"
            )
        roles[name.strip()] = role
    return roles


def open_study(folder: Path, access: AgentAccess | None = None) -> Study:
    """The study, refused when it has errors or was changed after it was frozen."""
    from dialometer.flow.study_check import open_study

    return open_study(folder, access)


def check_place(file: Path) -> None:
    """A file that cannot be written is refused before the work that it would hold, not after it."""
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))


def open_store(folder: Path, database: str, *, create: bool = True) -> Store:
    """The study's database; with ``create=False``, one that nobody has come to yet is an error that says so."""
    from dialometer.storage.store import Store, open_collected

    return Store.open(database or folder / DATABASE_FILE) if create else open_collected(folder, database)
