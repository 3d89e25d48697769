"""The table: every row on the same splits, resumed where it was, with errors and differences over splits."""

import json

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from dialometer.errors import DialometerError
from dialometer.learned.cmade.fit import FitOptions
from dialometer.learned.cmade.stages import StageOptions
from dialometer.learned.cmade.training import CmadeTrainingOptions
from dialometer.learned.data.pairs import DialoguePair
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import grouped_splits, rows_of
from dialometer.learned.experiments import plain_rows as plain_module
from dialometer.learned.experiments.ablation import as_markdown, pairs_to_test, record, run_ablation, table_of
from dialometer.learned.experiments.plain_rows import AblationRow, plain_rows, ridge_scores
from dialometer.learned.experiments.trained_rows import TRAINED
from dialometer.neural.engines import LOCAL, InProcesses
from dialometer.neural.work import QUIET

TRAINING = CmadeTrainingOptions(learning_rate=3e-3, head_learning_rate=1e-2, group_size=32)


@pytest.fixture
def rated(make_dialogues):
    dialogues, quality = make_dialogues(240)
    ratings = np.clip(np.round(3 + 2.4 * quality), 1, 5)
    return [
        RatedDialogue(dialogue, float(rating), f"u{number % 60}", f"file-{number % 2}", None)
        for number, (dialogue, rating) in enumerate(zip(dialogues, ratings, strict=True))
    ]


@pytest.fixture
def options(tiny_encoder_folder):
    stages = StageOptions(k=10, n_epochs=(1, 1, 2), training=TRAINING)
    return FitOptions(encoder=str(tiny_encoder_folder), stages=stages)


@pytest.fixture
def one_thread():
    """Training with one thread, as Ray's workers do; with two, sums are added up in another order."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def cheap(rated):
    return [one for one in plain_rows(rated, QUIET) if one.row.name in ("utterances", "tfidf-ridge")]


@pytest.mark.slow
def test_every_row_and_its_controls(rated, options, tmp_path):
    splits = grouped_splits(rated, 2, development_share=0.15, stopping_share=0.15)
    seen = []
    lines = run_ablation(
        rated,
        splits,
        options,
        plain=cheap(rated),
        results=tmp_path / "r.jsonl",
        device="cpu",
        report=lambda what, n, total: seen.append((n, total)),
    )
    assert [line.row.name for line in lines] == ["utterances", "tfidf-ridge", *(row.name for row in TRAINED)]
    assert seen[-1] == (32, 32)
    by_name = {line.row.name: line for line in lines}
    assert by_name["tfidf-ridge"].accuracies["wide"] > 0.8
    assert by_name["pairwise"].accuracies["wide"] > 0.6
    for name, line in by_name.items():
        assert line.n_runs == 2
        assert (line.dropped is None) == (name.split("-")[-1] not in ("3", "nothing", "random", "lowest"))
        # The interval is of the primary pairs of all runs together, over users: around its own value, near the mean over the
        # splits, and narrow enough to say something.
        primary = line.primary
        assert primary.low < primary.value < primary.high
        assert primary.value == pytest.approx(line.accuracies["matched"], abs=0.05)
        assert primary.n <= len({one.user for one in rated})
        assert 0.02 < primary.high - primary.low < 0.4
        assert primary.n > 20
    assert by_name["1-2-nothing"].dropped == 0
    assert by_name["1-2-random"].dropped == pytest.approx(by_name["1-2-3"].dropped)
    assert by_name["1-2-lowest"].dropped == pytest.approx(0.1, abs=0.01)
    found = json.loads(json.dumps([record(line) for line in lines], allow_nan=False))
    assert found[2]["published"] == 0.581
    assert as_markdown(lines).count("\n") == len(lines) + 2


@pytest.mark.slow
def test_it_goes_on_where_it_was(rated, options, tmp_path, monkeypatch):
    splits = grouped_splits(rated, 2, development_share=0.15, stopping_share=0.15)
    rows = tuple(row for row in TRAINED if row.name in ("pairwise", "2", "2-3"))
    whole = run_ablation(rated, splits, options, rows=rows, results=tmp_path / "whole.jsonl", device="cpu")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 6
    (tmp_path / "cut.jsonl").write_text("".join(lines[:3]) + lines[3][:40])
    again = run_ablation(rated, splits, options, rows=rows, results=tmp_path / "cut.jsonl", device="cpu")
    assert (tmp_path / "cut.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    assert [line.accuracies for line in again] == [line.accuracies for line in whole]
    other = options.model_copy(update={"window": 32})
    with pytest.raises(DialometerError, match="other data, splits or options"):
        run_ablation(rated, splits, other, rows=rows, results=tmp_path / "cut.jsonl", device="cpu")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_on_ray_it_is_the_same_table_though_a_worker_dies(rated, options, one_dies, one_thread, tmp_path):
    splits = grouped_splits(rated, 2, development_share=0.15, stopping_share=0.15)
    rows = tuple(row for row in TRAINED if row.name in ("pairwise", "2-3"))
    here, there = (
        run_ablation(rated, splits, options, rows=rows, results=tmp_path / name, device="cpu", engine=engine)
        for name, engine in (("here.jsonl", LOCAL), ("there.jsonl", one_dies))
    )
    assert one_dies.n_begun() == 2 + 1, "the part of the dead worker was begun again"
    is_same = (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    assert is_same, (
        "every score of every dialogue, to the last digit"
    )  # not compared by pytest, which would take minutes
    assert [record(line) for line in there] == [record(line) for line in here]


def test_errors_and_differences_over_splits(rated):
    splits = grouped_splits(rated, 4)
    rng = np.random.default_rng(0)
    rows = [AblationRow("pairwise", "p"), AblationRow("good", "g")]
    scores = {}
    for split in splits:
        test = rows_of(rated, split.test)
        truth = np.array([one.rating for one in test])
        scores[split.name, 0, "pairwise"] = truth + rng.normal(0, 3, len(test))
        scores[split.name, 0, "good"] = truth + rng.normal(0, 1, len(test))
    first, good = table_of(rated, splits, scores, {}, rows)
    per_split = []
    for split in splits:
        pairs = pairs_to_test(rows_of(rated, split.test))["matched"]
        own = scores[split.name, 0, "good"]
        per_split.append(np.mean(own[pairs.better] > own[pairs.worse]))
    assert good.accuracies["matched"] == pytest.approx(np.mean(per_split))
    assert good.standard_errors["matched"] == pytest.approx(np.std(per_split, ddof=1) / 2)
    apart = good.differences["pairwise"]
    assert apart.value == pytest.approx(good.accuracies["matched"] - first.accuracies["matched"])
    assert good.kappa == pytest.approx(2 * good.accuracies["matched"] - 1, abs=0.05)


def test_seeds_are_the_runs_where_there_is_one_split(rated):
    splits = grouped_splits(rated, 1)
    test = rows_of(rated, splits[0].test)
    rng = np.random.default_rng(1)
    scores = {(splits[0].name, seed, "a"): rng.normal(size=len(test)) for seed in range(3)}
    (line,) = table_of(rated, splits, scores, {}, [AblationRow("a", "a")])
    assert line.n_runs == 3
    assert line.standard_errors["wide"] > 0


def test_the_interval_is_over_users_who_are_drawn_for_all_their_splits_together(rated):
    """Ten splits test everyone twice, which makes no one two people."""
    rng = np.random.default_rng(2)
    noisy = {one.id: one.rating + rng.normal(0, 2) for one in rated}

    def primary(n_splits):
        splits = grouped_splits(rated, n_splits)
        scores = {
            (split.name, 0, "a"): np.array([noisy[one.id] for one in rows_of(rated, split.test)]) for split in splits
        }
        (line,) = table_of(rated, splits, scores, {}, [AblationRow("a", "a")])
        return line.primary

    once, twice = primary(5), primary(10)
    assert once.n == twice.n == 60
    assert twice.high - twice.low > 0.85 * (once.high - once.low)


def test_expert_pairs_are_the_primary_measure(rated):
    test = rated[:20]
    experts = [DialoguePair(test[0].id, test[1].id, True), DialoguePair("elsewhere", test[1].id, True)]
    found = pairs_to_test(test, experts)
    assert next(iter(found)) == "experts"
    assert len(found["experts"]) == 1


def test_ridge_equals_that_of_scikit_learn(monkeypatch):
    rng = np.random.default_rng(2)
    train, test = rng.normal(1, 1, (60, 8)), rng.normal(1, 1, (20, 8))
    ratings = train[:, 0] + rng.normal(size=60)
    monkeypatch.setattr(plain_module, "STRENGTHS", (2.5,))
    found = ridge_scores(train @ train.T, test @ train.T, ratings, [str(n % 12) for n in range(60)])
    np.testing.assert_allclose(found, Ridge(2.5).fit(train, ratings).predict(test), rtol=1e-8)


@pytest.mark.slow
def test_other_processes_train_the_same_rows(rated, options, tmp_path):
    splits = grouped_splits(rated, 2, development_share=0.15, stopping_share=0.15)
    rows = [row for row in TRAINED if row.name in ("pairwise", "1")] or TRAINED[:1]
    here = run_ablation(rated, splits, options, rows=rows, results=tmp_path / "here.jsonl", device="cpu")
    processes = InProcesses(2)
    there = run_ablation(
        rated, splits, options, rows=rows, results=tmp_path / "there.jsonl", device="cpu", engine=processes
    )
    processes.close()
    assert [line.row for line in there] == [line.row for line in here]
    for a, b in zip(here, there, strict=True):
        assert b.accuracies == pytest.approx(a.accuracies, abs=0.02), "threads add up in another order"
    kept = [(tmp_path / name).read_text().count("\n") for name in ("here.jsonl", "there.jsonl")]
    assert kept[0] == kept[1] == 1 + len(rows) * len(splits)
