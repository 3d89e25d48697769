"""How a simulated rater answers a screen: perception of what is shown, then the habits, then the scale's own form."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from dialometer.model.item import CandidateItem, Item
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.quality.checks import Attention, Comprehension
from dialometer.simulate.rater import SimulatedRater, magnitudes, ratings
from dialometer.simulate.screen_view import FieldView, ScreenView
from dialometer.simulate.truth import Truth, candidate_quality, shown_systems

_REMARKS = (
    "No further remarks.",
    "Clear instructions, thank you.",
    "Some of the responses did not fit what was said before.",
    "It was hard to tell a few of them apart.",
    "Interesting study.",
)


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
    for rule in study.spec.quality:
        checks = (
            rule.checks if isinstance(rule, Attention) else rule.questions if isinstance(rule, Comprehension) else ()
        )
        for check in checks:
            if check.name == field.name and not (rater.is_careless and rng.random() < rater.habits.careless_rate):
                return check.answer
    return _answer_question(field, rng)


def _answer_item(
    study: Study, truth: Truth, rater: SimulatedRater, screen: ScreenView, rng: np.random.Generator
) -> dict[str, Any]:
    item = study.items_by_id[screen.item_id]
    # After a conversation nothing is shown but the questions: the rater judges the one system it was with.
    systems = shown_systems(item, screen.option_texts) or tuple(item.systems[:1])
    answers: dict[str, Any] = {}
    for field in screen.fields:
        criterion = field.name.split(".", 1)[0]
        noise_sd = rater.habits.noise_sd * (1 - rater.habits.text_anchor_calm * screen.has_standard)
        perceived = []
        for place, system in enumerate(systems or ("",)):
            utility = _true_quality(truth, item, criterion, system) + rng.normal(0, noise_sd)
            perceived.append(utility + (rater.habits.position_bias if place == 0 and len(systems) > 1 else 0.0))
        if rater.is_careless and rng.random() < rater.habits.careless_rate:
            perceived = list(rng.normal(0, 1.5, len(perceived)))
        answers[field.name] = _on_scale(rater, screen, field, perceived, rng)
    return answers


def _true_quality(truth: Truth, item: Item, criterion: str, system: str) -> float:
    if isinstance(item, CandidateItem):
        return candidate_quality(truth, item, criterion)
    return truth.quality(item.id, criterion, system)


def _on_scale(
    rater: SimulatedRater, screen: ScreenView, field: FieldView, perceived: list[float], rng: np.random.Generator
) -> Any:
    scale = field.scale
    if scale.compares:
        return _compare(rater, scale, field.alternatives, np.array(perceived), rng)
    place = int(field.target) - 1 if field.target.isdigit() else 0
    utility = perceived[min(place, len(perceived) - 1)] + rater.bias
    match scale.type:
        case "magnitude":
            log_modulus = np.array(np.log(rater.modulus))
            return float(magnitudes(rater.habits, log_modulus, np.array(utility), screen.anchor_number))
        case "likert":
            return int(ratings(scale, np.array(utility)))
        case "slider":
            return float(ratings(scale, np.array(utility)))
        case _ if categories := scale.categories():
            # A scale from elsewhere: its values are taken as ordered from low to high quality.
            share = 1 / (1 + np.exp(-utility))
            return categories[min(int(share * len(categories)), len(categories) - 1)]
        case _:
            return _answer_question(field, rng)


def _compare(
    rater: SimulatedRater, scale: Scale, alternatives: tuple[str, ...], perceived: np.ndarray, rng: np.random.Generator
) -> Any:
    order = np.argsort(-perceived, kind="stable")
    match scale.type:
        case "pairwise":
            difference = abs(float(perceived[0] - perceived[-1]))
            if difference < rater.habits.tie_width and getattr(scale, "allow_tie", False):
                return "tie"
            if difference < rater.habits.tie_width / 4 and getattr(scale, "allow_cannot_tell", False):
                return "cannot_tell"
            return alternatives[int(order[0])]
        case "best_worst":
            return {"best": alternatives[int(order[0])], "worst": alternatives[int(order[-1])]}
        case _:
            options = list(getattr(scale, "options", None) or alternatives)
            if len(options) != len(perceived):
                return [options[i] for i in rng.permutation(len(options))]
            return [options[int(i)] for i in order]


def _answer_question(field: FieldView, rng: np.random.Generator, accept: list[Any] | None = None) -> Any:
    """An answer to a question about the rater; screening questions are answered so that the rater may go on."""
    if accept:
        return accept[int(rng.integers(len(accept)))]
    scale: Any = field.scale
    match scale.type:
        case "choice":
            weights = 1 / np.arange(1, len(scale.options) + 1)
            return scale.options[int(rng.choice(len(scale.options), p=weights / weights.sum()))]
        case "multiple":
            most = scale.at_most or len(scale.options)
            n = int(rng.integers(max(1, scale.at_least), most + 1))
            return [scale.options[int(i)] for i in sorted(rng.permutation(len(scale.options))[:n])]
        case "ranking":
            options = list(scale.options or field.alternatives)
            noise = rng.normal(0, 1.5, len(options)) + np.arange(len(options))
            return [options[int(i)] for i in np.argsort(noise)]
        case "likert":
            return int(rng.integers(scale.first, scale.first + scale.points))
        case "slider":
            return float(scale.low + (scale.high - scale.low) * round(float(rng.random()), 2))
        case "magnitude":
            return float(rng.integers(10, 200))
        case "text" if scale.format != "text":
            low = scale.minimum if scale.minimum is not None else 0
            high = scale.maximum if scale.maximum is not None else low + 100
            return int(np.clip(round(rng.gamma(6, 3) + max(low, 18)), low, high))
        case other if other != "text" and (categories := scale.categories()):
            return categories[int(rng.integers(len(categories)))]
        case _:
            return _REMARKS[int(rng.integers(len(_REMARKS)))] if field.is_required or rng.random() < 0.3 else ""
