"""The JSON API's words: what a program sends and what it gets, each checked and described in one place."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dialometer.model.session import LAST_MS, Outcome, Source, State

Milliseconds = Annotated[
    int, Field(ge=0, le=LAST_MS, description="Milliseconds since 1970 (UTC), before the year 2100.")
]
# Texts that are stored: no control characters.
Plain = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=300)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.\-]*$", max_length=64)]


class RequestBody(BaseModel):
    """A body: unknown fields are errors, and a number is a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SessionRequest(RequestBody):
    """A rater arrives. The same ``platform`` and ``external_id`` get the same session again, with a new token."""

    platform: Word = "api"
    external_id: Plain = Field(default="", description="The rater's name on the platform; empty for a new rater.")
    params: dict[Word, Plain] = Field(default_factory=dict, max_length=20, description="Kept with the rater's name.")
    source: Literal["model", "simulated", "person"] = Field(default="model", description="What kind of rater this is.")
    at_ms: Milliseconds | None = Field(default=None, description="The virtual clock of a simulated rater.")
    language: Annotated[str, Field(pattern=r"^[A-Za-z0-9\-]*$", max_length=35)] = Field(
        default="", description="One of the study's languages; that of the study file by default."
    )


class SessionOpened(BaseModel):
    """The token opens the session: ``Authorization: Bearer <session_token>``. It is shown only here."""

    session_id: str
    session_token: str
    is_new: bool
    state: State
    step: int


class SessionStatus(BaseModel):
    """How far a session has come."""

    session_id: str
    state: State
    source: Source
    language: str
    step: int
    n_steps: int
    progress: float = Field(ge=0, le=1)
    remaining_s: float | None = Field(description="Estimated seconds left; null when the session is over.")


class ToolCallShown(BaseModel):
    """A step in which a system used a tool. Long texts are cut as on a page."""

    name: str
    arguments: str
    result: str | None
    is_cut: bool


class MediaShown(BaseModel):
    """An image, sound or video."""

    kind: str
    file: str = Field(description="Its name under /media/.")
    alt: str


class TurnShown(BaseModel):
    """One utterance."""

    speaker: str
    text: str
    role: str
    tool_calls: list[ToolCallShown] = Field(default_factory=list)
    media: list[MediaShown] = Field(default_factory=list)


class Stretch(BaseModel):
    """A stretch of a turn, marked where two transcripts differ."""

    text: str
    is_changed: bool


class OptionShown(BaseModel):
    """A response or transcript, known only by its place."""

    place: str
    turns: list[TurnShown]
    marks: dict[str, list[Stretch]] | None = Field(
        default=None, description="Turn number to its stretches, where differences are highlighted."
    )
    system_prompt: str = Field(default="", description="What this system alone was told, where the condition shows it.")


class ItemShown(BaseModel):
    """What is judged."""

    id: str = Field(description="A name for the item that says nothing; exports use the id of the item file.")
    kind: str
    title: str
    text: str
    context: list[TurnShown]
    options: list[OptionShown]
    standard: str | None
    anchor_values: dict[str, float] = Field(
        description="Criterion to the standard's value on it, where the condition shows it."
    )
    task: str
    rated_turns: list[int]
    recording: str | None = Field(
        description="Name of the candidate's video or audio file under /media/, if it has one."
    )
    system_prompt: str = Field(default="", description="What all systems were told, where the condition shows it.")
    text_form: str = Field(default="plain", description="Whether people see its texts as plain text or as Markdown.")
    scenario: str
    min_turns: int
    max_turns: int


class PassageShown(BaseModel):
    """A text that can be marked; offsets of marks count its characters from 0."""

    turn: int
    text: str
    is_markable: bool


class FieldShown(BaseModel):
    """One thing to answer. ``scale`` holds its type and all its settings."""

    name: str
    question: str
    definition: str
    label: str
    help: str
    target: str
    alternatives: list[str]
    passages: list[PassageShown] = Field(description="What can be marked, on a scale that marks words; else empty.")
    is_required: bool
    scale: dict[str, Any]
    option_words: dict[str, str] = Field(
        default_factory=dict,
        description="Options in the words of the session's language; answers name the options themselves.",
    )


class ScreenShown(BaseModel):
    """A screen with everything a person would see on it."""

    screen: str
    kind: str
    state: State
    step: int
    n_steps: int
    text: str
    fields: list[FieldShown]
    item: ItemShown | None
    chat: list[TurnShown] | None = Field(description="What was said so far, for conversations.")
    deadline_s: float | None
    estimated_s: float
    is_practice: bool
    may_go_back: bool
    attempt: int
    position: int
    n_items: int
    language: str = Field(default="", description="The language of its texts.")


class SubmissionRequest(RequestBody):
    """The answers of one screen. The same ``token`` is stored once, however often it is sent."""

    screen: Plain
    token: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=300)]
    answers: dict[str, JsonValue] = Field(default_factory=dict, description="Field name to answer.")
    shown_at_ms: Milliseconds
    first_input_at_ms: Milliseconds | None = None
    submitted_at_ms: Milliseconds | None = Field(default=None, description="The virtual clock of a simulated rater.")
    focus_lost_n: int = Field(default=0, ge=0, le=100_000)
    focus_lost_s: float = Field(default=0.0, ge=0, le=1e7, allow_inf_nan=False)
    device: Annotated[str, Field(pattern=r"^[a-z \-]*$", max_length=32)] = ""
    opened: Annotated[list[Annotated[str, Field(max_length=16)]], Field(max_length=100)] = Field(
        default_factory=list, description="Places of the long responses that were opened."
    )


class SubmissionReceipt(BaseModel):
    """What became of a screen. ``stored`` and ``repeated`` mean that it is on disk."""

    token: str
    outcome: Outcome
    step: int
    state: State
    n_judgments: int = Field(description="Judgments stored by this sending; 0 when it was a repetition.")


class ChatRequest(RequestBody):
    """One message. ``n_said``, the number of messages said before it, makes sending it twice harmless."""

    text: str = Field(max_length=4000)
    n_said: int | None = Field(default=None, ge=0, le=100_000)
    at_ms: Milliseconds | None = Field(default=None, description="The virtual clock of a simulated rater.")
    place: Literal[1, 2] | None = Field(
        default=None, description="In arenas where each system gets its own messages: which of the two."
    )


class SideReply(BaseModel):
    """What one of the two systems of an arena said, or why nothing came."""

    place: str
    reply: str | None
    error: str | None


class ArenaReply(BaseModel):
    """What the systems of an arena said; ``n_said`` counts the messages to each."""

    replies: list[SideReply]
    n_said: list[int]
    waiting: list[int] = Field(description="Places whose reply did not come; it can be asked for again.")
    may_continue: bool = Field(description="Whether enough was said to vote.")
    may_say: bool = Field(description="Whether there is room for another message.")


class ChatReply(BaseModel):
    """What the other side said."""

    reply: str
    n_said: int
    may_continue: bool = Field(description="Whether enough was said to continue.")
    may_say: bool = Field(description="Whether there is room for another message.")


class Problem(BaseModel):
    """What went wrong, in words; ``fields`` has a sentence for each answer that is not in order."""

    error: str
    fields: dict[str, str] | None = None
    reason: str | None = None


class ChatProblem(Problem):
    """No reply: after ``may_retry`` it can be asked for again; ``is_pending`` means that a person is still writing."""

    may_retry: bool = False
    is_pending: bool = False
    n_said: int | None = None
    may_continue: bool | None = None
    may_say: bool | None = None
