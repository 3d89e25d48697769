"""How a simulated rater answers a screen: perception of what is shown, then the habits, then the scale's own form."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from dialometer.model.item import ArenaItem, CandidateItem, ChatItem, Item
from dialometer.model.study import Study
from dialometer.simulate.rater import SimulatedRater, number_use
from dialometer.simulate.screen_view import FieldView, ScreenView
from dialometer.simulate.truth import Truth, candidate_quality, shown_systems


def answer_screen(study: Study, truth: Truth, rater: SimulatedRater, screen: ScreenView) -> dict[str, Any]:
    """Raw answers for every field of a screen, as a form or program would send them."""
    if screen.kind == "consent":
        return {"consent": "agree"}
    if screen.kind == "more":
        return {"more": "yes" if rater.rng(_number(screen.key)).random() < 0.6 else "no"}
    rng = rater.rng(_number(screen.key))
    if screen.kind in ("attention", "comprehension"):
        return {field.name: _check_answer(study, rater, field, rng) for field in screen.fields}
    if screen.kind == "item" and screen.item_id:
        return _answer_item(study, truth, rater, screen, rng)
    accept = {question.name: question.accept for question in study.spec.screening}
    return {field.name: _answer_question(field, rng, accept.get(field.name)) for field in screen.fields}


def _number(key: str) -> int:
    return zlib.crc32(key.encode())


def _check_answer(study: Study, rater: SimulatedRater, field: FieldView, rng: np.random.Generator) -> Any:
    checks = {check.name: check for rule in study.spec.quality for _, check in rule.questions_asked()}
    if field.name in checks and not (rater.is_careless and rng.random() < rater.habits.careless_rate):
        return checks[field.name].answer
    return _answer_question(field, rng)


def _answer_item(
    study: Study, truth: Truth, rater: SimulatedRater, screen: ScreenView, rng: np.random.Generator
) -> dict[str, Any]:
    item = study.in_language(screen.language).items_by_id[screen.item_id]
    # After a conversation nothing is shown but the questions: the rater judges the one system it was with.
    systems = screen.systems or shown_systems(item, screen.option_texts) or tuple(item.systems[:1])
    answers: dict[str, Any] = {}
    for field in screen.fields:
        criterion = field.name.split(".", 1)[0]
        noise_sd = rater.habits.noise_sd * (1 - rater.habits.text_anchor_calm * screen.has_standard)
        perceived = []
        for place, system in enumerate(systems or ("",)):
            utility = (
                _true_quality(truth, rater, item, criterion, system) + rater.taste(system) + rng.normal(0, noise_sd)
            )
            perceived.append(utility + (rater.habits.position_bias if place == 0 and len(systems) > 1 else 0.0))
        if rater.is_careless and rng.random() < rater.habits.careless_rate:
            perceived = list(rng.normal(0, 1.5, len(perceived)))
        answers[field.name] = _on_scale(rater, field, perceived, rng)
    return answers


def _true_quality(truth: Truth, rater: SimulatedRater, item: Item, criterion: str, system: str) -> float:
    if isinstance(item, CandidateItem):
        return candidate_quality(truth, item, criterion)
    if isinstance(item, ChatItem | ArenaItem):  # every conversation is another one
        return truth.quality(f"{item.id}/{rater.number}", criterion, system)
    return truth.quality(item.id, criterion, system)


def _on_scale(rater: SimulatedRater, field: FieldView, perceived: list[float], rng: np.random.Generator) -> Any:
    scale = field.scale
    if scale.compares:
        width = rater.habits.tie_width
        return scale.simulate_comparison(np.array(perceived), field.alternatives, rng, tie_width=width)
    place = int(field.target) - 1 if field.target.isdigit() else 0
    quality = perceived[min(place, len(perceived) - 1)] + rater.bias
    if scale.marks_text:
        return scale.simulate_about(quality, field.passages, rng)
    use = number_use(rater.habits, np.array(np.log(rater.modulus)), field.anchor)
    value = scale.simulate(np.array(quality), use)
    return _answer_question(field, rng) if value is None else value.item()


def _answer_question(field: FieldView, rng: np.random.Generator, accept: list[Any] | None = None) -> Any:
    """An answer to a question about the rater; screening questions are answered so that the rater may go on."""
    if accept:
        return accept[int(rng.integers(len(accept)))]
    return field.scale.simulate_question(rng, field.alternatives, is_required=field.is_required)
