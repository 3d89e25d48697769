"""Splits of rated dialogues that keep together what belongs together.

A user's ratings resemble each other (a user's other ratings alone predict most pairs), and so do ratings given one after the
other. Dialogues of one user, or of one block of neighbours where users are unknown, are therefore all in one part of a split.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.data.rated import RatedDialogue, shown_item

BLOCK = 25
"""Neighbouring dialogues of one file that stay together where the users are unknown."""
PARTS = ("train", "development", "stopping", "test")
_FORM = 1


@dataclass(frozen=True, slots=True)
class DataSplit:
    """Ids of the dialogues of each part.

    ``development`` serves the pairs of Shapley values and every choice of settings, ``stopping`` the pairs of early stopping
    and calibration: two sets of dialogues, so that one choice is not made on what the other has been fitted to.
    """

    name: str
    train: tuple[str, ...]
    development: tuple[str, ...]
    stopping: tuple[str, ...]
    test: tuple[str, ...]


def groups_of(rated: Sequence[RatedDialogue], block: int = BLOCK) -> list[str]:
    """The group of each dialogue: its item where several raters judged the same one, else its user, else its block."""
    shown = Counter(shown_item(row) for row in rated)
    place: Counter[str] = Counter()
    groups = []
    for row in rated:
        if shown[shown_item(row)] > 1:
            groups.append(f"item {row.source} {row.dialogue.metadata['item']}")
        elif row.user is not None:
            groups.append(f"user {row.user}")
        else:
            groups.append(f"block {row.source} {place[row.source] // block}")
            place[row.source] += 1
    return groups


def grouped_splits(
    rated: Sequence[RatedDialogue],
    n_splits: int = 10,
    *,
    n_folds: int = 5,
    development_share: float = 0.08,
    stopping_share: float = 0.08,
    seed: int = 0,
) -> list[DataSplit]:
    """Splits by group, stratified by file: each fold of groups is the test part once, then the groups are dealt anew.

    Folds rather than repeated draws, because test parts that overlap make the standard error over splits too small. The
    shares are of all dialogues.
    """
    groups = groups_of(rated)
    if len(set(groups)) < n_folds + 2:
        raise NotEnoughData(
            f"{len(set(groups))} groups of dialogues are too few for {n_folds} folds",
            remedy=f"give dialogues of more users, more than {BLOCK * (n_folds + 2)} dialogues without users, or fewer folds",
        )
    rng = np.random.default_rng(seed)
    splits: list[DataSplit] = []
    while len(splits) < n_splits:
        fold_of = _dealt(rated, groups, [1.0 / n_folds] * n_folds, rng)
        for fold in range(n_folds):
            if len(splits) == n_splits:
                break
            rest = [number for number, group in enumerate(groups) if fold_of[group] != fold]
            shares = [1.0 - (development_share + stopping_share) * n_folds / (n_folds - 1)]
            shares += [share * n_folds / (n_folds - 1) for share in (development_share, stopping_share)]
            part_of = _dealt([rated[n] for n in rest], [groups[n] for n in rest], shares, rng)
            parts: dict[int, list[str]] = defaultdict(list)
            for row, group in zip(rated, groups, strict=True):
                parts[3 if fold_of[group] == fold else part_of[group]].append(row.id)
            splits.append(DataSplit(f"{len(splits) + 1:02d}", *(tuple(parts[n]) for n in range(4))))
    return splits


def hold_out(
    rated: Sequence[RatedDialogue], test_ids: Sequence[str], *, name: str, share: float = 0.1, seed: int = 0
) -> DataSplit:
    """A split whose test part is given (one bot, one day); users or blocks that reach into it are left out of training."""
    wanted = set(test_ids)
    groups = groups_of(rated)
    touched = {
        group
        for row, group in zip(rated, groups, strict=True)
        if row.id in wanted and group.startswith(("user", "item"))
    }
    rest = [n for n, row in enumerate(rated) if row.id not in wanted and groups[n] not in touched]
    if not rest or not wanted:
        raise NotEnoughData(f"holding out {name} leaves nothing to train on or nothing to test", remedy="hold out less")
    part_of = _dealt(
        [rated[n] for n in rest],
        [groups[n] for n in rest],
        [1 - 2 * share, share, share],
        np.random.default_rng(seed),
    )
    parts: dict[int, list[str]] = defaultdict(list)
    for n in rest:
        parts[part_of[groups[n]]].append(rated[n].id)
    test = tuple(row.id for row in rated if row.id in wanted)
    return DataSplit(name, tuple(parts[0]), tuple(parts[1]), tuple(parts[2]), test)


def write_splits(path: Path | str, splits: Sequence[DataSplit], rated: Sequence[RatedDialogue]) -> None:
    """Keeps the splits beside the results, with a fingerprint of the dialogues they are splits of."""
    content = {"form": _FORM, "dialogues": _fingerprint(rated), "splits": [asdict(split) for split in splits]}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def read_splits(path: Path | str, rated: Sequence[RatedDialogue]) -> list[DataSplit]:
    """Splits written before; refused where they are not splits of these dialogues."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        splits = [DataSplit(record["name"], *(tuple(record[part]) for part in PARTS)) for record in content["splits"]]
        is_ours = content["form"] == _FORM
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DialometerError(
            f"cannot be read as splits: {error}", where=str(path), remedy="have them written anew"
        ) from error
    if not is_ours or content["dialogues"] != _fingerprint(rated):
        raise DialometerError(
            "these splits were made for other dialogues",
            where=str(path),
            remedy="delete the file to have new ones made, or give the dialogues they belong to",
        )
    return splits


def rows_of(rated: Sequence[RatedDialogue], ids: Sequence[str]) -> list[RatedDialogue]:
    """The rated dialogues of one part of a split, in the order of ``rated``."""
    wanted = set(ids)
    return [row for row in rated if row.id in wanted]


def _dealt(
    rated: Sequence[RatedDialogue], groups: Sequence[str], shares: Sequence[float], rng: np.random.Generator
) -> Mapping[str, int]:
    """A part for each group so that, file by file, the parts hold about their shares of the dialogues."""
    sizes = Counter(groups)
    files: dict[str, Counter[str]] = defaultdict(Counter)
    for row, group in zip(rated, groups, strict=True):
        files[group][row.source] += 1
    strata: dict[str, list[str]] = defaultdict(list)
    for group in sizes:
        strata[files[group].most_common(1)[0][0]].append(group)
    edges = np.concatenate([[0.0], np.cumsum(shares)])
    edges[-1] = max(edges[-1], 1.0)
    part_of: dict[str, int] = {}
    start = rng.random()
    for stratum in sorted(strata):
        members = [strata[stratum][n] for n in rng.permutation(len(strata[stratum]))]
        ends = np.cumsum([0, *(sizes[group] for group in members)])
        total = float(ends[-1])
        for group, (a, b) in zip(members, pairwise(ends), strict=True):
            # The middle of the group decides; the start differs from file to file, so that no part always gets the rest.
            place = ((a + b) / 2 / total + start) % 1.0
            part_of[group] = int(np.clip(np.searchsorted(edges, place, side="right") - 1, 0, len(shares) - 1))
        start = (start + rng.random()) % 1.0
    return part_of


def _fingerprint(rated: Sequence[RatedDialogue]) -> str:
    lines = "\n".join(f"{row.id}\t{row.source}\t{row.user}" for row in rated)
    return hashlib.sha256(lines.encode()).hexdigest()


# Which dialogues seem to be held with the same bot, where nobody wrote the bot's name down.
#
# Bots differ in how they write: spaces before commas, emoji, capitals, stock phrases. Dialogues are clustered by the letter groups of
# the agent's turns. The clusters stand in for bots when one is held out; they may split a bot, or put two alike ones together.


N_STYLES = 6
_N_COMPONENTS = 30
MIN_HELD_OUT = 30


def bot_styles(rated: Sequence[RatedDialogue], n_styles: int = N_STYLES, seed: int = 0) -> list[str]:
    """The name of the bot of each dialogue where it is known, else of the cluster of its style."""
    if all(row.bot is not None for row in rated):
        return [str(row.bot) for row in rated]
    from sklearn.cluster import KMeans  # noqa: PLC0415 - an extra
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.preprocessing import normalize  # noqa: PLC0415

    texts = ["\n".join(turn.text for turn in row.dialogue.said_by("agent")) for row in rated]
    letters = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=min(5, len(texts)), sublinear_tf=True)
    matrix = letters.fit_transform(texts)
    n_components = min(_N_COMPONENTS, min(matrix.shape) - 1)
    reduced = normalize(TruncatedSVD(n_components, random_state=seed).fit_transform(matrix))
    styles = KMeans(min(n_styles, len(texts)), n_init=10, random_state=seed).fit_predict(reduced)
    sizes = np.bincount(styles)
    # The largest is style 1, so that names do not depend on where the clustering began.
    order = {int(style): place + 1 for place, style in enumerate(np.argsort(-sizes, kind="stable"))}
    return [f"style {order[int(style)]}" for style in styles]


def held_out_bots(rated: Sequence[RatedDialogue], seed: int = 0) -> list[DataSplit]:
    """One split for each bot (or style) with enough dialogues: trained on all the others, tested on it.

    A bot whose users have talked with all the others too cannot be held out: nobody would be left to train on.
    """
    return _held_out(rated, bot_styles(rated, seed=seed), seed)


def held_out_files(rated: Sequence[RatedDialogue], seed: int = 0) -> list[DataSplit]:
    """One split for each file (a day of collection in ConvAI2): trained on all the others, tested on it."""
    return _held_out(rated, [row.source for row in rated], seed)


def _held_out(rated: Sequence[RatedDialogue], names: Sequence[str], seed: int) -> list[DataSplit]:
    splits = []
    for name in sorted(set(names)):
        ids = [row.id for row, own in zip(rated, names, strict=True) if own == name]
        if not MIN_HELD_OUT <= len(ids) <= len(rated) - MIN_HELD_OUT:
            continue
        try:
            split = hold_out(rated, ids, name=name, seed=seed)
        except NotEnoughData:
            continue
        if len(split.train) >= MIN_HELD_OUT:
            splits.append(split)
    return splits
