"""From ratings to a saved evaluator: stages, verdicts, bad input, and an interruption in the middle."""

import json

import numpy as np
import pytest

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.cmade.fit import CHECKPOINTS, FitOptions, fit_evaluator
from dialometer.learned.cmade.materials import Materials, from_split, prepare
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.stages import StageOptions, kept_ratings, run_stages
from dialometer.learned.cmade.training import CmadeTrainingOptions, share_right
from dialometer.learned.data.evaluator import read_about
from dialometer.learned.data.pairs import DialoguePair
from dialometer.learned.data.rated import RatedDialogue, read_verdicts
from dialometer.learned.data.splits import grouped_splits
from dialometer.learned.evaluators import load_evaluator

TRAINING = CmadeTrainingOptions(learning_rate=3e-3, head_learning_rate=1e-2, group_size=32)
STAGES = StageOptions(k=10, n_epochs=(1, 2, 2), training=TRAINING)


@pytest.fixture
def make_rated(make_dialogues):
    def make(n=160, seed=0, flipped=0.0):
        dialogues, quality = make_dialogues(n, seed=seed)
        ratings = np.clip(np.round(3 + 2.4 * quality), 1, 5)
        is_flipped = np.random.default_rng(seed).random(n) < flipped
        ratings[is_flipped] = 6 - ratings[is_flipped]
        rated = [
            RatedDialogue(dialogue, float(rating), f"u{number % 40}", "made-up", None)
            for number, (dialogue, rating) in enumerate(zip(dialogues, ratings, strict=True))
        ]
        return rated, quality

    return make


def expert_pairs(rated, quality, n, seed=0):
    rng = np.random.default_rng(seed)
    pairs = []
    for a, b in rng.choice(len(rated), (n, 2), replace=False):
        pairs.append(DialoguePair(rated[a].id, rated[b].id, bool(quality[a] > quality[b])))
    return pairs


def test_the_parts_share_no_dialogue_and_no_user(make_rated):
    rated, _ = make_rated()
    data = prepare(rated)
    named = [{one.id for one in part} for part in (data.development.dialogues, data.stopping.dialogues)]
    train = {one.id for one in data.train}
    assert not train & named[0]
    assert not train & named[1]
    assert not named[0] & named[1]
    assert len(train | named[0] | named[1]) == 160
    user = {one.id: one.user for one in rated}
    users = [{user[name] for name in part} for part in (train, *named)]
    assert not users[0] & users[1]
    assert not users[1] & users[2]
    assert not data.is_expert
    ratings = {one.id: one.rating for one in rated}
    for part in (data.development, data.stopping):
        for better, worse in part.pairs:
            assert ratings[part.dialogues[better].id] - ratings[part.dialogues[worse].id] >= 3
    gaps = [
        ratings[data.stopping.dialogues[better].id] - ratings[data.stopping.dialogues[worse].id]
        for better, worse in data.calibration_pairs
    ]
    assert min(gaps) == 1


def test_expert_pairs_take_the_place_of_ratings(make_rated):
    rated, quality = make_rated()
    pairs = expert_pairs(rated, quality, 40)
    data = prepare(rated, pairs)
    assert data.is_expert
    assert abs(len(data.development.pairs) - len(data.stopping.pairs)) <= 4
    named = [{one.id for one in part.dialogues} for part in (data.development, data.stopping)]
    assert not named[0] & named[1]
    assert not {one.id for one in data.train} & (named[0] | named[1])
    quality_of = {one.id: q for one, q in zip(rated, quality, strict=True)}
    for part in (data.development, data.stopping):
        assert all(quality_of[part.dialogues[b].id] > quality_of[part.dialogues[w].id] for b, w in part.pairs)


def test_a_split_gives_the_same_kinds_of_parts(make_rated):
    rated, _ = make_rated(400)
    split = grouped_splits(rated, 1)[0]
    data = from_split(rated, split)
    assert {one.id for one in data.train} == set(split.train)
    assert {one.id for one in data.stopping.dialogues} == set(split.stopping)


@pytest.mark.slow
def test_three_stages_learn_and_value_flipped_ratings_low(make_encoder, make_rated, make_dialogues):
    rated, quality = make_rated(600, flipped=0.15)
    data = prepare(rated, expert_pairs(rated, quality, 60))
    encoder = make_encoder()
    materials = Materials.of(data, encoder)
    model = RankNet(encoder)
    options = STAGES.model_copy(update={"n_epochs": (1, 6, 6)})
    outcome = run_stages(model, materials, options)
    assert list(outcome.histories) == ["stage-1", "stage-2", "stage-3"]
    # Thousands of pairs of new dialogues: on the few that stopping looks at, a sum in another order could decide.
    fresh, true = make_dialogues(150, seed=7)
    better = np.argwhere(np.subtract.outer(true, true) > 0.5)
    assert share_right(model.scores(encoder.tokens(fresh)), better) > 0.7
    quality_of = {one.id: q for one, q in zip(rated, quality, strict=True)}
    error = np.array([abs(one.rating - (3 + 2.4 * quality_of[one.id])) for one in data.train])
    assert outcome.values[error > 2.5].mean() < outcome.values[error < 1].mean()
    assert (outcome.is_kept == (outcome.values >= 0)).all()
    assert np.isfinite(outcome.smoothed).all()


def test_stages_alone_and_in_rounds(make_encoder, make_rated):
    rated, _ = make_rated()
    data = prepare(rated)
    encoder = make_encoder()
    materials = Materials.of(data, encoder)
    for stages, rounds, expected in (
        ((), 1, ["pairwise"]),
        ((2,), 1, ["stage-2"]),
        ((3,), 1, ["stage-3"]),
        ((2, 3), 2, ["stage-2-round-1", "stage-3-round-1", "stage-2-round-2", "stage-3-round-2"]),
    ):
        options = STAGES.model_copy(update={"stages": stages, "n_rounds": rounds, "n_epochs": (1, 1, 1)})
        outcome = run_stages(RankNet(make_encoder()), materials, options)
        assert list(outcome.histories) == expected
        assert (outcome.values is None) == (3 not in stages)


def test_what_is_dropped():
    values = np.array([-3.0, 1.0, -1.0, 0.0, 2.0, 5.0, -2.0, 1.0, 4.0, 3.0])
    kept = {
        drop: kept_ratings(values, StageOptions(drop=drop, drop_share=0.2))
        for drop in ("negative", "nothing", "lowest", "random")
    }
    assert list(np.flatnonzero(~kept["negative"])) == [0, 2, 6]
    assert kept["nothing"].all()
    assert list(np.flatnonzero(~kept["lowest"])) == [0, 6]
    assert kept["random"].sum() == 7
    assert (kept["random"] != kept["negative"]).any()


def test_an_evaluator_is_trained_saved_and_loaded(make_rated, tiny_encoder_folder, tmp_path):
    rated, _ = make_rated()
    data = prepare(rated)
    options = FitOptions(encoder=str(tiny_encoder_folder), stages=STAGES, n_models=2)
    seen = []
    fitted = fit_evaluator(data, options, tmp_path / "e", device="cpu", report=lambda what, n, total: seen.append(what))
    assert {"model 1 of 2: Stage 1", "model 2 of 2: Stage 3"} <= set(seen)
    loaded = load_evaluator(tmp_path / "e", device="cpu")
    dialogues = [one.dialogue for one in rated[:9]]
    np.testing.assert_allclose(loaded.score(dialogues).values, fitted.evaluator.score(dialogues).values, atol=1e-6)
    verdicts = read_verdicts(tmp_path / "e")
    assert [verdict.id for verdict in verdicts] == [one.id for one in data.train]
    assert sum(not verdict.is_believed for verdict in verdicts) == read_about(tmp_path / "e")["about"]["n_not_believed"]
    assert not (tmp_path / "e" / CHECKPOINTS).exists()
    with pytest.raises(DialometerError, match="another evaluator is here"):
        fit_evaluator(data, FitOptions(encoder=str(tiny_encoder_folder)), tmp_path / "e", device="cpu")


class Interrupted(Exception):
    pass


def test_an_interruption_in_stage_2_changes_nothing(make_rated, tiny_encoder_folder, tmp_path):
    rated, _ = make_rated()
    data = prepare(rated)
    options = FitOptions(encoder=str(tiny_encoder_folder), stages=STAGES)
    whole = fit_evaluator(data, options, tmp_path / "whole", device="cpu")

    def interrupt(what, n_done, n_total):
        if what == "Stage 2" and n_done == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        fit_evaluator(data, options, tmp_path / "cut", device="cpu", report=interrupt)
    assert (tmp_path / "cut" / CHECKPOINTS / "model-1" / "stage-1.checkpoint").is_file()
    seen = []
    fit_evaluator(data, options, tmp_path / "cut", device="cpu", report=lambda what, n, total: seen.append(what))
    assert "Stage 1" not in seen
    for name in ("member-1.safetensors", "evaluator.json", "ratings.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    assert json.loads((tmp_path / "whole" / "evaluator.json").read_text())["about"]["n_ratings"] == len(data.train)
    assert whole.accuracy > 0


def test_too_little_is_refused_before_training(make_rated, tiny_encoder_folder):
    rated, quality = make_rated()
    with pytest.raises(NotEnoughData, match="too few for 500 neighbours"):
        fit_evaluator(prepare(rated), FitOptions(encoder="/no/such", stages=StageOptions(k=500)), device="cpu")
    with pytest.raises(NotEnoughData, match="expert pairs are too few"):
        prepare(rated, expert_pairs(rated, quality, 4))
    same = [RatedDialogue(one.dialogue, 3.0, one.user, one.source, None) for one in rated]
    with pytest.raises(NotEnoughData, match="equal"):
        prepare(same, expert_pairs(rated, quality, 30))
    one_user = [RatedDialogue(one.dialogue, one.rating, "u", one.source, None) for one in rated]
    with pytest.raises(NotEnoughData, match="too few to hold any out"):
        prepare(one_user)
