"""What a file says that a study does not know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a record does not match the study, and what to do about it."""

    message: str
    remedy: str = ""
    column: str = ""
