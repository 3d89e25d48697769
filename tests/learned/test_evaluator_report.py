"""The report on an evaluator: held-out scores, its lead over simpler judges, its probabilities and the ratings it doubts."""

from dataclasses import replace

import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.learned.data.measures import accuracy, accuracy_difference
from dialometer.learned.data.rated import RatedDialogue, RatingVerdict
from dialometer.learned.experiments.evaluator_report import (
    EVALUATOR,
    any_gap,
    doubts_section,
    evaluator_report,
    far_apart,
    hold_contest,
    is_simulated,
    truth_pairs,
)
from dialometer.report.formats.html_page import html_page
from dialometer.simulate.rated_conversations import simulate_conversations


def rated_talks(n, seed):
    return [
        RatedDialogue(one, float(one.metadata["rating"]), one.metadata["user"], "talks", one.metadata["system"])
        for one in simulate_conversations(n, seed)
    ]


@pytest.fixture(scope="module")
def rated():
    return rated_talks(240, 3)


@pytest.fixture(scope="module")
def contest(rated):
    return hold_contest(rated, ("behaviour",))[0]


def test_every_conversation_is_held_out_once_and_no_user_twice(rated, contest):
    assert sorted(one.id for test in contest.tests for one in test) == sorted(one.id for one in rated)
    users = [{one.user for one in test} for test in contest.tests]
    assert sum(map(len, users)) == len(set().union(*users))


def test_the_evaluator_recovers_the_truth_better_than_rules_of_thumb(contest):
    pairs = truth_pairs(contest.tests)
    found = {row.name: contest.accuracy(row, pairs).value for row in contest.rows}
    assert found[EVALUATOR] > 0.8
    assert found[EVALUATOR] > max(found["approval"], found["utterances"]) + 0.1


def test_a_lead_is_the_difference_of_two_accuracies(contest):
    pairs = contest.pairs(far_apart)
    other = contest.rows[-1]
    lead = contest.lead(other, pairs)
    own, theirs = (contest.accuracy(row, pairs) for row in (contest.rows[0], other))
    assert lead.value == pytest.approx(own.value - theirs.value)
    assert lead.low < lead.value < lead.high
    same = accuracy_difference(contest.scores[EVALUATOR], contest.scores[EVALUATOR], pairs)
    assert same.value == 0


def test_probabilities_belong_to_the_evaluators_choice(contest):
    chances, gaps = contest.chances()
    assert (chances >= 0.5).all()
    n_pairs = sum(len(part) for part in contest.pairs(any_gap))
    assert len(chances) == len(gaps) == n_pairs
    hits = sum(
        accuracy(scores, part) * len(part)
        for scores, part in zip(contest.scores[EVALUATOR], contest.pairs(any_gap), strict=True)
    )
    assert float(((np.sign(gaps) + 1) / 2).sum()) == pytest.approx(hits)


def test_too_few_ratings_are_told_before_anything_is_done(rated):
    with pytest.raises(NotEnoughData, match="21 rated dialogues are left after cleaning, at least 25 are needed"):
        hold_contest(rated[:21], ("behaviour",))


def test_doubted_ratings_are_listed_with_the_truth_where_it_is_known(rated):
    believed = [RatingVerdict(one.id, one.rating, one.rating, 0.0, True) for one in rated]
    careless = next(n for n, one in enumerate(rated) if one.dialogue.metadata["truth"]["is_careless"])
    honest = next(n for n, one in enumerate(rated) if not one.dialogue.metadata["truth"]["is_careless"])
    verdicts = list(believed)
    verdicts[honest] = replace(believed[honest], smoothed=believed[honest].rating + 1.5, is_believed=False)
    verdicts[careless] = replace(believed[careless], smoothed=believed[careless].rating + 2.5, is_believed=False)
    section = doubts_section(rated, verdicts)
    rows = section.parts[0].rows
    assert [row[0] for row in rows] == [rated[careless].id, rated[honest].id], "the furthest first"
    assert [row[-1] for row in rows] == ["carelessly", "honestly"]
    assert "1 of these 2 (50%)" in section.paragraphs[1]
    real = [replace(one, dialogue=replace(one.dialogue, metadata={})) for one in rated]
    assert not is_simulated(real)
    assert truth_pairs([real]) is None
    assert len(doubts_section(real, verdicts).parts[0].columns) == len(section.parts[0].columns) - 1
    assert "None of the 240 ratings" in doubts_section(rated, believed).paragraphs[0]


def test_the_page_says_what_was_learned_from_and_shows_no_key_of_transcript_pairs(rated):
    rated = rated[:100]
    report = evaluator_report(rated, aspects=("behaviour",), data="talks", command="as typed")
    assert "Simulated dialogues" in report.summary.certainty
    assert report.provenance["aspects"] == "behaviour"
    page = html_page(report)
    assert "Ratings it does not trust" in page
    assert "only in the first transcript" not in page
    real = [replace(one, dialogue=replace(one.dialogue, metadata={}), bot=None) for one in rated]
    plain = evaluator_report(real, aspects=("behaviour",), data="talks", command="as typed")
    assert "Simulated" not in plain.summary.certainty
    assert "systems" not in [section.name for section in plain.sections]
