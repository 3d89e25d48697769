"""Measures of responses, each with an interval from resampled dialogues (turns of one dialogue are not independent).

Distinct-n (Li et al. 2016) falls when a sample is resampled, since drawing a response twice adds no new words; its replicates
are therefore moved so that their mean is the value that was measured. The same holds for the share of different responses and
for the entropy of word pairs.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dialometer.errors import DialometerError
from dialometer.generators.batches import by_length, examples_of, made_ahead
from dialometer.generators.bot import Bot, same_vocabulary
from dialometer.generators.corpus import Corpus, CorpusSplit
from dialometer.generators.decoding import Decoding
from dialometer.generators.filters import words_of
from dialometer.generators.training import losses
from dialometer.generators.vocabulary import PAD
from dialometer.model.estimate import Estimate
from dialometer.stats.bootstrap.bootstrap import bootstrap, draw_counts, estimate_from, weighted_sums

# What a bot does on a split: how probable it holds what people said, and what it says itself. The measures look at this alone.


Report = Callable[[str, int, int], None]
_BATCH = 256


@dataclass(frozen=True)
class Sample:
    """One bot on one split. ``log_loss`` and ``n_tokens`` are sums per dialogue; texts stand beside the dialogue they are of."""

    name: str
    about: dict[str, Any]
    decoding: dict[str, Any]
    log_loss: list[float]
    n_tokens: list[int]
    responses: list[str]
    references: list[str]
    dialogues: list[int]

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Sample:
        """What :meth:`write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def _silent(what: str, n_done: int, n_total: int) -> None:
    """Tells nobody."""


def take_sample(
    bot: Bot,
    corpus: Corpus,
    decoding: Decoding,
    *,
    split: str = "test",
    n_responses: int = 1000,
    seed: int = 0,
    report: Report = _silent,
) -> Sample:
    """Scores every example of the split and answers ``n_responses`` of them, drawn by the seed alone (the same for all bots)."""
    same_vocabulary(bot.checkpoint, corpus.vocabulary, str(corpus.folder))
    part = corpus.split(split)
    log_loss, n_tokens = log_losses(bot, part, report)
    rows = asked_about(part, n_responses, seed)
    contexts = [part.context(int(row), bot.model.shape.n_turns) for row in rows]
    responses = bot.respond_to_tokens(
        contexts,
        decoding,
        [int(row) + seed for row in rows],
        report=lambda n_done: report("answering", n_done, len(rows)),
    )
    checkpoint = bot.checkpoint
    about = {
        "model": checkpoint.name,
        "label": checkpoint.model.label,
        "n_parameters": checkpoint.model.n_parameters,
        "sha256": checkpoint.sha256,
        "record": dict(checkpoint.record),
    }
    return Sample(
        name=checkpoint.name,
        about=about,
        decoding=decoding.as_json(),
        log_loss=log_loss,
        n_tokens=n_tokens,
        responses=[spoken.text for spoken in responses],
        references=[bot.vocabulary.decode(part.turn(int(row)).tolist()) for row in rows],
        dialogues=[int(part.dialogues[row]) for row in rows],
    )


def asked_about(split: CorpusSplit, n_responses: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """The examples that are answered, drawn by the seed alone."""
    n_asked = min(n_responses, len(split.examples))
    return np.sort(np.random.default_rng([seed, 11]).choice(split.examples, n_asked, replace=False))


@torch.inference_mode()
def log_losses(
    bot: Bot,
    split: CorpusSplit,
    report: Report = _silent,
    *,
    rows: npt.NDArray[np.int64] | None = None,
    n_turns: int | None = None,
) -> tuple[list[float], list[int]]:
    """Negative log likelihood and tokens of the responses of people, summed over each dialogue.

    ``rows`` are the examples to look at, all by default; ``n_turns`` shows fewer turns of the context than the bot reads.
    """
    n_dialogues = int(split.dialogues[-1]) + 1
    summed, counted = np.zeros(n_dialogues), np.zeros(n_dialogues, dtype=np.int64)
    window = bot.model.shape.window
    window = window if n_turns is None else replace(window, n_turns=min(n_turns, window.n_turns))
    parts = list(by_length(split, split.examples if rows is None else rows, _BATCH, window.n_turns))
    for done, batch in enumerate(made_ahead(lambda part: examples_of(split, part, window), parts)):
        moved = batch.to(bot.device)
        each = losses(bot.model(moved), moved.targets, reduction="none").view(batch.targets.shape)  # (B, T)
        of_dialogue = np.asarray(split.dialogues[parts[done]])
        np.add.at(summed, of_dialogue, each.sum(dim=1).double().cpu().numpy())
        np.add.at(counted, of_dialogue, (batch.targets != PAD).sum(dim=1).numpy())
        report("scoring", done + 1, len(parts))
    is_there = counted > 0
    return summed[is_there].tolist(), counted[is_there].tolist()


Floats = npt.NDArray[np.float64]
OVERLAP_WARNING = (
    "BLEU and ROUGE compare with one response of a person; for dialogue they agree poorly with people's judgments "
    "(Liu et al. 2016). Use them to notice accidents, not to rank systems."
)
_N_RESAMPLES = 1000
_SENTENCE_END = re.compile(r"[.!?]+")

# Replies that fit almost every turn and say almost nothing.
DULL = frozenset(
    phrase.strip()
    for phrase in """
    i agree|i do too|i do not know|i don't know|i dont know|i know|i think so|i think so too|i'm not sure|im not sure
    i am not sure|i like it|i like that|i liked it|i like it too|i love it|i loved it|me too|same here|yes|yeah|yep|yea|no|nope|ok
    okay|oh|sure|right|exactly|definitely|absolutely|of course|that's true|thats true|that is true|true|very true
    that's right|that's a good one|that is a good one|that's a good point|that's good|that's great|that's cool|that's funny
    good point|i see|i guess|i guess so|maybe|not really|me neither|i hope so|i don't think so|i do|i did|it is|it was
    yes it is|yes it was|yes i do|yes i did|yes it does|no i haven't|no i don't|so do i|you're right|you are right|cool|nice|great
    awesome|wow|really|thanks|thank you|what do you mean|what do you think|why|why not|how so|it was great|it was good
    that was great|that was good|i like them|i like that one|i like that one too|i love that one|i am|i'm sure|for sure
    """.replace("\n", "|").split("|")
    if phrase.strip()
)


def measure(sample: Sample, *, seed: int = 0, n_resamples: int = _N_RESAMPLES) -> dict[str, Estimate]:
    """Every measure of one bot's sample, by name."""
    groups = np.unique(np.asarray(sample.dialogues), return_inverse=True)[1]
    estimates = {"perplexity": perplexity(sample, seed=seed, n_resamples=n_resamples)}
    words = [words_of(text) for text in sample.responses]
    common = {"seed": seed, "n_resamples": n_resamples}
    for n in (1, 2):
        estimates[f"distinct_{n}"] = _distinct(words, groups, n, **common)
    estimates["unique_responses"] = _unique(words, groups, **common)
    estimates["bigram_entropy"] = _entropy(words, groups, **common)
    estimates["dull_share"] = _mean(
        [float(is_dull(text)) for text in sample.responses], groups, "share of dull responses", **common
    )
    estimates["length_words"] = _mean([float(len(row)) for row in words], groups, "mean words per response", **common)
    estimates |= overlap(sample, groups, **common)
    return estimates


def perplexity(sample: Sample, *, seed: int = 0, n_resamples: int = _N_RESAMPLES) -> Estimate:
    """``exp`` of the mean negative log likelihood per token of the responses of people, end marks counted."""
    return _exp_per_token(sample.log_loss, sample.n_tokens, "perplexity per token", seed, n_resamples)


def perplexity_ratio(sample: Sample, other: Sample, *, seed: int = 0, n_resamples: int = _N_RESAMPLES) -> Estimate:
    """Perplexity of one bot over that of another, resampled together: both were asked about the same dialogues.

    Much of what makes perplexity uncertain, how predictable the drawn dialogues are, is common to both and drops out.
    """
    if sample.n_tokens != other.n_tokens:
        raise DialometerError(
            f"'{sample.name}' and '{other.name}' were not measured on the same text",
            remedy="measure both on the same corpus and split",
        )
    apart = np.subtract(sample.log_loss, other.log_loss)
    return _exp_per_token(apart, sample.n_tokens, f"perplexity over that of {other.name}", seed, n_resamples)


def _exp_per_token(
    losses: npt.ArrayLike, n_tokens: npt.ArrayLike, method: str, seed: int, n_resamples: int
) -> Estimate:
    """``exp`` of the losses of all drawn dialogues over their tokens."""
    columns = np.column_stack([losses, n_tokens])

    def statistic(counts: Floats) -> Floats:
        sums = weighted_sums(counts, columns)
        return np.asarray(np.exp(sums[:, 0] / sums[:, 1]))

    return bootstrap(statistic, len(columns), method=method, resampled="dialogues", seed=seed, n_resamples=n_resamples)


def is_dull(text: str) -> bool:
    """Whether every sentence of a response is one of the stock phrases."""
    sentences = [" ".join(words_of(part)) for part in _SENTENCE_END.split(text.lower())]
    kept = [sentence for sentence in sentences if sentence]
    return not kept or all(_stock(sentence) for sentence in kept)


@cache
def _stock(sentence: str) -> bool:
    for opening in ("yeah ", "yes ", "oh ", "well ", "no ", "ok ", "yea ", "yep "):
        if sentence.startswith(opening) and sentence.removeprefix(opening) in DULL:
            return True
    return sentence in DULL


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Runs of ``n`` words."""
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def distinct(rows: Sequence[Sequence[str]], n: int) -> float:
    """Different runs of ``n`` words over all of them; ``nan`` where there is none."""
    counted = Counter(gram for row in rows for gram in ngrams(row, n))
    return len(counted) / counted.total() if counted else math.nan


def _distinct(
    rows: Sequence[Sequence[str]], groups: npt.NDArray[np.int64], n: int, *, seed: int, n_resamples: int
) -> Estimate:
    grams = [ngrams(row, n) for row in rows]

    return _over_types(
        grams, groups, _share_of_types, f"distinct-{n} (Li et al. 2016)", seed=seed, n_resamples=n_resamples
    )


def _unique(rows: Sequence[Sequence[str]], groups: npt.NDArray[np.int64], *, seed: int, n_resamples: int) -> Estimate:
    whole = [[tuple(row)] for row in rows]

    return _over_types(
        whole, groups, _share_of_types, "share of different responses", seed=seed, n_resamples=n_resamples
    )


def _share_of_types(counts: Floats) -> float:
    return float((counts > 0).sum() / counts.sum()) if counts.sum() else math.nan


def _entropy(rows: Sequence[Sequence[str]], groups: npt.NDArray[np.int64], *, seed: int, n_resamples: int) -> Estimate:
    grams = [ngrams(row, 2) for row in rows]

    def of(counts: Floats) -> float:
        shares = counts[counts > 0] / counts.sum() if counts.sum() else np.empty(0)
        return float((shares * np.log2(1 / shares)).sum()) if len(shares) else math.nan

    return _over_types(
        grams, groups, of, "entropy of word pairs in bits", seed=seed, n_resamples=n_resamples, is_share=False
    )


def _over_types(
    rows: Sequence[Sequence[tuple[str, ...]]],
    groups: npt.NDArray[np.int64],
    statistic: Callable[[Floats], float],
    method: str,
    *,
    seed: int,
    n_resamples: int,
    is_share: bool = True,
) -> Estimate:
    """A statistic of how often each type occurs, resampled over dialogues by their sparse counts of types."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415

    number: dict[tuple[str, ...], int] = {}
    columns = [number.setdefault(gram, len(number)) for row in rows for gram in row]
    of_group = np.repeat(groups, [len(row) for row in rows])
    n_groups = int(groups.max()) + 1 if len(groups) else 0
    table = csr_matrix((np.ones(len(columns)), (of_group, columns)), shape=(n_groups, max(1, len(number))))
    value = statistic(np.asarray(table.sum(axis=0)).ravel())
    counts = draw_counts(np.random.default_rng(seed), n_groups, n_resamples)
    replicates = np.array([statistic(np.asarray(row @ table).ravel()) for row in counts])
    centred = replicates - (math.nan if math.isnan(value) else np.nanmean(replicates)) + value
    if is_share:
        centred = np.clip(centred, 0.0, 1.0)
    note = "replicates moved to the measured value, since resampling loses types"
    return estimate_from(value, centred, n=len(rows), method=method, resampled="dialogues", seed=seed, notes=[note])


def _mean(
    values: Sequence[float], groups: npt.NDArray[np.int64], method: str, *, seed: int, n_resamples: int
) -> Estimate:
    columns = np.column_stack([np.bincount(groups, weights=values), np.bincount(groups)]).astype(np.float64)

    def statistic(counts: Floats) -> Floats:
        sums = weighted_sums(counts, columns)
        return np.asarray(sums[:, 0] / sums[:, 1])

    return bootstrap(statistic, len(columns), method=method, resampled="dialogues", seed=seed, n_resamples=n_resamples)


def overlap(
    sample: Sample, groups: npt.NDArray[np.int64], *, seed: int = 0, n_resamples: int = _N_RESAMPLES
) -> dict[str, Estimate]:
    """BLEU (sacrebleu, corpus level) and ROUGE-L (rouge-score, mean F1); both with their warning."""
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # noqa: PLC0415
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415

    bleu = BLEU(effective_order=False)
    single = BLEU(effective_order=True)
    pairs = list(zip(sample.responses, sample.references, strict=True))
    parts = [single.sentence_score(response, [meant]) for response, meant in pairs]
    rows = np.array([[*part.counts, *part.totals, part.sys_len, part.ref_len] for part in parts], dtype=np.float64)
    columns = np.stack([np.bincount(groups, weights=column) for column in rows.T], axis=1).astype(np.float64)

    def statistic(counts: Floats) -> Floats:
        sums = weighted_sums(counts, columns)
        return np.array([_bleu(bleu, row) for row in sums])

    scorer = RougeScorer(["rougeL"])
    rouge = [float(scorer.score(meant, response)["rougeL"].fmeasure) for response, meant in pairs]
    of_bleu = bootstrap(
        statistic, len(columns), method="BLEU by sacrebleu", resampled="dialogues", seed=seed, n_resamples=n_resamples
    )
    of_rouge = _mean(rouge, groups, "ROUGE-L F1 by rouge-score", seed=seed, n_resamples=n_resamples)
    return {"bleu": of_bleu.with_note(OVERLAP_WARNING), "rouge_l": of_rouge.with_note(OVERLAP_WARNING)}


def _bleu(bleu: object, sums: Floats) -> float:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415

    assert isinstance(bleu, BLEU)
    counts = [round(float(value)) for value in sums]
    score = BLEU.compute_bleu(
        counts[:4], counts[4:8], counts[8], counts[9], smooth_method=bleu.smooth_method, smooth_value=bleu.smooth_value
    )
    return float(score.score)
