"""Logs of Inspect, the evaluation framework of the UK AI Security Institute: each sample a dialogue, with its scores.

Read are ``.eval`` files and their form as JSON: https://inspect.aisi.org.uk/eval-logs.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.chats import CHAT_SPEAKERS, Chat
from dialometer.readers.json_records import JsonRecord, json_records, kind_of, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader
from dialometer.readers.source import SourceFile

_ATTACHMENT = "attachment://"
_BEGINNING = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,.{0,300}?"eval"\s*:\s*\{', re.DOTALL)
"""A log in JSON is one object, of which only the beginning is looked at."""
_ABOUT_EVAL = ("task", "model", "created", "run_id")
_ABOUT_SAMPLE = ("epoch", "target", "choices", "metadata", "error", "limit", "total_time")


@READERS.register("inspect")
class InspectReader(Reader):
    """One dialogue a sample: its messages, tool calls and scores; model and task go to the metadata."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = CHAT_SPEAKERS

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """An evaluation and its samples."""
        if isinstance(head.record, dict):
            return isinstance(head.record.get("eval"), dict) and ("samples" in head.record or "plan" in head.record)
        return head.text.lstrip().startswith("{") and _BEGINNING.match(head.text[:5_000]) is not None

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft a sample."""
        for record in objects(json_records(source, problems), problems):
            samples = record.value.get("samples") or []
            about = record.value.get("eval")
            for number, sample in enumerate(samples if isinstance(samples, list) else []):
                if isinstance(sample, dict):
                    yield _draft(sample, about if isinstance(about, dict) else {}, record, problems)
                else:
                    message = f"a sample must be an object, not {kind_of(sample)}"
                    problems.of_record([problems.problem(message, line=record.line, field=f"samples[{number}]")])


def _draft(sample: dict[str, Any], about: dict[str, Any], record: JsonRecord, problems: Problems) -> DialogueDraft:
    epoch = sample.get("epoch")
    sample_id = sample.get("id")
    is_first = epoch in (None, 1)
    metadata = {name: about[name] for name in _ABOUT_EVAL if about.get(name) is not None}
    metadata |= {name: sample[name] for name in _ABOUT_SAMPLE if sample.get(name) not in (None, {}, [])}
    metadata |= _scores(sample.get("scores"))
    if "model" in metadata:
        metadata["system"] = metadata["model"]
    draft = DialogueDraft(sample_id if is_first else f"{sample_id}.{epoch}", [], line=record.line, metadata=metadata)
    attached = sample.get("attachments")
    messages = _resolved(_messages(sample), attached if isinstance(attached, dict) else {})
    return Chat(draft, problems).read(messages, "messages")


def _messages(sample: dict[str, Any]) -> Any:
    """The messages; a log without them has the input and the model's output."""
    if sample.get("messages"):
        return sample["messages"]
    prompt = sample.get("input")
    before = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}] if prompt else []
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    replies = [choice.get("message") for choice in choices or [] if isinstance(choice, dict)]
    return [*before, *(message for message in replies[:1] if isinstance(message, dict))]


def _scores(scores: Any) -> dict[str, Any]:
    """Values by scorer, and what scorers wrote about them."""
    given = (
        {name: score for name, score in scores.items() if isinstance(score, dict)} if isinstance(scores, dict) else {}
    )
    values = {name: score.get("value") for name, score in given.items()}
    reasons = {name: score["explanation"] for name, score in given.items() if score.get("explanation")}
    return {**({"scores": values} if values else {}), **({"explanations": reasons} if reasons else {})}


def _resolved(value: Any, attached: Mapping[str, Any]) -> Any:
    """Long texts are kept apart from the messages and named by their hash; here they are back."""
    if isinstance(value, dict):
        return {name: _resolved(inner, attached) for name, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, attached) for inner in value]
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    return value
