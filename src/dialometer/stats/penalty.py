"""When a ranking model needs a penalty, how much of it, and what the reader is told."""

from __future__ import annotations

from dialometer.errors import DialometerError, NotEnoughData

DEFAULT_PRIOR = 0.1
"""Pseudo-wins of every system over every other one where maximum likelihood has no finite answer."""


def choose_penalty(prior: float | None, obstacles: list[str], where: str) -> tuple[float, list[str]]:
    """Pseudo-wins to add and the notes that go with them. ``obstacles`` say why no finite estimate exists; none if it does.

    A prior of 0 that was asked for is not silently replaced: without a finite estimate it is an error.
    """
    if prior is not None and not 0 <= prior < float("inf"):
        raise DialometerError(f"a prior of {prior} pseudo-wins", where=where, remedy="give 0 or more")
    used = prior if prior is not None else (DEFAULT_PRIOR if obstacles else 0.0)
    notes = [f"no maximum-likelihood estimate exists: {'; '.join(obstacles)}"] if obstacles else []
    if obstacles and not used:
        raise NotEnoughData(notes[0], where=where, remedy="leave prior out, or set it to a positive number")
    if used:
        notes.append(f"penalised fit: {used:g} pseudo-wins for every system over every other one")
    return used, notes


def fitting_name(prior: float) -> str:
    """For the method line of an estimate."""
    return f"penalised likelihood ({prior:g} pseudo-wins)" if prior else "maximum likelihood"


def penalised_note(n_penalised: int, n_resamples: int) -> str:
    """Said where the data have a finite estimate but some resamples do not."""
    return (
        f"{n_penalised} of {n_resamples} resamples admit no maximum-likelihood estimate and were fitted with "
        f"{DEFAULT_PRIOR:g} pseudo-wins"
    )
