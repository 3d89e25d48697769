"""Confidence and the threshold on it, beside scikit-learn's logistic regression and counting by hand."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dialometer.cli.retrieval._tables import show_trade_off
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.dialogue import Turn
from dialometer.retrieval.avatar import CALIBRATION_FILE, DECLINING, Avatar, load_avatar, save_calibration
from dialometer.retrieval.retriever import NO_ANSWER, RankedAnswers, make_retriever
from dialometer.retrieval.saving import save_retriever
from dialometer.retrieval.threshold import (
    Calibration,
    calibrate,
    right_of_surest,
    trade_off,
    trade_off_inline,
    trade_off_svg,
)
from dialometer.retrieval.training.train_retriever import calibrate_by_folds, calibrate_on


def drawn(n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.random((n, 2)), axis=1)[:, ::-1].astype(np.float32)
    chance = 1 / (1 + np.exp(-(5 * scores[:, 0] + 2 * (scores[:, 0] - scores[:, 1]) - 3.5)))
    return RankedAnswers(np.tile([0, 1], (n, 1)), scores.copy()), rng.random(n) < chance


def test_confidence_is_scikit_learns_logistic_regression():
    ranking, is_right = drawn()
    ours = calibrate(ranking, is_right)
    score = ranking.scores[:, 0].astype(float)
    columns = np.column_stack([score, score - ranking.scores[:, 1]])
    scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(scaled, is_right)
    np.testing.assert_allclose(ours.confidence(ranking), theirs.predict_proba(scaled)[:, 1], atol=1e-4)


def test_confidence_means_what_it_says():
    """Of new answers told with confidence p, a share p is right."""
    ours = calibrate(*drawn(4000, seed=1))
    ranking, is_right = drawn(20_000, seed=2)
    confidence = ours.confidence(ranking)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        own = (confidence >= low) & (confidence < low + 0.2)
        assert is_right[own].mean() == pytest.approx(confidence[own].mean(), abs=0.04)


def test_a_higher_score_never_lowers_confidence():
    rng = np.random.default_rng(0)
    ranking, _ = drawn(60)
    ours = calibrate(ranking, rng.random(60) < 0.9 - 0.8 * ranking.scores[:, 0])  # the wrong way round
    assert ours.by_score >= 0
    assert ours.by_lead >= 0


def test_the_curve_counts():
    confidence = np.array([0.9, 0.8, 0.55, 0.3])
    is_right = np.array([True, True, False, True])
    points = {point.threshold: point for point in trade_off(confidence, is_right, cost_of_wrong=2, n_points=5)}
    assert (points[0.0].answered, points[0.0].right_of_answered, points[0.0].worth) == (1.0, 0.75, 0.25)
    assert (points[0.5].answered, points[0.5].right_of_answered, points[0.5].worth) == (0.75, 2 / 3, 0.0)
    assert (points[0.75].answered, points[0.75].right_of_answered, points[0.75].worth) == (0.5, 1.0, 0.5)
    assert np.isnan(points[1.0].right_of_answered)  # of nothing answered, no share is right


def test_of_the_surest_four_fifths_the_right_ones_are_counted():
    confidence = np.array([0.9, 0.1, 0.55, 0.3, 0.2])
    assert right_of_surest(confidence, np.array([True, False, True, True, False])) == 0.75
    ranking, is_right = drawn()
    ours = calibrate(ranking, is_right)
    assert is_right.mean() < ours.right_of_surest < 1
    assert Calibration.from_json(ours.as_json()).right_of_surest == ours.right_of_surest
    older = {key: value for key, value in ours.as_json().items() if key != "right_of_surest"}
    assert Calibration.from_json(older).right_of_surest is None


def test_the_share_at_four_fifths_is_printed(capsys):
    ours = calibrate(*drawn())
    show_trade_off(ours)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Of the 80% of questions that it is surest of, {ours.right_of_surest:.0%} are answered correctly" in printed
    assert "(95% interval " in printed


def test_wrong_answers_that_cost_more_raise_the_threshold():
    given = drawn(800)
    thresholds = [calibrate(*given, cost_of_wrong=cost).threshold for cost in (0, 1, 5)]
    assert thresholds[0] == 0
    assert thresholds[0] < thresholds[1] < thresholds[2]


def test_too_little_to_tell():
    ranking, _ = drawn(30)
    with pytest.raises(NotEnoughData, match="too little to estimate confidence"):
        calibrate(ranking, np.ones(30, dtype=bool))
    with pytest.raises(NotEnoughData, match="at least 20 questions"):
        calibrate(RankedAnswers(ranking.answers[:5], ranking.scores[:5]), np.array([True, False] * 2 + [True]))


def test_nothing_retrieved_is_no_confidence():
    calibration = Calibration(5.0, 1.0, 1.0, 0.5, 1.0, 30)
    nothing = RankedAnswers(np.array([[NO_ANSWER, NO_ANSWER]]), np.array([[np.nan, np.nan]], dtype=np.float32))
    assert calibration.confidence(nothing).tolist() == [0.0]


def test_calibration_survives_its_file(tmp_path, kb, asked):
    fitted = make_retriever("tfidf").fit(kb)
    calibration = calibrate_on(fitted, asked)
    save_retriever(fitted, tmp_path)
    save_calibration(calibration, tmp_path)
    text = (tmp_path / CALIBRATION_FILE).read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    avatar = load_avatar(tmp_path)
    assert avatar.calibration is not None
    assert avatar.calibration.threshold == avatar.threshold == calibration.threshold
    assert str(avatar.calibration.curve) == str(calibration.curve)  # nan equals nothing, its name does
    (tmp_path / CALIBRATION_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(DialometerError, match="the calibration cannot be read"):
        load_avatar(tmp_path)


def test_calibrating_across_dialogues_never_asks_what_was_learned(kb, asked):
    """Learned and asked the same questions, TF-IDF would be always right."""
    across = calibrate_by_folds(kb, make_retriever("tfidf"), asked, n_folds=3)
    assert across.n_questions == len(asked)
    assert across.curve[0].answered == 1.0
    assert across.curve[0].right_of_answered < 0.5


def test_calibrating_inside_a_knowledge_base(kb):
    inside = calibrate_by_folds(kb, make_retriever("tfidf"), None)
    assert inside.n_questions == len(kb.questions)


def said(*texts):
    return [
        Turn("User" if n % 2 == 0 else "Agent", text, "user" if n % 2 == 0 else "agent") for n, text in enumerate(texts)
    ]


def test_the_avatar_answers_or_asks_for_something_else(kb, asked):
    fitted = make_retriever("tfidf").fit(kb)
    avatar = Avatar(fitted, calibrate_on(fitted, asked))
    answered = avatar.reply(said("What is your name?"))
    assert (answered.answer, answered.text) == ("a03", "My name is Maren. Maren Tveit.")
    assert answered.confidence is not None
    assert answered.confidence > avatar.threshold
    declined = avatar.reply(said("Which football club plays in Lisbon?"))
    assert declined.has_declined
    assert declined.text == DECLINING[0]
    again = avatar.reply(said("Which football club plays in Lisbon?", declined.text, "And in Porto?"))
    assert again.text == DECLINING[1]  # it does not sound stuck
    assert declined.best  # what it would have said can still be looked at


def test_a_threshold_of_ones_own(kb, asked):
    fitted = make_retriever("tfidf").fit(kb)
    avatar = Avatar(fitted, calibrate_on(fitted, asked))
    assert not avatar.reply(said("Which football club plays in Lisbon?"), threshold=0.0).has_declined
    assert avatar.reply(said("What is your name?"), threshold=1.0).has_declined
    assert Avatar(fitted, avatar.calibration, threshold=1.0).reply(said("What is your name?")).has_declined


def test_without_calibration_it_answers_everything(kb):
    spoken = Avatar(make_retriever("tfidf").fit(kb)).reply(said("Tell me about Lisbon"))
    assert spoken.confidence is None
    assert not spoken.has_declined


def test_the_curve_is_drawn(kb, asked):
    calibration = calibrate_on(make_retriever("tfidf").fit(kb), asked)
    svg = trade_off_svg(calibration)
    assert svg.startswith("<svg")
    assert "Questions answered" in svg
    wide, narrow = trade_off_inline(calibration)
    for drawing in (wide, narrow):
        assert "style=" not in drawing  # a strict policy would refuse it
        assert f"At {calibration.threshold:.2f}:" in drawing
