"""Studies of one's own files for which the templates speak of their own examples: ratings of whole dialogues, best-worst
choices, candidate responses one by one, and live chats. All texts are neutral; the analysis is declared.

The study file, the consent and the last page are those of the template ``compare``, with what is of this kind put in.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialometer.design.edit_yaml import yaml_text
from dialometer.design.load import check_study
from dialometer.design.positions import parse_yaml
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError, StudyError
from dialometer.exchange.own_systems.dialogue_outputs import holds_responses, holds_systems, read_rated_dialogues
from dialometer.exchange.own_systems.system_outputs import SystemOutputs, read_outputs
from dialometer.model.file_names import STUDY_FILE
from dialometer.stats.ranking.style import style_counts

WORDS_PER_S = 4.0  # reading with care
S_PER_ANSWER = 6
S_AROUND = 120  # consent, instructions, questions
CENTS_PER_MINUTE = 25
MOST_S = 20 * 60
"""Longer than this a rater's items should not take."""
MOST_ITEMS = 12
FEWEST_SYSTEMS = 3
"""Of fewer, the best and the worst are all there is."""
FEWEST_FORMATTED = 0.05
"""Share of texts above which a study shows Markdown."""
TABLE = re.compile(r"^[ ]*\|?[ ]*:?-{3,}:?[ ]*\|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of study asks, and how raters are told."""

    title: str
    description: str
    item_kind: str
    criteria: Sequence[Mapping[str, Any]]
    scales: Mapping[str, Any]
    judgments_per_item: int | None
    task: str
    """In the consent: what raters do."""
    instructions: str
    judged: str
    """On the last page: what came from different assistants."""
    rules: Sequence[str]
    """Which of the template's quality rules fit."""
    claim: str


_SEVEN = {
    1: "Very bad",
    2: "Bad",
    3: "Rather bad",
    4: "Neither good nor bad",
    5: "Rather good",
    6: "Good",
    7: "Very good",
}
_QUALITY_7 = {"quality_7": {"type": "likert", "points": 7, "labels": _SEVEN}}
_FIT = ("Does not fit at all", "Hardly fits", "Fits in part", "Fits well", "Fits perfectly")
_PROGRAMS = "The assistants are computer programs; no human being answers."
_WIZARDS = "A member of the research team may check, change or write what an assistant says."
_KEEP = "# Please keep in mind\n\n"
KINDS: Mapping[str, Kind] = {
    "ratings": Kind(
        title="How good are these conversations?",
        description="Raters read whole conversations, without the names of the systems, and rate each one.",
        item_kind="dialogue",
        criteria=(
            {
                "name": "quality",
                "label": "Overall quality",
                "question": "All in all, how good is the assistant in this conversation?",
                "definition": "Think of the conversation from its first line to its last, in the place of the person who wrote to "
                "the assistant: does it help, is it true as far as you can tell, and is it clear?",
                "scale": "quality_7",
            },
        ),
        scales=_QUALITY_7,
        judgments_per_item=3,
        task="You will read conversations between a person and an assistant, and rate each one.",
        instructions="# How it works\n\nEach page shows a whole **conversation** between a person and an assistant. Read it "
        "to its end, then rate how good the assistant is in it. Every point of the scale says in words what it means.\n\n"
        f"{_KEEP}- Judge the assistant, not the person.\n- A longer conversation is not a better one.\n- Use the whole scale, "
        "its ends included, whenever the words there fit.\n- You cannot go back to earlier pages.\n",
        judged="The conversations you rated",
        rules=("attention", "screen_time", "straight_lining"),
        claim="The systems differ in how good their conversations are.",
    ),
    "best-worst": Kind(
        title="The best and the worst response",
        description="Raters see a conversation and the responses of all systems, in random order and without names, and choose "
        "the best and the worst one.",
        item_kind="responses",
        criteria=(
            {
                "name": "quality",
                "label": "Overall quality",
                "question": "Which response is the best one overall, and which is the worst?",
                "definition": "A good response is what you would like to get in the place of the person who wrote last: it helps, "
                "it is true as far as you can tell, it is clear, and it is no longer than it has to be.",
                "scale": "overall_choice",
            },
        ),
        scales={
            "overall_choice": {"type": "best_worst", "best_label": "Best response", "worst_label": "Worst response"}
        },
        judgments_per_item=6,
        task="You will read short conversations. For each one you will see the responses that different assistants gave, and choose "
        "the best and the worst of them.",
        instructions="# How it works\n\nEach page shows the beginning of a **conversation**, sometimes only a single question. "
        "Below it are the **responses** that different assistants gave to the last line. Their order changes from page to "
        "page. Choose the **best** response and the **worst** one.\n\n"
        f"{_KEEP}- Read all responses before you choose.\n- Where two are about as good, follow your first impression.\n"
        "- A longer response is not a better one.\n- You cannot go back to earlier pages.\n",
        judged="The responses you compared",
        rules=("attention", "screen_time"),
        claim="The systems differ in how often their responses are chosen as best and as worst.",
    ),
    "candidates": Kind(
        title="Which answers fit?",
        description="Raters see a conversation with one possible next response at a time, and rate how well it fits; responses "
        "that several systems gave are rated once for all of them.",
        item_kind="candidate",
        criteria=(
            {
                "name": "fit",
                "label": "Fit",
                "question": "How well does this response fit what was said before?",
                "definition": "A response fits if it answers what was asked or said, in this situation. Whether it is well written "
                "does not matter here.",
                "scale": "fit_5",
            },
        ),
        scales={"fit_5": {"type": "likert", "points": 5, "labels": dict(enumerate(_FIT, start=1))}},
        judgments_per_item=3,
        task="You will read short conversations, each with one possible next response, and rate how well it fits.",
        instructions="# How it works\n\nEach page shows the beginning of a **conversation**, sometimes only a single question, and "
        "**one response** to its last line. Rate how well the response fits. The same conversation may come back with another "
        "response.\n\n"
        f"{_KEEP}- Judge each response by itself, not by those you have seen before.\n- A longer response is not a better one.\n"
        "- Use the whole scale, its ends included, whenever the words there fit.\n- You cannot go back to earlier pages.\n",
        judged="The responses you rated",
        rules=("attention", "screen_time", "straight_lining"),
        claim="The systems differ in how well their responses fit.",
    ),
    "chat": Kind(
        title="Talking with assistants",
        description="Raters talk with each system about a given question, without knowing which it is, and rate each "
        "conversation.",
        item_kind="chat",
        criteria=(
            {
                "name": "quality",
                "label": "Overall quality",
                "question": "All in all, how good was the assistant in this conversation?",
                "definition": "Think of the conversation from its first line to its last: did it help, was it true as far as you "
                "can tell, and was it clear?",
                "scale": "quality_7",
            },
        ),
        scales=_QUALITY_7,
        judgments_per_item=None,
        task="You will talk in writing with assistants, one after the other, and rate each conversation.",
        instructions="# How it works\n\nYou talk with one assistant after the other. For each one:\n\n"
        "1. **Read the question** at the top of the page.\n2. **Talk.** Write your message, send it, and wait for the response. "
        "After at least two messages you may end the conversation, or go on.\n3. **Rate the conversation.**\n\n"
        f"{_KEEP}- No assistant knows what you told the others.\n- If a response makes no sense to you, do what you "
        "would do in any conversation: ask, or change the subject.\n- Please leave out names, addresses and other personal details.\n",
        judged="The responses you got",
        rules=(),
        claim="The systems differ in how good conversations with them are.",
    ),
}


def study_from_files(
    name: str, files: Sequence[Path], folder: Path, *, systems: Sequence[str] = (), n_items: int | None = None
) -> tuple[list[Path], list[str]]:
    """A study of a kind from files of responses or transcripts. The files written, and what was assumed."""
    if name == "ratings":
        outputs = read_rated_dialogues(files, n_items=n_items)
    else:
        outputs = read_outputs(files, systems=systems, n_items=n_items)
    if name == "best-worst" and len(outputs.systems) < FEWEST_SYSTEMS:
        raise DialometerError(
            f"there are {len(outputs.systems)} systems, and a best and a worst need at least {FEWEST_SYSTEMS}",
            where=str(files[0]),
            remedy="use the template 'pairs' for two systems",
        )
    if name == "candidates":
        outputs.items = _candidates(outputs)
    written = [{"name": key, **({"label": label} if label != key else {})} for key, label in outputs.systems.items()]
    spec: dict[str, Any] = {"speakers": dict(outputs.speakers), "systems": written}
    shown = formatted(outputs)
    return write_study(name, folder, spec | ({"presentation": shown} if shown else {}), outputs.items), outputs.notes


def is_of_responses(files: Sequence[Path]) -> bool:
    """Whether the files hold contexts beside responses, which the template ``compare`` rates one by one."""
    return holds_systems(files[0]) if len(files) == 1 else any(holds_responses(file) for file in files)


def _candidates(outputs: SystemOutputs) -> list[dict[str, Any]]:
    """Every different response to a context once, with the systems that gave it; a given standard is known to be good."""
    items = []
    speaker = next((name for name, role in outputs.speakers.items() if role == "agent"), "Assistant")
    outputs.speakers.setdefault(speaker, "agent")
    for item in outputs.items:
        by_text: dict[str, dict[str, int]] = {}
        for system, text in item["responses"].items():
            by_text.setdefault(text, {})[system] = 1
        standard = item.get("standard")
        if standard:
            by_text.setdefault(standard, {})
        for number, (text, ranks) in enumerate(by_text.items(), start=1):
            about = {**item.get("metadata", {}), "question": item["context"][-1]["text"]}
            entry = {"id": f"{item['id']}-c{number}", "context": item["context"], "ranks": ranks}
            items.append(
                {
                    **entry,
                    "candidate": {"speaker": speaker, "text": text},
                    "is_gold": text == standard,
                    "metadata": about,
                }
            )
    return items


def chat_from_prompts(texts: Mapping[str, str], declared: Mapping[str, Any], folder: Path) -> list[Path]:
    """Live chats: every rater talks with each system once, about a question that is drawn."""
    systems = [str(system["name"]) for system in declared["systems"]]
    items = [
        {
            "id": f"{name}-{place}",
            "system": system,
            "block": system,
            "scenario": f"Begin with this question, in your own words if you like: {text}",
            "min_turns": 2,
            "max_turns": 12,
            "metadata": {"prompt": text, "simulated_messages": [text, "Could you say a little more about that?"]},
        }
        for name, text in texts.items()
        for place, system in enumerate(systems, start=1)
    ]
    blocks = {"blocks": [{"name": system, "n_items": 1} for system in systems]}
    spec = {
        "speakers": {"You": "user", "Assistant": "agent"},
        **{key: declared[key] for key in ("systems", "live") if declared.get(key)},
        "design": blocks,
    }
    return write_study("chat", folder, spec, items)


def write_study(name: str, folder: Path, own: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Writes the study; ``own`` holds its systems and speakers, perhaps live settings and blocks."""
    kind = KINDS[name]

    def change(folder: Path) -> None:
        spec = parse_yaml((folder / STUDY_FILE).read_text(encoding="utf-8"), "").data
        spec |= _changes(name, kind, spec, own, items)
        (folder / STUDY_FILE).write_text(f"# {kind.description}\n{yaml_text(spec)}", encoding="utf-8")
        rows = (json.dumps(item, ensure_ascii=False) + "\n" for item in items)
        (folder / "items.jsonl").write_text("".join(rows), encoding="utf-8")
        _write_texts(folder, kind, _who_answers(own) if name == "chat" else "")

    return written_from("compare", folder, change)


def written_from(template: str, folder: Path, change: Callable[[Path], None]) -> list[Path]:
    """The files of a template once ``change`` was made; a study that cannot be used leaves nothing behind."""
    copied = copy_template(template, folder)
    try:
        change(folder)
        errors = [problem for problem in check_study(folder)[1] if problem.severity == "error"]
        if errors:
            raise StudyError(errors)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return copied


def _changes(
    name: str, kind: Kind, spec: Mapping[str, Any], own: Mapping[str, Any], items: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    systems = [system["name"] for system in own["systems"]]
    n_shown, minutes = (
        _session(items, len(kind.criteria)) if kind.item_kind != "chat" else (len(systems), 4 * len(systems) + 2)
    )
    scales = {question["scale"] for part in ("pre_questionnaire", "post_questionnaire") for question in spec[part]}
    rules = [rule for rule in spec["quality"] if rule["rule"] in kind.rules]
    for rule in rules:
        for check in rule.get("checks", ()):
            check["after_item"] = min(4, n_shown)
            scales.add(check["scale"])
    if any(item.get("is_gold") for item in items):
        accepted = [{"criterion": "fit", "at_least": 3}]
        rules.append({"rule": "gold", "acceptable": accepted, "n_allowed_failures": 1, "action": "flag"})
    design = {"items_per_rater": n_shown, "judgments_per_item": kind.judgments_per_item, "item_order": "random"}
    design |= {"system_order": "random"} if kind.item_kind == "responses" else {}
    analysis = {key: value for key, value in spec["analysis"].items() if key not in ("primary", "comparisons")}
    if len(systems) > 1:
        comparison = {"name": "systems", "between": "systems", "levels": systems}
        comparison |= {"criteria": [criterion["name"] for criterion in kind.criteria], "hypothesis": kind.claim}
        analysis = {"primary": "systems", "comparisons": [comparison], **analysis}
    pay = {"minutes": minutes, "pay_cents": minutes * CENTS_PER_MINUTE}
    return {
        "name": name,
        "title": kind.title,
        "description": kind.description,
        **{key: value for key, value in own.items() if key != "design"},
        "items": {"kind": kind.item_kind, "file": "items.jsonl"},
        "scales": {**kind.scales, **{key: scale for key, scale in spec["scales"].items() if key in scales}},
        "criteria": [dict(criterion) for criterion in kind.criteria],
        "design": own.get("design") or {key: value for key, value in design.items() if value is not None},
        "quality": rules,
        "recruitment": {**spec["recruitment"], **pay, **({"quota": 40} if kind.item_kind == "chat" else {})},
        "analysis": analysis,
    }


def _session(items: Sequence[Mapping[str, Any]], n_answers: int) -> tuple[int, int]:
    """How many items a rater gets, and how many minutes that takes."""
    words = sum(len(text.split()) for item in items for text in item_texts(item))
    s_per_item = words / len(items) / WORDS_PER_S + n_answers * S_PER_ANSWER
    n_shown = min(len(items), MOST_ITEMS, max(4, int(MOST_S / s_per_item)))
    return n_shown, max(2, round((n_shown * s_per_item + S_AROUND) / 60))


def formatted(outputs: SystemOutputs) -> dict[str, str]:
    """How the texts are to be shown, where many of them are written in Markdown; what was found is noted."""
    texts = [text for item in outputs.items for text in item_texts(item)]
    n = sum(any(style_counts([text])[1:]) or bool(TABLE.search(text)) for text in texts)
    if n <= FEWEST_FORMATTED * len(texts):
        return {}
    outputs.notes.append(
        f"{n:,} of {len(texts):,} texts are written in Markdown, and raters see them formatted; 'text: plain' under presentation in "
        "study.yaml shows them as they were written"
    )
    return {"text": "markdown"}


def item_texts(item: Mapping[str, Any]) -> list[str]:
    """Everything of an item that a rater reads."""
    turns = [*item.get("context", ()), *item.get("turns", ())]
    turns += [turn for side in ("a", "b") for turn in item.get(side, {}).get("turns", ())]
    turns += [item["candidate"]] if "candidate" in item else []
    return [turn["text"] for turn in turns] + list(item.get("responses", {}).values())


def _who_answers(own: Mapping[str, Any]) -> str:
    """Raters consent to what is true of the systems they will talk with: programs alone, or people too."""
    has_wizard = any((system.get("agent") or {}).get("type") == "wizard" for system in own["systems"])
    return _WIZARDS if has_wizard else _PROGRAMS


def _write_texts(folder: Path, kind: Kind, who_answers: str) -> None:
    """The template's texts with what raters of this kind do."""
    consent = folder / "consent.md"
    text = consent.read_text(encoding="utf-8")
    begin, end = text.index("You will read short conversations."), text.index("The whole study takes")
    rest = "A few questions about you come before and after. There are no right or wrong opinions; we ask only that you read"
    rest += " carefully." + (" One question checks that questions are being read." if kind.rules else "")
    consent.write_text(
        f"{text[:begin]}{' '.join(filter(None, (kind.task, who_answers, rest)))}\n\n{text[end:]}", encoding="utf-8"
    )
    (folder / "instructions.md").write_text(kind.instructions, encoding="utf-8")
    last = folder / "debriefing.md"
    text = last.read_text(encoding="utf-8").replace("The responses you rated", kind.judged)
    text = text.replace("rate each of them.", "judge each of them.")
    text = text.replace("by these ratings\n", "by these judgments\n")
    check = text.index("One question in between")
    text = text if kind.rules else text[:check] + text[text.index("## Your data and your questions") :]
    last.write_text(text, encoding="utf-8")
