"""What a study file declares. One definition serves loading, checking, the JSON Schema and every other package.

Scales and quality rules are declared here only by their common base; the concrete ones are found in their folders, so
that a new one needs no change in this file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, model_validator

from dialometer.model.analysis_plan import Analysis, Comparison
from dialometer.model.design import (
    MAIN_BLOCK,
    Block,
    Condition,
    Design,
    Presentation,
)
from dialometer.model.dialogue import Role
from dialometer.model.item import CandidateItem, Item, ItemKind, ResponsesItem
from dialometer.model.judges import Agent, Judge, draw_for_people
from dialometer.model.live import Live
from dialometer.model.media import Recording
from dialometer.model.part import Name, Part
from dialometer.model.quality import QualityRule
from dialometer.model.rater_text import RaterText, SpeakerName, TextFile
from dialometer.model.recruitment import Privacy, Recruitment
from dialometer.model.scale import Scale
from dialometer.model.translation import Translation, in_words_of

LanguageTag = Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$", max_length=35)]
"""A language as in BCP 47, such as de or pt-BR."""


def translation_file(language: str) -> str:
    """The file beside study.yaml that holds the texts in another language."""
    return f"translations.{language}.yaml"


class System(Part):
    """A system under comparison, or a version of one."""

    name: Name = Field(description="Short name used in items, tables and reports; raters never see it.")
    label: str = Field(default="", description="Name for reports; the short name by default.")
    description: str = Field(default="", description="What it is, for the methods section.")
    agent: Agent | None = Field(
        default=None,
        description="How to reach it: for live conversations (chat and arena items), or to generate responses to contexts.",
    )


class Items(Part):
    """Where the items are and what kind they are."""

    kind: ItemKind = Field(
        description="What an item is. responses: single responses to a shared context; transcript_pair: two whole transcripts; "
        "dialogue: one whole dialogue; candidate: a candidate answer to a context; chat: a live dialogue; arena: a live dialogue "
        "with two systems side by side."
    )
    file: str = Field(default="items.jsonl", description="JSON Lines file beside study.yaml, one item per line.")
    pairs: Literal["controlled", "free", "dialogues"] = Field(
        default="free",
        description="controlled: the two transcripts may differ only in the agent's strategy (checked). dialogues: the study "
        "compares dialogues, not systems; the two systems name the sides, the metadata 'first' and 'second' the dialogues.",
    )
    rate: Literal["whole", "turns"] = Field(
        default="whole", description="Dialogue items: rate the whole dialogue, or each turn of the agent."
    )
    translated: bool = Field(
        default=False,
        description="Studies in several languages: whether items are translated too; all raters read them as they are by default.",
    )


class Arena(Part):
    """Live comparisons of two systems side by side (items of the kind arena)."""

    messages: Literal["same", "own"] = Field(
        default="same", description="Every message goes to both systems, or raters write to each system on its own."
    )
    pairs: Literal["balanced", "uncertain"] = Field(
        default="balanced",
        description="Which two systems meet: all pairs equally often, or more often those whose votes leave it most open "
        "which is better (adaptive assignment). The probability of every draw is stored, and reports weight votes by it.",
    )
    floor: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="With uncertain pairs: the share of draws that is spread evenly over all pairs, so that each keeps a "
        "chance.",
    )
    reveal: Literal["never", "end"] = Field(
        default="never", description="Whether raters learn on the last page which systems they talked to."
    )


LANGUAGE = "language"
"""The variable under which the language of a rater is analysed, where a study has several."""
REASON = ".reason"
"""What follows the name of a criterion where a reason for an answer is stored."""
REASON_SCALE = "text"
"""The type of scale on which reasons are written."""


class Criterion(Part):
    """One thing a rater judges."""

    name: Name = Field(description="Short name used in tables and reports.")
    question: RaterText = Field(min_length=1, description="The question as raters read it.")
    definition: RaterText = Field(default="", description="What the criterion means; shown in the instructions.")
    label: RaterText = Field(default="", description="Heading that raters read; made from the name by default.")
    scale: str = Field(description="Name of one of the scales.")
    is_required: bool = Field(default=True, description="Whether raters must answer.")
    reason: Literal["optional", "required"] | None = Field(
        default=None, description="Whether raters are asked for a reason in their own words; not by default."
    )
    reason_question: RaterText = Field(
        default="", description="How the reason is asked for; a sentence of the interface by default."
    )
    source: str = Field(
        default="", description="Where it was published, to be cited with the study; raters never see it."
    )

    @property
    def reason_name(self) -> str:
        """Under which name reasons are stored beside the answers; no criterion can have it."""
        return self.name + REASON

    @property
    def shown_label(self) -> str:
        """Its label, made from the name where it has none."""
        return self.label or self.name.replace("_", " ").capitalize()

    def text_if_empty(self, field: str) -> str:
        return self.shown_label if field == "label" else ""


class Question(Part):
    """One question of a questionnaire."""

    name: Name = Field(description="Short name used in tables and reports.")
    text: RaterText = Field(min_length=1, description="The question as raters read it.")
    label: str = Field(default="", description="Short name for reports; made from the name by default.")
    scale: str = Field(description="Name of one of the scales.")
    help: RaterText = Field(default="", description="A sentence below the question.")
    is_required: bool = Field(default=True, description="Whether raters must answer.")
    accept: list[str | int | float | bool] | None = Field(
        default=None, description="Screening questions: the answers with which a rater may continue."
    )
    source: str = Field(
        default="", description="Where it was published, to be cited with the study; raters never see it."
    )


class Texts(Part):
    """Markdown files beside study.yaml."""

    consent: TextFile = Field(
        default="consent.md", description="Text file that raters read before they agree to take part."
    )
    instructions: TextFile = Field(
        default="instructions.md", description="Text file that raters read before the first item."
    )
    debriefing: TextFile = Field(default="debriefing.md", description="Text file that raters read at the end.")


class Adjudication(Part):
    """What raters disagree about is settled by somebody else. Their judgments and the settled one are all kept."""

    criteria: list[Name] = Field(
        default_factory=list,
        description="Which criteria; all but those that are answered in raters' own words by default.",
    )
    raters: int = Field(
        default=2, ge=2, description="How many raters of one condition judge an item before it can be settled."
    )
    distance: float | dict[Name, float] = Field(
        default=0.0,
        description="Numbers further apart than this are a disagreement: one distance for all criteria, or one by criterion; "
        "a ratio for magnitudes. Choices, categories, checklists and marks disagree where they are not the same.",
    )
    items_per_session: int = Field(default=20, ge=1, description="How many items an adjudicator gets at a time.")

    def distance_on(self, criterion: str) -> float:
        """How far apart numbers on a criterion may be."""
        return self.distance.get(criterion, 0.0) if isinstance(self.distance, dict) else self.distance


class StudySpec(Part):
    """The whole of study.yaml."""

    dialometer: Literal[1] = Field(description="Version of the study file's format.")
    name: Name = Field(description="Short name of the study; part of the address that raters open.")
    title: RaterText = Field(min_length=1, description="What raters read at the top of every page.")
    description: str = Field(
        default="", description="What the study is about, for reports and reviewers; raters do not read it."
    )
    contact: str = Field(default="", description="Who answers raters' questions; shown in the pages.")
    authors: list[str] = Field(default_factory=list, description="Who is cited for the study and its data.")
    licence: str = Field(default="", description="Licence under which the data may be used (SPDX), such as CC-BY-4.0.")
    language: str = Field(default="en", description="Language of the interface and of the texts (BCP 47).")
    languages: list[LanguageTag] = Field(
        default_factory=list,
        description="Languages in which raters can take part; the first is the one that the texts are written in, the others "
        "are in translations.<language>.yaml. Only `language` by default.",
    )
    seed: int = Field(ge=0, description="All random draws start from it.")
    speakers: dict[SpeakerName, Role] = Field(
        default={"User": "user", "Agent": "agent"}, description="Speakers in the items and their roles."
    )
    systems: list[System] = Field(min_length=1, description="What is compared: systems, or versions of one.")
    items: Items
    arena: Arena = Field(default_factory=Arena)
    scales: dict[str, SerializeAsAny[Scale]] = Field(
        min_length=1, description="How raters answer; criteria and questions name one of these."
    )
    criteria: list[Criterion] = Field(min_length=1, description="What raters are asked about each item.")
    texts: Texts = Field(default_factory=Texts)
    presentation: Presentation = Field(default_factory=Presentation)
    design: Design = Field(default_factory=Design)
    screening: list[Question] = Field(default_factory=list, description="Questions that decide who may take part.")
    pre_questionnaire: list[Question] = Field(default_factory=list, description="Questions before the first item.")
    post_questionnaire: list[Question] = Field(default_factory=list, description="Questions after the last item.")
    quality: list[SerializeAsAny[QualityRule]] = Field(
        default_factory=list, description="Rules that find careless raters."
    )
    judges: list[Judge] = Field(default_factory=list, description="Models and programs that judge beside human raters.")
    adjudication: Adjudication | None = Field(
        default=None, description="How disagreements between raters are settled; they are not by default."
    )
    recruitment: Recruitment = Field(default_factory=Recruitment)
    privacy: Privacy = Field(default_factory=Privacy)
    analysis: Analysis = Field(default_factory=Analysis)
    live: Live = Field(default_factory=Live)
    wording: dict[str, RaterText] = Field(
        default_factory=dict, description="Texts of the interface that this study overrides."
    )

    @model_validator(mode="before")
    @classmethod
    def _first_language(cls, value: Any) -> Any:
        """``languages: [en, de]`` says what the texts are written in, too."""
        several = value.get("languages") if isinstance(value, dict) else None
        return {"language": several[0], **value} if isinstance(several, list) and several else value

    @model_validator(mode="after")
    def _languages_fit(self) -> StudySpec:
        if self.languages and self.languages[0] != self.language:
            raise ValueError(f"the first of 'languages' is not the study's language ({self.language})")
        if len(set(self.languages)) < len(self.languages):
            raise ValueError("a language is given twice in 'languages'")
        return self

    @property
    def all_languages(self) -> list[str]:
        """The languages raters can choose from, the source first."""
        return self.languages or [self.language]


@dataclass(frozen=True, repr=False)
class Study:
    """A loaded study: the declared design, its items and its texts. Knows nothing of files beyond where it came from."""

    spec: StudySpec
    items: tuple[Item, ...]
    texts: Mapping[str, str]
    folder: Path | None = None
    translations: Mapping[str, Mapping[str, Translation]] = field(default_factory=dict)
    """By language, the translations of texts by their keys; none for the language of the study itself."""

    def __repr__(self) -> str:
        systems, criteria = len(self.spec.systems), len(self.spec.criteria)
        return f"Study('{self.spec.name}': {len(self.items)} items, {systems} systems, {criteria} criteria)"

    def in_language(self, language: str) -> Study:
        """The study as raters of one of its languages read it: the same design, ids and stored answers in other words."""
        if language == self.spec.language or language not in self.spec.languages:
            return self
        key = ("in language", language)
        if key not in self.remembered:
            self.remembered[key] = in_words_of(self, language, self.translations.get(language, {}))
        study: Study = self.remembered[key]
        return study

    @property
    def translation_files(self) -> list[str]:
        """The files of all translations that there are."""
        return [translation_file(language) for language in self.translations]

    @cached_property
    def question_scales(self) -> dict[str, Scale]:
        """The scale of every question of the questionnaires and the quality rules."""
        spec = self.spec
        scale_names = {q.name: q.scale for q in (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire)}
        scale_names |= {check.name: check.scale for rule in spec.quality for _, check in rule.questions_asked()}
        return {name: spec.scales[scale] for name, scale in scale_names.items() if scale in spec.scales}

    @property
    def rater_variables(self) -> list[str]:
        """By what raters can be grouped: the questions they answer, and their language where there are several."""
        return list(dict.fromkeys([*self.question_scales, *([LANGUAGE] if self.spec.languages[1:] else [])]))

    @cached_property
    def written_types(self) -> list[str]:
        """The types of scales that are answered in raters' own words; judgments name their scale by its type."""
        scales = self.spec.scales.values()
        types = {scale.type for scale in scales if scale.takes_own_words and not scale.option_names()}
        return sorted(types | ({REASON_SCALE} if any(criterion.reason for criterion in self.spec.criteria) else set()))

    @cached_property
    def gold_ids(self) -> frozenset[str]:
        """Items by which quality rules judge raters."""
        return frozenset(item_id for rule in self.spec.quality for item_id in rule.gold_ids(self))

    @cached_property
    def recordings(self) -> tuple[Recording, ...]:
        """The recordings of candidates."""
        of_items = (item.recording for item in self.items if isinstance(item, CandidateItem))
        return tuple(recording for recording in of_items if recording is not None)

    @cached_property
    def item_numbers(self) -> dict[str, int]:
        """Each item's place in the file, from 0."""
        return {item.id: number for number, item in enumerate(self.items)}

    def n_systems_shown(self, item: Item) -> int:
        """Of how many systems each rater sees something when given this item; gold items are shown whole."""
        n_wanted, n = self.spec.design.systems_per_item, len(item.systems)
        is_part = n_wanted is not None and isinstance(item, ResponsesItem) and item.id not in self.gold_ids
        return min(n_wanted or n, n) if is_part else n

    @cached_property
    def presentations(self) -> tuple[Presentation, ...]:
        """What raters see in each condition and block, every kind once."""
        seen: list[Presentation] = []
        for condition in self.cells:
            for block in self.blocks:
                shown = self.presentation(condition, block)
                if shown not in seen:
                    seen.append(shown)
        return tuple(seen)

    @cached_property
    def shows_markdown(self) -> bool:
        """Whether some raters see texts as Markdown."""
        return any(shown.text == "markdown" for shown in self.presentations)

    @cached_property
    def items_by_id(self) -> dict[str, Item]:
        """Items by their id."""
        return {item.id: item for item in self.items}

    @cached_property
    def neutral_ids(self) -> dict[str, str]:
        """For every item's id one that says nothing, for other tools: ids often name systems or gold items.

        Numbers follow a digest of seed and id, not the file, whose order may tell as much.
        """
        mixed = sorted(self.items_by_id, key=lambda name: sha256(f"{self.spec.seed} {name}".encode()).digest())
        return {name: f"item-{number:0{len(str(len(mixed)))}}" for number, name in enumerate(mixed, start=1)}

    @cached_property
    def shown_ids(self) -> dict[str, str]:
        """For every item's id what pages and the API call it. Unlike the numbers of :attr:`neutral_ids` it is no id that a
        study file would use, so that it is always clear which of the two was sent."""
        return {name: sha256(f"shown {self.spec.seed} {name}".encode()).hexdigest()[:12] for name in self.items_by_id}

    def own_id(self, shown: str) -> str:
        """The id of an item by what pages and the API call it; anything else stays as it is."""
        key = ("own ids",)
        if key not in self.remembered:
            self.remembered[key] = {name: own for own, name in self.shown_ids.items()}
        return str(self.remembered[key].get(shown, shown))

    def own_key(self, shown: str) -> str:
        """The key under which a screen is stored, by what pages and the API call it; a key stays as it is."""
        return "/".join(self.own_id(part) for part in shown.split("/"))

    @property
    def primary_comparison(self) -> Comparison | None:
        """The comparison that decides the study, where it declares one."""
        analysis = self.spec.analysis
        return next((comparison for comparison in analysis.comparisons if comparison.name == analysis.primary), None)

    @cached_property
    def criteria_by_name(self) -> dict[str, Criterion]:
        """Criteria by their name."""
        return {criterion.name: criterion for criterion in self.spec.criteria}

    @cached_property
    def cells(self) -> tuple[Condition, ...]:
        """Every combination of factor levels, in file order; one empty condition where there are no factors."""
        names = [factor.name for factor in self.spec.design.factors]
        levels = [[level.name for level in factor.levels] for factor in self.spec.design.factors]
        return tuple(dict(zip(names, combination, strict=True)) for combination in itertools.product(*levels))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The declared blocks, or the one that holds all items."""
        return tuple(self.spec.design.blocks) or (MAIN_BLOCK,)

    @cached_property
    def practice_items(self) -> tuple[Item, ...]:
        """Items marked for practice; their judgments never count."""
        return tuple(item for item in self.items if item.metadata.get("practice"))

    @cached_property
    def rated_items(self) -> tuple[Item, ...]:
        """Items whose judgments count, gold items included."""
        return tuple(item for item in self.items if not item.metadata.get("practice"))

    @cached_property
    def chances_for_people(self) -> dict[str, float]:
        """The items that raters get, each with the probability with which it was drawn; gold items are never drawn."""
        rate = self.spec.design.people_rate
        strata = {item.id: self.stratum(item) for item in self.rated_items if item.id not in self.gold_ids}
        gold = {item.id: 1.0 for item in self.rated_items if item.id in self.gold_ids}
        return gold | draw_for_people(strata, rate, self.spec.seed)

    @cached_property
    def people_items(self) -> tuple[Item, ...]:
        """The rated items that people are given; judges rate all."""
        return tuple(item for item in self.rated_items if item.id in self.chances_for_people)

    def stratum(self, item: Item) -> str:
        """The stratum from which an item is drawn for people; one for all where the study declares none."""
        by = self.spec.design.people_rate.by
        return "" if not by else item.block or MAIN_BLOCK.name if by == "block" else str(item.metadata.get(by, ""))

    def block_items(self, block: Block) -> tuple[Item, ...]:
        """The rated items of a block, in file order."""
        if not self.spec.design.blocks:
            return self.rated_items
        return tuple(item for item in self.rated_items if item.block == block.name)

    def presentation(self, condition: Condition, block: Block = MAIN_BLOCK) -> Presentation:
        """What raters of this condition see in this block; remembered, since every screen asks for it."""
        key = (block.name, *sorted(condition.items()))
        if key not in self.remembered:
            result = self.spec.presentation
            for factor in self.spec.design.factors:
                for level in factor.levels:
                    if condition.get(factor.name) == level.name:
                        result = level.set.apply(result)
            self.remembered[key] = block.set.apply(result)
        presentation: Presentation = self.remembered[key]
        return presentation

    @cached_property
    def remembered(self) -> dict[tuple[object, ...], Any]:
        """What follows from the study alone and is asked for all the time; a study never changes."""
        return {}

    def block_criteria(self, block: Block) -> tuple[Criterion, ...]:
        """The criteria asked in a block, in file order."""
        names = block.criteria
        return tuple(c for c in self.spec.criteria if names is None or c.name in names)

    def scale_for(self, criterion: Criterion, presentation: Presentation) -> Scale:
        """The scale on which a criterion is answered under a presentation."""
        return self.spec.scales[presentation.scales.get(criterion.name, criterion.scale)]

    def scales_of(self, criterion: Criterion) -> list[Scale]:
        """The scales on which a criterion is answered, one for each condition of each block that asks it."""
        asking = [block for block in self.blocks if criterion in self.block_criteria(block)]
        return [self.scale_for(criterion, self.presentation(cell, block)) for block in asking for cell in self.cells]

    def anchor_value(self, criterion: Criterion, presentation: Presentation) -> float | None:
        """The standard's value on a criterion, whether or not a condition shows it."""
        own = presentation.anchor_values.get(criterion.name)
        return own if own is not None else self.scale_for(criterion, presentation).anchor_number()

    def shown_anchors(self, presentation: Presentation, criteria: Iterable[Criterion]) -> dict[str, float]:
        """The standard's value on each criterion where raters see it."""
        if presentation.anchor not in ("number", "both"):
            return {}
        values = {criterion.name: self.anchor_value(criterion, presentation) for criterion in criteria}
        return {name: value for name, value in values.items() if value is not None}

    def judged_on(self, criterion: str, block: str, condition: Condition) -> Scale | None:
        """The scale of a judgment by the names that are stored with it; None where the study no longer asks that."""
        known = self.criteria_by_name.get(criterion)
        place = next((own for own in self.blocks if own.name == block), MAIN_BLOCK)
        return None if known is None else self.scale_for(known, self.presentation(condition, place))

    def cell_label(self, condition: Condition) -> str:
        """A condition in words, such as ``anchor=both, layout=together``."""
        return ", ".join(f"{name}={level}" for name, level in condition.items()) or "all raters"
