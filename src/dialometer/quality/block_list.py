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
    """Identifiers are listed in a file beside the study, one per line, or in ``raters``. They are checked on arrival only,
    because afterwards nothing but the pseudonym is known.
    """

    rule: Literal["block_list"] = "block_list"
    action: Action = Field(default="screen_out", description="screen_out, exclude from the analysis, or flag.")
    file: str = Field(default="", description="Text file beside study.yaml, one identifier per line, # for remarks.")
    raters: list[str] = Field(default_factory=list, description="Identifiers of raters.")
    acts: ClassVar[Literal["arrival", "live", "end"]] = "arrival"
    withheld: ClassVar[frozenset[str]] = frozenset({"file", "raters"})

    def in_words(self) -> str:
        return "an identifier on the study's list"

    def refuses(self, study: Study, external_id: str) -> bool:
        lines = study.texts.get(self.file, "").splitlines()
        names = {line.split("#", 1)[0].strip() for line in lines} | set(self.raters)
        return bool(external_id) and external_id in names

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        return ()
