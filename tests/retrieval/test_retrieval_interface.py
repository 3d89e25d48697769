"""What every retriever keeps: batches equal single questions, blocks equal the whole, ties rank by number, nothing is lost."""

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.retrieval import retriever as rooms
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import (
    NO_ANSWER,
    RETRIEVERS,
    RankedAnswers,
    make_retriever,
    merge,
    retriever_name,
    top_k,
)
from dialometer.retrieval.saving import is_saved, load_retriever, read_config, save_retriever

ASKED = ["Where did you grow up?", "What food do you like?", "hello", "brothers?", "Bye!", "???"]
TRAINED = {"fused": {"n_tuning_epochs": 1, "n_read": 3, "negatives": 2}, "ranker": {"n_epochs": 1, "negatives": 2}}
UNTRAINED = ["random", "tfidf", "bm25", "encoder", "encoder-answer", "mixed"]
NAMES = [*UNTRAINED, *TRAINED]


@pytest.fixture(scope="module")
def fitted(kb, tiny_model):
    held = {}

    def fit(name):
        if name not in held:
            options = {} if name in ("random", "tfidf", "bm25") else {"model": str(tiny_model)}
            held[name] = make_retriever(name, options | TRAINED.get(name, {})).fit(kb)
        return held[name]

    return fit


def test_the_folder_holds_the_retrievers_that_were_asked_for():
    wanted = {"random", "tfidf", "bm25", "encoder", "encoder-answer", "ranker", "fused", "mixed"}
    assert wanted <= set(RETRIEVERS.names())
    for name in RETRIEVERS.names():
        assert RETRIEVERS.get(name).label
        assert RETRIEVERS.get(name).about.endswith(".")
    assert retriever_name(make_retriever("bm25")) == "bm25"


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_ranks_as_single_questions_do(fitted, name):
    whole = fitted(name).rank(ASKED)
    for row, question in enumerate(ASKED):
        alone = fitted(name).rank([question])
        np.testing.assert_array_equal(alone.answers[0], whole.answers[row])
        np.testing.assert_allclose(alone.scores[0], whole.scores[row], atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_ranked_once_and_scores_fall(fitted, name, kb):
    ranking = fitted(name).rank(ASKED)
    for answers, scores in zip(ranking.answers, ranking.scores, strict=True):
        held = answers[answers != NO_ANSWER]
        assert len(set(held.tolist())) == len(held) >= len(kb.answers) - 1  # the violin has no question
        assert np.all(np.diff(scores[: len(held)]) <= 0)
        assert np.isnan(scores[len(held) :]).all()


@pytest.mark.parametrize("name", NAMES)
def test_fewer_ranks_are_the_first_ranks(fitted, name):
    whole, some = fitted(name).rank(ASKED), fitted(name).rank(ASKED, 3)
    np.testing.assert_array_equal(some.answers, whole.answers[:, :3])
    np.testing.assert_allclose(some.scores, whole.scores[:, :3], atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_ranking_agree(fitted, name):
    scores = fitted(name).scores(ASKED)
    ranking = fitted(name).rank(ASKED)
    np.testing.assert_array_equal(top_k(scores).answers, ranking.answers)


@pytest.mark.parametrize("name", ["tfidf", "bm25", "encoder", "encoder-answer", "mixed", "fused"])
def test_small_blocks_change_nothing(fitted, name, monkeypatch):
    before = fitted(name).rank(ASKED, 4)
    monkeypatch.setattr(rooms, "ANSWER_BATCH", 3)
    monkeypatch.setattr(rooms, "QUERY_BATCH", 2)
    after = fitted(name).rank(ASKED, 4)
    np.testing.assert_array_equal(before.answers, after.answers)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_asked_gives_nothing(fitted, name, kb):
    assert fitted(name).rank([]).answers.shape == (0, len(kb.answers))
    assert fitted(name).rank([], 2).answers.shape == (0, 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_retriever_comes_back_with_its_options_and_ranks_alike(fitted, name, tmp_path):
    save_retriever(fitted(name), tmp_path / name)
    assert is_saved(tmp_path / name)
    assert read_config(tmp_path / name)["retriever"] == name
    again = load_retriever(tmp_path / name)
    assert again.options == fitted(name).options
    before, after = fitted(name).rank(ASKED, 5), again.rank(ASKED, 5)
    np.testing.assert_array_equal(before.answers, after.answers)
    np.testing.assert_allclose(before.scores, after.scores, atol=2e-4)


def test_a_changed_knowledge_base_is_noticed_on_loading(fitted, tmp_path):
    save_retriever(fitted("tfidf"), tmp_path)
    path = tmp_path / "knowledge_base.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("violin", "piano"), encoding="utf-8")
    with pytest.raises(DialometerError, match="was changed"):
        load_retriever(tmp_path)


def test_loading_from_an_empty_folder_says_what_to_do(tmp_path):
    with pytest.raises(DialometerError, match="no saved retriever"):
        load_retriever(tmp_path)


def test_wrong_options_are_named():
    with pytest.raises(DialometerError, match="option 'kk1' of the retriever 'bm25'") as caught:
        make_retriever("bm25", {"kk1": 2})
    assert "k1" in caught.value.remedy
    with pytest.raises(DialometerError, match="unknown retriever"):
        make_retriever("bm26")


def test_chance_depends_on_the_question_and_the_seed_alone(kb):
    one, two = make_retriever("random").fit(kb), make_retriever("random", {"seed": 1}).fit(kb)
    same = one.rank([Query("Hello", id="x"), Query("Hello", id="y"), Query("Hello", id="x")]).answers
    assert same[0].tolist() == same[2].tolist() != same[1].tolist()
    assert two.rank(["Hello"]).answers.tolist() != one.rank(["Hello"]).answers.tolist()


def test_chance_ranks_every_answer_first_equally_often():
    kb = assemble([Answer(f"{k}", f"{k}") for k in range(4)], [])
    first = make_retriever("random").fit(kb).rank([f"question {k}" for k in range(4000)], 1).answers.ravel()
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 4000, 0.25, atol=0.03)


@pytest.mark.parametrize("name", ["tfidf", "bm25", "encoder", "encoder-answer", "mixed"])
@pytest.mark.parametrize("questions", [[], ["?"], ["?", "..."]])
def test_a_knowledge_base_almost_without_questions_is_no_error(name, questions, tiny_model):
    kb = assemble([Answer("1", "Yes."), Answer("2", "No.")], [(question, 0) for question in questions])
    options = {} if name in ("tfidf", "bm25") else {"model": str(tiny_model)}
    ranking = make_retriever(name, options).fit(kb).rank(["Is it?", "?"])
    n_ranked = (ranking.answers != NO_ANSWER).sum(axis=1)
    assert n_ranked.tolist() == [2 if name in ("encoder-answer", "mixed") else min(len(questions), 1)] * 2


@pytest.mark.parametrize("name", ["tfidf", "bm25", "encoder", "mixed", "fused"])
def test_it_can_be_said_what_speaks_for_an_answer(fitted, name, kb):
    reason = fitted(name).explain(Query("Where did you grow up?"), kb.find("I grew up in Chisinau, in Moldova."))
    assert "Where did you grow up?" in reason if name != "fused" else "question:" in reason or "answer:" in reason


class TestTopK:
    def test_equal_scores_rank_by_column(self):
        ranking = top_k(np.array([[1, 3, 3, 2, 3]], dtype=np.float32), 4)
        assert ranking.answers.tolist() == [[1, 2, 4, 3]]

    def test_nan_is_never_ranked(self):
        ranking = top_k(np.array([[np.nan, 1, np.nan]], dtype=np.float32), 5)
        assert ranking.answers.tolist() == [[1, -1, -1, -1, -1]]
        assert np.isnan(ranking.scores[0, 1:]).all()

    @pytest.mark.parametrize("k", [1, 5, 37, 200])
    def test_it_is_a_full_stable_sort_cut_short(self, k):
        scores = np.random.default_rng(k).integers(0, 12, (40, 200)).astype(np.float32)
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(top_k(scores, k).answers, expected)

    def test_merging_parts_is_ranking_the_whole(self):
        scores = np.random.default_rng(1).integers(0, 9, (20, 60)).astype(np.float32)
        left, right = top_k(scores[:, :25], 10), top_k(scores[:, 25:], 10)
        merged = merge(left, RankedAnswers(right.answers + 25, right.scores), 10)
        np.testing.assert_array_equal(merged.answers, top_k(scores, 10).answers)
