"""The best recipe on made-up conversations whose quality is known: content users praise, annoyed ones complain."""

from dataclasses import replace

import numpy as np
import pytest

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import DialoguePair, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue, read_verdicts, without_begging
from dialometer.learned.evaluators import load_evaluator
from dialometer.learned.gaussian.behaviour import behaviour
from dialometer.learned.gaussian.evaluator import ARRAYS, GaussianEvaluator
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.kernel import ASPECTS
from dialometer.learned.gaussian.training import fit_gaussian, folds_of, save_gaussian
from dialometer.model.dialogue import Dialogue, Turn

GOOD = ["That is great, tell me more", "Haha you are funny", "I love that too", "Really interesting!", "Nice, I agree"]
BAD = ["You already said that", "That makes no sense", "Stop repeating yourself", "what?", "Are you a bot?"]
TALK = ["I like hiking", "My sister paints", "It rained all day", "I cook on Sundays", "We went to the lake", "I read"]


def talk(name, quality, rng, n_turns=6):
    turns = []
    for n in range(n_turns):
        is_good = rng.random() < quality
        said = TALK[rng.integers(len(TALK))] if is_good else TALK[0]
        turns.append(Turn("Agent", f"{said} {'and so on' * (n % 2)}".strip(), "agent"))
        turns.append(Turn("User", (GOOD if is_good else BAD)[rng.integers(5)], "user"))
    return Dialogue(name, tuple(turns), {"bot_profile": ["i bake."]})


def talks(n, seed, n_users=30):
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        quality = rng.random()
        rating = float(np.clip(np.round(1 + 4 * quality + rng.normal() * 0.5), 1, 5))
        dialogue = talk(f"d{seed}-{number}", quality, rng, int(rng.integers(3, 8)))
        found.append(RatedDialogue(dialogue, rating, f"u{number % n_users}", "talks", None))
    return found


@pytest.fixture(scope="module")
def train():
    return talks(120, 1)


@pytest.fixture(scope="module")
def fitted(train):
    return fit_gaussian(train)


def test_it_orders_unseen_dialogues(fitted):
    test = talks(60, 2)
    scores = fitted.evaluator.score([one.dialogue for one in test]).values
    assert accuracy(scores, numbered_gap_pairs(test, 3)) > 0.85
    assert fitted.accuracy > 0.85


def test_probabilities_are_calibrated_and_symmetric(fitted):
    rng = np.random.default_rng(4)
    good, bad = talk("g", 1.0, rng), talk("b", 0.0, rng)
    there, back = fitted.evaluator.compare(good, bad), fitted.evaluator.compare(bad, good)
    assert there.probability == pytest.approx(1 - back.probability)
    assert there.low < there.probability < there.high
    assert (there.low, there.high) == pytest.approx((1 - back.high, 1 - back.low))
    assert there.probability > 0.9
    assert fitted.reliability.calibration_error < 0.1
    scores = fitted.evaluator.score([good, bad])
    odds = scores.values[0] - scores.values[1]
    assert there.probability == pytest.approx(1 / (1 + np.exp(-odds)))


def test_a_dialogue_unlike_any_other_is_less_certain(fitted, train):
    strange = Dialogue("s", tuple(Turn("X", f"{n} zzz qqq 77 %% ##", r) for n in range(40) for r in ("user", "agent")))
    found = fitted.evaluator.score([train[0].dialogue, strange])
    assert found.deviations[1] > 1.1 * found.deviations[0]
    assert np.isfinite(found.values).all()


def test_same_seed_same_model_and_back_from_disk(fitted, train, tmp_path):
    again = fit_gaussian(train)
    test = [one.dialogue for one in talks(20, 3)]
    first = fitted.evaluator.score(test)
    np.testing.assert_array_equal(first.values, again.evaluator.score(test).values)
    fitted.evaluator.save(tmp_path / "best", fitted.about)
    loaded = load_evaluator(tmp_path / "best")
    assert isinstance(loaded, GaussianEvaluator)
    np.testing.assert_allclose(loaded.score(test).values, first.values, rtol=1e-9)
    np.testing.assert_allclose(loaded.score(test).deviations, first.deviations, rtol=1e-3)
    (tmp_path / "best" / ARRAYS).write_bytes(b"PK")
    with pytest.raises(DialometerError, match="damaged"):
        load_evaluator(tmp_path / "best")


def test_ratings_are_valued_in_the_space_of_a_trained_best_evaluator(fitted, train, tmp_path):
    from dialometer.cli.learn._shared import features_of
    from dialometer.neural.work import QUIET

    fitted.evaluator.save(tmp_path, fitted.about)
    found = features_of(train[:30], tmp_path, QUIET)
    assert found.shape == (30, fitted.evaluator.known.scores.shape[1])
    assert np.isfinite(found).all()


def test_a_saved_fit_is_not_written_over_by_another(fitted, train, tmp_path):
    save_gaussian(tmp_path, fitted)
    save_gaussian(tmp_path, fitted)
    assert [one.id for one in read_verdicts(tmp_path)] == [one.id for one in train]
    other = replace(fitted, about={**fitted.about, "fingerprint": "another"})
    with pytest.raises(DialometerError, match="another evaluator"):
        save_gaussian(tmp_path, other)


def test_probabilities_can_be_fitted_to_experts(train):
    order = np.argsort([one.rating for one in train])
    experts = [DialoguePair(train[a].id, train[b].id, False) for a, b in zip(order[:30], order[-30:], strict=True)]
    found = fit_gaussian(train, experts=experts)
    assert found.about["pairs"] == "expert"
    assert found.about["n_stopping_pairs"] == 30
    assert found.accuracy > 0.9


def test_personas_and_begging_do_not_count(fitted):
    rng = np.random.default_rng(5)
    plain = talk("p", 0.5, rng)
    begging = Turn("Agent", "Time to give me 5 stars :)", "agent")
    dressed = replace(plain, turns=(*plain.turns[:3], begging, *plain.turns[3:]), metadata={"bot_profile": ["i sing."]})
    a, b = fitted.evaluator.score([plain, dressed]).values
    assert a == pytest.approx(b)
    assert without_begging(plain) is plain
    harmless = replace(plain, turns=(Turn("Agent", "I gave the hotel 5 stars", "agent"),))
    assert without_begging(harmless) is harmless


def test_ratings_that_do_not_fit_are_not_believed(train):
    ratings = [one.rating for one in train]
    worst = int(np.argmax([one.rating == 5 for one in train]))
    flipped = [replace(one, rating=1.0) if n == worst else one for n, one in enumerate(train)]
    verdicts = fit_gaussian(flipped).verdicts
    assert verdicts[worst].is_believed is False
    assert np.mean([verdict.is_believed for verdict in verdicts]) > 0.9
    assert len(verdicts) == len(ratings)


def test_each_aspect_alone_and_weights(train):
    table = describe([one.dialogue for one in train])
    test = talks(60, 6)
    unseen = describe([one.dialogue for one in test])
    pairs = numbered_gap_pairs(test, 3)
    for aspect in ASPECTS:
        alone = fit_gaussian(train, aspects=(aspect,), table=table)
        assert accuracy(alone.evaluator.score_table(unseen).values, pairs) > 0.8, aspect
    half = fit_gaussian(train, table=table, weights=np.full(len(train), 0.5))
    assert accuracy(half.evaluator.score_table(unseen).values, pairs) > 0.9
    with pytest.raises(NotEnoughData, match="above 0"):
        fit_gaussian(train, table=table, weights=np.zeros(len(train)))


def test_habits_of_raters_are_explained_away():
    """Each user adds a number of their own to all ratings. Known users are freed of it, so quality is learned better."""
    rng = np.random.default_rng(8)
    habit = rng.normal(size=16) * 1.2
    found, qualities = [], []
    for number in range(160):
        user, quality = number % 16, rng.random()
        rating = float(np.clip(2 + 2 * quality + habit[user] + rng.normal() * 0.2, 1, 5))
        dialogue = talk(f"h{number}", quality, rng, int(rng.integers(4, 9)))
        found.append(RatedDialogue(dialogue, rating, f"u{user}", "talks", None))
        qualities.append(quality)
    table = describe([one.dialogue for one in found])
    freed = fit_gaussian(found, aspects=("behaviour",), table=table)
    plain = fit_gaussian([replace(one, user=None) for one in found], aspects=("behaviour",), table=table)
    assert freed.about["settings"]["effect"] >= 1.0
    fit = [np.corrcoef(one.evaluator.score_table(table).values, qualities)[0, 1] for one in (freed, plain)]
    assert fit[0] > fit[1]


def test_several_raters_of_one_item(train):
    """The item is kept together in folds, but it is the rater whose habit is explained away."""
    judged = []
    for number, one in enumerate(train[:40]):
        for rater in range(3):
            dialogue = replace(one.dialogue, id=f"R{rater}/i{number}", metadata={"item": f"i{number}"})
            rating = float(np.clip(one.rating + rater - 1, 1, 5))
            judged.append(replace(one, dialogue=dialogue, rating=rating, user=f"R{rater}"))
    fitted = fit_gaussian(judged, aspects=("behaviour", "meaning"))
    assert fitted.about["n_groups"] == 40
    assert fitted.accuracy > 0.8


def test_ratings_that_lie_close_together(train):
    near = [replace(one, rating=2.0 + one.rating / 4) for one in train]
    found = fit_gaussian(near, aspects=("behaviour",))
    assert found.about["pairs"] == "held-out ratings that differ"
    assert found.accuracy > 0.6


def test_too_few_or_equal_ratings(train):
    with pytest.raises(NotEnoughData, match="at least 20"):
        fit_gaussian(train[:10])
    with pytest.raises(NotEnoughData, match="all 30 ratings are equal"):
        fit_gaussian([replace(one, rating=3.0) for one in train[:30]])


def test_folds_keep_groups_together():
    groups = [f"g{n // 4}" for n in range(80)]
    fold = folds_of(groups, np.random.default_rng(0))
    assert all(len(set(fold[n : n + 4])) == 1 for n in range(0, 80, 4))
    assert set(fold) == {0, 1, 2, 3, 4}
    assert set(folds_of(["all"] * 50, np.random.default_rng(0))) == {0, 1, 2, 3, 4}


def test_behaviour_of_a_small_dialogue_by_hand():
    turns = [("agent", "Hi there"), ("user", "hello, who are you?"), ("agent", "I am a bot"), ("user", "ok")]
    found = behaviour(Dialogue("d", tuple(Turn(role, text, role) for role, text in turns)))
    assert found["user_questions"] == 0.5
    assert found["user_words_last"] == pytest.approx(np.log1p(1))
    assert found["user_one_word"] == 0.5
    assert found["agent_complaint"] == pytest.approx(1 / 6)
    assert found["user_is_last"] == 1
    assert found["answers_without_question"] == 1
    assert found["agent_capital_first"] == 1
    silent = behaviour(Dialogue("s", (Turn("A", "Hi", "agent"),)))
    assert set(silent) == set(found)
    assert np.isfinite(list(silent.values())).all()


def test_odd_dialogues_get_a_score(fitted):
    odd = [
        Dialogue("empty", ()),
        Dialogue("one", (Turn("A", "Hi", "agent"),)),
        Dialogue("silent user", (Turn("A", "Hi", "agent"), Turn("A", "Hello?", "agent"))),
        Dialogue("only commands", (Turn("U", "/start", "user"), Turn("A", "Please type /test", "agent"))),
        Dialogue("another script", (Turn("U", "Привет", "user"), Turn("A", "こんにちは 🙂", "agent"))),
        Dialogue("long", tuple(Turn("U", f"word {n} " * 200, ("user", "agent")[n % 2]) for n in range(60))),
    ]
    found = fitted.evaluator.score(odd)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.deviations).all()
    assert fitted.evaluator.score([]).values.shape == (0,)
