"""What the verbs of the family recruit prolific share: options, which study it is, and the API with the user's token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dialometer.recruit.prolific import Prolific

Live = Annotated[bool, typer.Option("--live", help="Do it. Without this, only say what would be done.")]
StudyId = Annotated[
    str, typer.Option("--study-id", help="Prolific's id of the study; by default the one that 'draft' has made.")
]
DRY = "Nothing was sent: this was a dry run. Do it with [bold]--live[/]."


def study_id_of(folder: Path, given: str) -> str:
    """Prolific's id of a study: the one that was given, else the one that was noted."""
    from dialometer.cli._prolific_ledger import Ledger
    from dialometer.errors import DialometerError

    found = given or Ledger(folder).study_id
    if not found:
        raise DialometerError(
            "this study has no draft on Prolific yet",
            remedy="make one with 'dialometer recruit prolific draft --live', or name one with --study-id",
        )
    return found


class prolific:  # noqa: N801 - used as a function, in a with statement
    """The API with the token of the environment."""

    def __enter__(self) -> Prolific:
        from dialometer.recruit.calling import Calls
        from dialometer.recruit.prolific import Prolific, api_from_environment, token_from_environment

        self._calls = Calls(api_from_environment(), token_from_environment())
        return Prolific(self._calls)

    def __exit__(self, *_: object) -> None:
        self._calls.close()
