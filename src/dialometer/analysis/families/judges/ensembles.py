"""Several judges as one: the majority or mean of their answers, and Dawid and Skene's model with people as anchors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from dialometer.analysis.families.judges.compared import TIE, Compared, as_labels
from dialometer.errors import NotEnoughData
from dialometer.stats.agreement.label_models import code_labels, dawid_skene
from dialometer.stats.observations import Floats

N_PARTS = 5
"""Parts of the things of which each is predicted with people's labels on the others."""
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
    row, judge = np.nonzero(~np.isnan(own))
    names, label = list(compared.judges), own[row, judge].astype(int)
    labels = code_labels(
        [names[j] for j in judge], [str(i) for i in row], [str(k) for k in label],
        classes=[str(k) for k in range(len(compared.labels))],
    )  # fmt: skip
    part = np.random.default_rng(seed).permutation(len(own)) % N_PARTS
    found = np.full(len(own), np.nan)
    for number in range(N_PARTS):
        known = {str(i): str(int(majority[i])) for i in np.flatnonzero((part != number) & ~np.isnan(majority))}
        consensus = dawid_skene(labels, known=known, smoothing=0.01, max_iterations=200).consensus
        for i in np.flatnonzero(part == number):
            found[i] = float(consensus.get(str(i), "nan"))
    if compared.is_number:
        points = np.array([float(text) for text in compared.labels])
        return np.where(np.isnan(found), np.nan, points[np.nan_to_num(found).astype(int)])
    return found
