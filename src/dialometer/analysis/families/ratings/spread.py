"""How ratings are spread: their distribution by system, and the things raters disagree about most."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.base.measures import Measure, Measures
from dialometer.analysis.base.scale_units import bounds
from dialometer.analysis.base.wording import listed, percent, system_label
from dialometer.analysis.families.ratings.agreement import scores
from dialometer.errors import NotEnoughData
from dialometer.model.item import ChatItem, DialogueItem, PairItem, ResponsesItem
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Share, stacked_shares, strip

N_DISPUTED = 10
FEWEST_RATERS = 3
TEXT_LENGTH = 90


def distribution_section(study: Study, measures: Measures) -> Section:
    """The shape of the ratings: shares of the points of a Likert scale, quartiles of free numbers."""
    parts: list[Figure] = []
    said: list[str] = []
    for measure in measures.criteria:
        is_likert = {scale.type for scale in measure.scales} == {"likert"} and measure.unit == "points"
        parts.append(_shares_figure(study, measure) if is_likert else _strip_figure(study, measure))
        said += _ends_sentence(measure)
        said += [f"{measure.label}: {note}" for note in measure.notes]
        if measure.constant_raters:
            who = listed(measure.constant_raters)
            said.append(f"{measure.label}: always the same number by {who}; such raters cannot tell systems apart.")
    return Section("distribution", "Distribution of the ratings", tuple(said), tuple(parts))


def _codes(study: Study, measure: Measure) -> list[int]:
    names = measure.book.systems
    order = [names.index(system.name) for system in study.spec.systems if system.name in names]
    return [code for code in order if np.any(measure.system == code)]


def _shares_figure(study: Study, measure: Measure) -> Figure:
    scale = measure.scales[0]
    points = [int(point) for point in scale.categories() or []]
    words = getattr(scale, "labels", {})
    parts = [f"{point} {words[point]}" if point in words else str(point) for point in points]
    shares, told = [], []
    for code in _codes(study, measure):
        given = measure.raw[measure.system == code]
        label = system_label(study, measure.book.systems[code])
        for point, part in zip(points, parts, strict=True):
            share = float(np.mean(given == point))
            shares.append(Share(label, part, share))
        told.append(f"{label}: {', '.join(percent(one.share) for one in shares[-len(points) :])}")
    return Figure(
        f"distribution_{measure.name}",
        f"Distribution of {measure.label}",
        stacked_shares(shares, parts=parts, is_ordered=True, value_title="share of judgments"),
        alt=f"Share of judgments at each point from {points[0]} to {points[-1]}. {'; '.join(told)}.",
    )


def _strip_figure(study: Study, measure: Measure) -> Figure:
    samples = {
        system_label(study, measure.book.systems[code]): measure.raw[measure.system == code]
        for code in _codes(study, measure)
    }
    is_log = measure.is_log
    if is_log:
        samples = {name: values[values > 0] for name, values in samples.items()}
    told = "; ".join(
        f"{name}: quartiles {', '.join(f'{q:g}' for q in np.quantile(values, [0.25, 0.5, 0.75]))}"
        for name, values in samples.items()
        if len(values)
    )
    return Figure(
        f"distribution_{measure.name}",
        f"Distribution of {measure.label}",
        strip(samples, value_title="rating" + (" (logarithmic axis)" if is_log else ""), is_log=is_log),
        alt=f"Single ratings of each system with quartiles. {told}.",
        caption="Points are single ratings (a selection where there are many), the bar spans the middle half, the mark "
        "is the median.",
    )


def _ends_sentence(measure: Measure) -> list[str]:
    """Ratings crowded at an end of the scale leave no room to show differences."""
    if measure.unit != "points":
        return []
    low, high = bounds(measure.scales[0])
    said = []
    for end, name in ((low, "lowest"), (high, "highest")):
        share = float(np.mean(measure.raw == end))
        if share > 0.3:
            said.append(
                f"{measure.label}: {percent(share)} of the ratings stand at the {name} end of the scale, where "
                "differences can no longer show."
            )
    return said


def disputed_section(study: Study, measures: Measures) -> Section:
    """The things rated with the widest spread of judgments between raters."""
    body: list[tuple[Cell, ...]] = []
    for measure in measures.criteria:
        body += _disputed(study, measure, max(3, N_DISPUTED // len(measures.criteria)))
    if not body:
        raise NotEnoughData(f"nothing was rated by {FEWEST_RATERS} raters", remedy="have items judged by more raters")
    is_log = measures.criteria[0].is_log
    spread = "Spread (factor)" if is_log else "Standard deviation"
    table = Table(
        "disputed",
        "What raters disagree about most",
        (
            Column("criterion", "Criterion"),
            Column("item", "Item"),
            Column("system", "System"),
            Column("text", "Text"),
            Column("raters", "Raters", "count"),
            Column("mean", "Geometric mean" if is_log else "Mean", "number", 1),
            Column("spread", spread, "number"),
            Column("range", "Range"),
        ),
        tuple(body),
        caption="Spread between raters after each rater's own level is taken out"
        + ("; a factor of 2 means: typically half or twice." if is_log else "."),
    )
    said = "Read these first: they show what the criterion leaves open, or items that were misunderstood."
    return Section("disputed", "Most disputed items", (said,), (table,))


def _disputed(study: Study, measure: Measure, most: int) -> list[tuple[Cell, ...]]:
    n = measure.n_targets
    centred = _without_level(measure)
    count = np.bincount(measure.target, minlength=n)
    mean = np.bincount(measure.target, weights=centred, minlength=n) / np.maximum(count, 1)
    square = np.bincount(measure.target, weights=(centred - mean[measure.target]) ** 2, minlength=n)
    spread = np.sqrt(square / np.maximum(count - 1, 1))
    spread[count < FEWEST_RATERS] = -1.0
    rows: list[tuple[Cell, ...]] = []
    for target in np.argsort(-spread, kind="stable")[:most].tolist():
        if spread[target] <= 0:
            continue
        inside = np.flatnonzero(measure.target == target)
        first = inside[0]
        item, system = measure.book.items[measure.item[first]], measure.book.systems[measure.system[first]]
        centre = float(measure.y[inside].mean())
        rows.append(
            (
                measure.label,
                item,
                system_label(study, system),
                _text(study, item, system),
                int(count[target]),
                float(np.exp(centre)) if measure.is_log else centre,
                float(np.exp(spread[target])) if measure.is_log else float(spread[target]),
                f"{measure.raw[inside].min():g} to {measure.raw[inside].max():g}",
            )
        )
    return rows


def _without_level(measure: Measure) -> np.ndarray:
    if measure.is_log:
        return scores(measure).y
    n = len(measure.book.raters)
    count = np.maximum(np.bincount(measure.rater, minlength=n), 1)
    return np.asarray(measure.y - (np.bincount(measure.rater, weights=measure.y, minlength=n) / count)[measure.rater])


def _text(study: Study, item_id: str, system: str) -> str:
    """What was rated, short enough for a table."""
    item = study.items_by_id.get(item_id)
    match item:
        case ResponsesItem():
            text = item.responses.get(system, "")
        case PairItem():
            side = next((side for side in (item.a, item.b) if side.system == system), item.a)
            text = side.turns[-1].text if side.turns else ""
        case DialogueItem():
            text = item.turns[-1].text if item.turns else ""
        case ChatItem():
            text = item.scenario
        case _:
            text = ""
    text = " ".join(text.split())
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1].rstrip() + "…"
