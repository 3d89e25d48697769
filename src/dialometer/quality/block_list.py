"""Block list: raters who may not take part, by their platform identifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from dialometer.model.quality import Action, Finding, QualityRule
from dialometer.model.session import Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality import RULES


@RULES.register("block_list")
class BlockList(QualityRule):
    """Identifiers stand one a line in a file beside the study, or in ``raters``. They are looked at on arrival only,

    because afterwards nothing but the pseudonym is known.
    """

    rule: Literal["block_list"] = "block_list"
    action: Action = "screen_out"
    file: str = Field(default="", description="Text file beside study.yaml, one identifier a line, # for remarks.")
    raters: list[str] = Field(default_factory=list)
    acts: ClassVar[Literal["arrival", "live", "end"]] = "arrival"

    def blocks(self, external_id: str, listed: Sequence[str] = ()) -> bool:
        """Whether this identifier is on the list; ``listed`` are the lines of the file."""
        names = {line.split("#", 1)[0].strip() for line in listed} | set(self.raters)
        return bool(external_id) and external_id in names

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        return ()
