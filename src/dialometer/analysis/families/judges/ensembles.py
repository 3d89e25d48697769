"""Several judges as one: the majority or mean of their answers, and Dawid and Skene's model with people as anchors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from dialometer.analysis.families.judges.compared import TIE, Compared, as_labels
from dialometer.analysis.shared.judge_ensembles import weighed_labels
from dialometer.errors import NotEnoughData
from dialometer.stats.observations import Floats

MEAN, MAJORITY, DAWID_SKENE = "All: mean", "All: majority", "All: Dawid-Skene"


def with_ensembles(compared: Compared, seed: int) -> Compared:
    """The same with ensembles among the judges, where there are at least two."""
    if len(compared.judges) < 2:
        return compared
    own = np.stack(list(compared.judges.values()), axis=1)
    ensembles: dict[str, Floats] = {}
    if compared.is_number:
        n = (~np.isnan(own)).sum(axis=1)
        ensembles[MEAN] = np.divide(np.nansum(own, axis=1), n, out=np.full(len(n), np.nan), where=n > 0)
    else:
        ensembles[MAJORITY] = _majority(compared, own)
    if compared.labels:
        with suppress(NotEnoughData):
            ensembles[DAWID_SKENE] = _weighed(compared, as_labels(compared, own), seed)
    return replace(compared, judges={**compared.judges, **ensembles})


def _majority(compared: Compared, own: Floats) -> Floats:
    """The label of most judges; a tie, where there is such a label, or the first of the most frequent."""
    counts = np.stack([(own == place).sum(axis=1) for place in range(len(compared.labels))], axis=1)
    most = counts.max(axis=1)
    split = compared.labels.index(TIE) if TIE in compared.labels else None
    is_split = (counts == most[:, None]).sum(axis=1) > 1
    label = counts.argmax(axis=1).astype(float)
    label = np.where(is_split, split, label) if split is not None else label
    return np.where(most > 0, label, np.nan)


def _weighed(compared: Compared, own: Floats, seed: int) -> Floats:
    """The likeliest label of every thing. People's labels anchor the judges' tables, but never those of the thing itself."""
    majority = replace(compared, people=as_labels(compared, compared.people)).majority
    likely = weighed_labels(own, majority, len(compared.labels), items=compared.things["item"].to_list(), seed=seed)
    is_known = ~np.isnan(likely[:, 0])
    label = np.nan_to_num(likely).argmax(axis=1)
    values = (
        np.array([float(text) for text in compared.labels]) if compared.is_number else np.arange(len(compared.labels))
    )
    return np.where(is_known, values[label], np.nan)
