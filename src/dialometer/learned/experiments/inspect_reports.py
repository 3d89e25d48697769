"""The removal curve and the injected-noise experiment as reports: tables, figures and what they say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy import special

from dialometer._version import __version__
from dialometer.learned.data.measures import paired_difference
from dialometer.learned.experiments.noise import (
    DETECTORS,
    HIGHEST,
    LOWEST,
    OBSERVED,
    POSITIVE,
    RANDOM,
    RETRAINED,
    Detection,
    RemovalStep,
)
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Report, Section, Summary, Table
from dialometer.report.charts import Dot, LinePoint, dot_interval, lines
from dialometer.report.numbers import write_percent

SOURCE = "Liang, Zou and Yu, ACL 2020"
DETECTOR_WORDS = (
    "Shapley value: minus the value for telling pairs of unchanged dialogues apart. Distance: from the mean rating of the nearest "
    "dialogues. Loss: minus the logarithm of the chance that linear discriminants, fitted on the other folds, give to the "
    "observed rating. Combination: the mean of the three ranks."
)
_SHOWN_SHARES = (0.1, 0.2, 0.3, 0.5)


def mean_over(values: Iterable[float], over: str, label: str = "") -> Estimate:
    """Mean with its t interval over splits or repetitions; those without a value are left out."""
    known = np.array([value for value in values if not math.isnan(value)])
    n, method = len(known), f"mean over {over}"
    if n < 2:
        return Estimate(float(known[0]), 1, method, label=label) if n else unknown(method, "no value", label=label)
    error = float(known.std(ddof=1)) / math.sqrt(n)
    reach = float(special.stdtrit(n - 1, 0.975)) * error
    mean = float(known.mean())
    return Estimate(
        mean,
        n,
        method,
        mean - reach,
        mean + reach,
        interval_method=f"t over {over}",
        label=label,
        details={"standard_error": error},
    )


def curve_report(
    steps: Sequence[RemovalStep], *, data: str, command: str, pairs: str, facts: Mapping[str, str | int]
) -> Report:
    """What removing ratings does, for every K; ``pairs`` says in words on which pairs it was measured."""
    table: dict[tuple[str, int, float], list[float]] = {}
    for step in steps:
        table.setdefault((step.way, step.k, step.share), []).append(step.accuracy)
    ks = sorted({step.k for step in steps}, key=lambda k: (k == RETRAINED, k))
    shares = sorted({step.share for step in steps})
    shown = [share for share in shares if any(math.isclose(share, wanted) for wanted in _SHOWN_SHARES)]
    rows: list[tuple[Cell, ...]] = []
    for k in ks:
        whole_set = mean_over(table[LOWEST, k, shares[0]], "splits")
        for share in shown:
            if (LOWEST, k, share) in table:
                low, other = table[LOWEST, k, share], table[RANDOM, k, share]
                high = table[HIGHEST, k, share]
                means = (mean_over(low, "splits"), mean_over(other, "splits"), mean_over(high, "splits"))
                gap = paired_difference(low, other)
                rows.append((_predictor(k), share, whole_set, *means, gap if gap.is_known else ""))
    removal_table = Table(
        "removal",
        "Accuracy with a share of the ratings removed",
        (
            Column("k", "Predictor"),
            Column("share", "Removed", "percent", 0),
            Column("all", "Nothing removed", "percent_estimate", 1),
            Column("lowest", "Lowest value first", "percent_estimate", 1),
            Column("random", "At random", "percent_estimate", 1),
            Column("highest", "Highest value first", "percent_estimate", 1),
            Column("difference", "Lowest − random", "percent_estimate", 1),
        ),
        tuple(rows),
        caption=f"Share of {pairs} ordered right by the mean rating of the K nearest dialogues, or by a linear model trained "
        "anew. Intervals: t over splits, whose training parts overlap, so that they are somewhat too narrow.",
    )
    k = 50 if 50 in ks else max(ks)
    share = 0.1 if (LOWEST, k, 0.1) in table else shares[min(1, len(shares) - 1)]
    whole, cleaned, thinned = (
        mean_over(table[way, k, part], "splits").value
        for way, part in ((LOWEST, shares[0]), (LOWEST, share), (RANDOM, share))
    )
    answer = (
        f"Without the {write_percent(share)} of ratings that have the lowest value, {cleaned:.1%} of pairs are ordered right "
        f"(K = {k}); with all ratings {whole:.1%}, without as many at random {thinned:.1%}."
    )
    certainty = f"Values come from development dialogues, accuracy from test dialogues of other users ({pairs})."
    return Report(
        study=data,
        has_kinds=False,
        title="Removing ratings: lowest value first, at random, highest value first",
        summary=Summary(answer, certainty, figure=_curve_figure("removal_main", table, [k], shares, pairs)),
        sections=(
            Section(
                "removal",
                "Accuracy by share removed",
                (f"Values are exact KNN-Shapley values ({SOURCE}, theorem 1; the figure follows their figure 2).",),
                (_curve_figure("removal_curves", table, ks, shares, pairs), removal_table),
            ),
        ),
        methods=(),
        provenance={"command": command, "dialometer": __version__, **facts},
    )


def _predictor(k: int) -> str:
    return "linear model, retrained" if k == RETRAINED else f"K = {k}"


def _curve_figure(
    name: str,
    table: Mapping[tuple[str, int, float], Sequence[float]],
    ks: Sequence[int],
    shares: Sequence[float],
    pairs: str,
) -> Figure:
    points = []
    for k in ks:
        for way in (LOWEST, RANDOM, HIGHEST):
            for share in shares:
                if (way, k, share) in table:
                    estimate = mean_over(table[way, k, share], "splits")
                    facet = _predictor(k) if len(ks) > 1 else ""
                    points.append(LinePoint(100 * share, estimate.value, estimate.low, estimate.high, way, facet))
    return Figure(
        name,
        "Accuracy while ratings are removed" + ("" if len(ks) > 1 else f", {_predictor(ks[0])}"),
        lines(points, x_title="% of ratings removed", y_title="pairs ordered right", is_percent=True),
        alt=f"Share of {pairs} ordered right against the share of ratings removed, for {', '.join(map(_predictor, ks))}: lowest "
        "value first, at random and highest value first.",
        caption="Bands: 95% t intervals over splits.",
    )


def noise_report(
    detections: Sequence[Detection], *, data: str, command: str, share: float, facts: Mapping[str, str | int]
) -> Report:
    """How well each detector finds ratings that were changed on purpose."""
    kinds = list(dict.fromkeys(detection.kind for detection in detections))
    names = [name for name in DETECTORS if any(detection.detector == name for detection in detections)]
    rows: list[tuple[Cell, ...]] = []
    dots: list[Dot] = []
    for kind in kinds:
        for name in names:
            own = [detection for detection in detections if detection.kind == kind and detection.detector == name]
            overall = mean_over((detection.overall for detection in own), "repetitions", name)
            within = mean_over((detection.within for detection in own), "repetitions", name)
            rows.append((kind, name, overall, within))
            dots += [
                Dot(name, overall, "overall", f"{kind} noise"),
                Dot(name, within, "within one rating", f"{kind} noise"),
            ]
    table = Table(
        "noise",
        "Chance that a changed rating looks more suspicious than an unchanged one (AUC)",
        (
            Column("noise", "Noise"),
            Column("detector", "Detector"),
            Column("overall", "Overall", "estimate", 3),
            Column("within", "Within one observed rating", "estimate", 3),
        ),
        tuple(rows),
        caption=f"{write_percent(share)} of the ratings were changed. 0.5 is guessing. '{OBSERVED}' knows how often each rating was "
        f"changed and reads no dialogue; '{POSITIVE}' shows what the method finds with good features.",
    )
    figure = Figure(
        "noise_figure",
        "Detectors of changed ratings",
        dot_interval(dots, value_title="AUC", group_title="compared", reference=0.5),
        alt="AUC of each detector, overall and within one observed rating, by kind of noise.",
    )
    best = max(
        (row for row in rows if row[1] not in (OBSERVED, POSITIVE)),
        key=lambda row: row[3].value if isinstance(row[3], Estimate) else math.nan,
    )
    reached = best[3].value if isinstance(best[3], Estimate) else math.nan
    answer = f"Within one observed rating, the best detector is '{best[1]}' on {best[0]} noise, with an AUC of {reached:.2f}."
    return Report(
        study=data,
        has_kinds=False,
        title="Which detector finds ratings that were changed on purpose?",
        summary=Summary(
            answer,
            "The ratings are noisy before anything is changed, so that no detector can reach 1: a rating that was already wrong "
            "counts as unchanged.",
            figure=figure,
        ),
        sections=(Section("noise", "All detectors", (DETECTOR_WORDS,), (table,)),),
        methods=(),
        provenance={"command": command, "dialometer": __version__, **facts},
    )
