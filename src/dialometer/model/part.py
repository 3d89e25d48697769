"""The base of everything a study file declares: frozen, and strict about misspelt keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A declared part of a study. Unknown keys are errors, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
