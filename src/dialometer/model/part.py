"""The base of everything a study file declares: frozen, and strict about misspelt keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_\-]*$", max_length=64)]
"""How systems, criteria, scales and questions may be called."""


class Part(BaseModel):
    """A declared part of a study. Unknown keys are errors, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    def text_if_empty(self, field: str) -> str:
        """What raters read where a text of this part is left out; empty where they then read nothing."""
        return ""
