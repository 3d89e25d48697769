"""From a file in the authors' layout to the report: the numbers are those of a program written after theirs."""

import csv

import numpy as np
import pytest
from scipy.stats import spearmanr

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.design.load import load_study
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store

MODELS = ("model1", "model4")
GOOD_FROM = 3.5


def results(rng):
    """Snippets with six answers each; the first is gold. Three of twelve workers rate each, the last two of them carelessly."""
    rows = []
    for snippet in range(25):
        quality = np.array([4.8, 4.0, 3.2, 2.4, 1.8, 1.2])
        scores = {model: np.round(quality + rng.normal(0, 1.2, 6) + 3, 3) for model in MODELS}
        for answer in range(6):
            workers = rng.choice(12, 3, replace=False)
            careful = np.clip(np.round(quality[answer] + rng.normal(0, 0.6, 3)), 4 if answer == 0 else 1, 5)
            ratings = np.where(workers < 10, careful, rng.integers(1, 6, 3)).astype(int)
            row = {
                "snippet_id": snippet,
                "last_turn": f"Question {snippet}?",
                "predicted_answer": f"Answer {snippet}-{answer}.",
                "worker_ids": [f"w{worker}" for worker in workers],
                "answers": ratings.tolist(),
                "isGold": int(answer == 0),
            }
            rows.append(row | {f"{model}Score": scores[model][answer] if answer != 5 else 0 for model in MODELS})
    return rows


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The rows, and the report's tables on them."""
    rows = results(np.random.default_rng(5))
    folder = tmp_path_factory.mktemp("authors")
    with (folder / "results.txt").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    done = import_files(folder / "in", [folder / "results.txt"], folder / "in.db", at_ms=1, with_rules=True)
    study = load_study(folder / "in")
    with Store.open(folder / "in.db") as store:
        report = analyse(study, load_data(study, store), n_resamples=100)
    assert not any("not finished" in warning for warning in report.summary.warnings), "excluded raters are not to come"
    tables = {part.name: part for section in report.sections for part in section.parts}
    return rows, done, tables


def trusted(rows):
    """Mean rating of each row by workers who never gave a gold answer 3 or less."""
    blacklist = {
        worker
        for row in rows
        if row["isGold"]
        for worker, rating in zip(row["worker_ids"], row["answers"], strict=True)
        if rating <= 3
    }
    means = []
    for row in rows:
        kept = [r for w, r in zip(row["worker_ids"], row["answers"], strict=True) if w not in blacklist]
        means.append(np.mean(kept) if kept else np.nan)
    return blacklist, np.array(means)


def values(table, column):
    place = [one.name for one in table.columns].index(column)
    return {row[0]: row[place] for row in table.rows}


def test_the_blacklist_is_the_gold_rule(both):
    rows, done, _ = both
    blacklist, _ = trusted(rows)
    assert done.rules.n_excluded == len(blacklist) > 0


def test_table_2_averages_of_first_answers(both):
    rows, _, tables = both
    _, means = trusted(rows)
    found = values(tables["first_answers"], "mean")
    gold = np.array([row["isGold"] == 1 for row in rows])
    assert found["Gold answers"].value == pytest.approx(np.nanmean(means[gold]))
    for model in MODELS:
        scores = np.array([row[f"{model}Score"] for row in rows]).reshape(25, 6)
        top = means.reshape(25, 6)[np.arange(25), scores.argmax(axis=1)]
        assert found[model].value == pytest.approx(np.nanmean(top))


def test_table_3_correlations(both):
    rows, _, tables = both
    _, means = trusted(rows)
    for model, rho in values(tables["rankings"], "rho").items():
        scores = np.array([row[f"{model}Score"] for row in rows]).reshape(25, 6)
        ranks = (-scores).argsort(axis=1).argsort(axis=1).ravel().astype(float)
        used = (scores.ravel() > 0) & ~np.isnan(means)
        assert rho.value == pytest.approx(spearmanr(-ranks[used], means[used]).statistic)


def test_table_4_success_rates(both):
    rows, _, tables = both
    _, means = trusted(rows)
    good, gold = means.reshape(25, 6) >= GOOD_FROM, np.array([row["isGold"] == 1 for row in rows]).reshape(25, 6)
    for judge, right in (("maker", gold), ("crowd", good)):
        table = tables[f"retrieval_{judge}"]
        for place, model in enumerate(MODELS, start=1):
            scores = np.array([row[f"{model}Score"] for row in rows]).reshape(25, 6)
            order = (-scores).argsort(axis=1)
            for k in (1, 2):
                hits = np.take_along_axis(right, order[:, :k], axis=1).any(axis=1)[right.any(axis=1)]
                row = next(row for row in table.rows if row[0] == f"Success Rate@{k}")
                assert row[place].value == pytest.approx(hits.mean())


def test_table_1_is_there_weighted_and_as_computed(both):
    _, _, tables = both
    unweighted = values(tables["candidate_agreement"], "unweighted")
    assert set(unweighted) == {"closest two", "lowest two", "highest two", "random two"}
    assert unweighted["closest two"] > unweighted["random two"]
