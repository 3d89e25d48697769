"""Measures of responses beside counts by hand, sacrebleu and rouge-score themselves, and resamples done one by one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.generators.filters import words_of
from dialometer.generators.measures import OVERLAP_WARNING, Sample, distinct, is_dull, measure, ngrams, perplexity_ratio
from dialometer.stats.bootstrap.bootstrap import NO_SPREAD


def sample_of(responses, references, dialogues, log_loss=(2.0, 3.0, 4.0), n_tokens=(4, 5, 6)):
    return Sample("x", {}, {}, list(log_loss), list(n_tokens), list(responses), list(references), list(dialogues))


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(4)
    words = ["we", "saw", "the", "film", "twice", "and", "liked", "every", "scene", "of", "it"]
    texts = [" ".join(rng.choice(words, rng.integers(4, 12))) + "." for _ in range(60)]
    others = [" ".join(rng.choice(words, rng.integers(4, 12))) + "." for _ in range(60)]
    texts[10] = others[10]
    return sample_of(texts, others, np.repeat(np.arange(20), 3), rng.gamma(9, 4, 20), rng.integers(8, 30, 20))


def test_distinct_counts_different_runs_over_all_runs():
    rows = [["a", "b", "a"], ["a", "b"], []]
    assert distinct(rows, 1) == pytest.approx(2 / 5)
    assert distinct(rows, 2) == pytest.approx(2 / 3)
    assert math.isnan(distinct([["a"]], 2))
    assert ngrams(["a", "b", "c"], 2) == [("a", "b"), ("b", "c")]


def test_values_are_those_of_plain_counting(sample):
    found = measure(sample, n_resamples=200)
    rows = [words_of(text) for text in sample.responses]
    assert found["perplexity"].value == pytest.approx(math.exp(sum(sample.log_loss) / sum(sample.n_tokens)))
    assert found["distinct_1"].value == pytest.approx(distinct(rows, 1))
    assert found["distinct_2"].value == pytest.approx(distinct(rows, 2))
    assert found["unique_responses"].value == pytest.approx(len(set(map(tuple, rows))) / 60)
    assert found["length_words"].value == pytest.approx(np.mean([len(row) for row in rows]))
    counts = np.unique([" ".join(pair) for row in rows for pair in ngrams(row, 2)], return_counts=True)[1]
    shares = counts / counts.sum()
    assert found["bigram_entropy"].value == pytest.approx(-(shares * np.log2(shares)).sum())
    assert found.pop("dull_share").notes == (NO_SPREAD,)  # no response is dull, in any resample
    for estimate in found.values():
        assert estimate.low <= estimate.value <= estimate.high
        assert "dialogues" in estimate.interval_method


def test_a_single_pair_of_words_has_the_entropy_zero_without_a_sign():
    found = measure(sample_of(["oh well"] * 3, ["so", "it", "is"], [0, 1, 2]), n_resamples=100)
    assert f"{found['bigram_entropy'].value:g}" == "0"


def test_overlap_is_that_of_sacrebleu_and_rouge_score(sample):
    """``sacrebleu.corpus_bleu(responses, [references])`` and the mean of ``RougeScorer(["rougeL"]).score``."""
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    found = measure(sample, n_resamples=100)
    assert found["bleu"].value == pytest.approx(sacrebleu.corpus_bleu(sample.responses, [sample.references]).score)
    scorer = RougeScorer(["rougeL"])
    pairs = zip(sample.responses, sample.references, strict=True)
    expected = np.mean([scorer.score(meant, said)["rougeL"].fmeasure for said, meant in pairs])
    assert found["rouge_l"].value == pytest.approx(expected)
    assert OVERLAP_WARNING in found["bleu"].notes
    assert OVERLAP_WARNING in found["rouge_l"].notes


def test_intervals_come_from_whole_dialogues(sample):
    """Distinct-2 of resampled dialogues, drawn and counted one by one with the same seed."""
    found = measure(sample, seed=3, n_resamples=300)["distinct_2"]
    rng = np.random.default_rng(3)
    rows = [words_of(text) for text in sample.responses]
    replicates = []
    for drawn in rng.integers(0, 20, size=(300, 20)):
        chosen = [rows[3 * d + k] for d in drawn for k in range(3)]
        replicates.append(distinct(chosen, 2))
    moved = np.array(replicates) - np.mean(replicates) + found.value
    low, high = np.quantile(moved, [0.025, 0.975])
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    assert found.n_resamples == 300


def test_perplexities_are_compared_dialogue_by_dialogue(sample):
    """The ratio beside two plain perplexities; its interval from dialogues drawn one by one with the same seed."""
    rng = np.random.default_rng(8)
    other = replace(
        sample,
        name="y",
        log_loss=[loss * 1.05 + extra for loss, extra in zip(sample.log_loss, rng.normal(0, 0.1, 20), strict=True)],
    )
    found = perplexity_ratio(sample, other, seed=5, n_resamples=400)
    alone = [measure(s, n_resamples=100)["perplexity"] for s in (sample, other)]
    assert found.value == pytest.approx(alone[0].value / alone[1].value)
    ours, theirs, n = (np.asarray(v) for v in (sample.log_loss, other.log_loss, sample.n_tokens))
    drawn = np.random.default_rng(5).integers(0, 20, size=(400, 20))
    ratios = [math.exp(ours[d].sum() / n[d].sum()) / math.exp(theirs[d].sum() / n[d].sum()) for d in drawn]
    assert [found.low, found.high] == pytest.approx(np.quantile(ratios, [0.025, 0.975]))
    assert found.high / found.low < alone[0].high / alone[0].low  # what both have in common drops out
    with pytest.raises(DialometerError, match="not measured on the same text"):
        perplexity_ratio(sample, replace(other, n_tokens=other.n_tokens[::-1]))


def test_responses_of_one_word_have_no_word_pairs():
    found = measure(sample_of(["no", "yes", "no"], ["a b", "c d", "e f"], [0, 1, 2]), n_resamples=100)
    assert math.isnan(found["distinct_2"].value)
    assert found["distinct_1"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize("text", ["I don't know.", "Yes.", "Yeah, I agree!", "I agree. Me too.", "Oh, really?", "..."])
def test_dull_responses_are_noticed(text):
    assert is_dull(text)


@pytest.mark.parametrize("text", ["I agree with the referee.", "The guitar solo was too long.", "Yes, in Atlanta."])
def test_others_are_not_dull(text):
    assert not is_dull(text)


def test_a_single_dialogue_has_no_interval():
    found = measure(sample_of(["a b c"], ["a b d"], [0], [2.0], [3]), n_resamples=100)
    assert math.isnan(found["perplexity"].value)
    assert "at least 2" in found["perplexity"].notes[0]
