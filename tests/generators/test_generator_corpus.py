"""Preparation of corpora: what is kept, what is left out, who goes where, and that nothing is held in memory."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest

from dialometer.errors import DialometerError, NotEnoughData, ReadError
from dialometer.generators.batches import Window, batch_of, examples_of, order
from dialometer.generators.corpus import SPLITS, describe, load_corpus
from dialometer.generators.filters import Filter, Limits, matcher, read_word_list, words_of
from dialometer.generators.generator import Shape
from dialometer.generators.near_duplicates import Signatures, near_duplicates
from dialometer.generators.preparing import Preparation, prepare_corpus
from dialometer.generators.splits import drawn_split
from dialometer.generators.vocabulary import END, PAD, START, Vocabulary

SMALL = Preparation(n_tokens=300, n_topics=0, validation_share=0.2, test_share=0.2, near_duplicate=2.0)


def test_a_turn_taken_out_parts_the_dialogue():
    keep = Filter(Limits(max_words=4), frozenset({"darn", "bad word"}))
    turns = [
        "one two",
        "three",
        "much too long a turn",
        "four",
        "five",
        "oh darn!",
        "six",
        "A bad, WORD here",
        "seven",
        "8",
    ]
    assert keep.pieces(turns) == [["one two", "three"], ["four", "five"], ["seven", "8"]]
    assert keep.removed == {"turns too long": 1, "turns with unwanted words": 2, "turns in pieces too short": 1}


def test_listed_words_are_whole_words(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("# not these\nass\n\nhot dog # a phrase\n", encoding="utf-8")
    pattern = matcher(read_word_list(path))
    assert pattern.search(" ".join(words_of("You ass!")))
    assert pattern.search(" ".join(words_of("a Hot, dog")))
    assert not pattern.search(" ".join(words_of("a glass of hot dogs")))
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(DialometerError, match="names no words"):
        read_word_list(path)


def test_near_duplicates_are_those_of_the_exact_similarity(tmp_path):
    rng = np.random.default_rng(3)
    words = [f"w{k}" for k in range(300)]
    texts = [[" ".join(rng.choice(words, 60))] for _ in range(40)]
    texts += [[text[0].replace(text[0].split()[30], "other", 1)] for text in texts[:10]]  # one word changed
    texts += [[" ".join([*text[0].split()[:30], *rng.choice(words, 30)])] for text in texts[10:20]]  # half changed
    with Signatures(tmp_path / "s") as signatures:
        for text in texts:
            signatures.add(text)
    found = near_duplicates(tmp_path / "s", 0.8)

    def shingles(text):
        row = text[0].split()
        return {tuple(row[i : i + 3]) for i in range(len(row) - 2)}

    sets = [shingles(text) for text in texts]
    exact = [
        any(len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= 0.8 for j in range(i) if i != j)
        for i in range(len(texts))
    ]
    assert exact[40:50] == [True] * 10
    assert found.tolist() == exact


def test_splits_follow_the_id_alone(corpus, dialogues, tmp_path):
    ids = {name: set(corpus.split(name).ids) for name in SPLITS}
    assert sum(map(len, ids.values())) == 160
    assert not ids["train"] & ids["test"]
    assert not ids["train"] & ids["validation"]
    more = tmp_path / "more.jsonl"
    extra = json.dumps({"id": "new", "turns": ["hello there", "good day"]})
    more.write_text(extra + "\n" + dialogues.read_text(encoding="utf-8"), encoding="utf-8")
    options = Preparation(
        n_tokens=560, n_topics=0, validation_share=0.15, test_share=0.15, near_duplicate=2.0, n_context_turns=3
    )
    again = prepare_corpus([more], tmp_path / "again", options)
    for name in SPLITS:
        assert set(again.split(name).ids) - {"new"} == ids[name]
        shares = {"validation_share": 0.15, "test_share": 0.15, "seed": 0}
        assert all(drawn_split(dialogue_id, **shares) == name for dialogue_id in ids[name])


def test_what_was_said_comes_back(corpus, dialogues):
    said = {row["id"]: row["turns"] for row in map(json.loads, dialogues.read_text(encoding="utf-8").splitlines())}
    split = corpus.split("validation")
    for row in split.examples[:20].tolist():
        dialogue = said[split.ids[int(split.dialogues[row])]]
        place = int(split.places[row])
        assert corpus.vocabulary.decode(split.turn(row).tolist()) == dialogue[place]
        context = [corpus.vocabulary.decode(turn.tolist()) for turn in split.context(row, 3)]
        assert context == dialogue[max(0, place - 3) : place]


def test_the_table_of_a_corpus_counts_what_is_there(corpus, dialogues):
    said = [json.loads(line) for line in dialogues.read_text(encoding="utf-8").splitlines()]
    table = describe(corpus.about)
    ids = set(corpus.split("train").ids)
    turns = [turn for row in said if row["id"] in ids for turn in row["turns"]]
    assert table["train"]["dialogues"] == len(ids)
    assert table["train"]["turns"] == len(turns)
    assert table["train"]["examples"] == len(turns) - len(ids)
    assert table["train"]["words_per_turn"] == pytest.approx(np.mean([len(t.split()) for t in turns]), abs=1e-3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "own.jsonl",
            '{"id": "d%d", "turns": [{"speaker": "User", "text": "hi %d"}, {"speaker": "Agent", "text": "yo"}]}\n',
        ),
        ("self.jsonl", '{"id": "d%d", "topic": "x", "turns": ["hi %d", "yo"]}\n'),
        ("plain.txt", "# d%d\nA: hi %d\nB: yo\n\n"),
        ("reddit.tsv", "hi number d%d\tyo %d\twell then  |  word other\n"),
    ],
)
def test_every_form_of_file_is_prepared(tmp_path, name, text):
    path = tmp_path / name
    path.write_text("".join(text % (k, k) for k in range(40)), encoding="utf-8")
    corpus = prepare_corpus([path], tmp_path / "c", SMALL)
    assert sum(split["dialogues"] for split in corpus.about["splits"].values()) == 40


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", ReadError, "no dialogues"),
        ('{"id": "a", "turns": ["alone"]}\n', NotEnoughData, "none of the 1 dialogues has two turns"),
        ('{"id": "a", "turns": ["one", "two"]}\n', NotEnoughData, "no example is left for the split"),
        ('{"id": "a", "turns": ["one", "two"\n', ReadError, "a.jsonl:1"),
    ],
)
def test_a_bad_corpus_is_refused_and_leaves_nothing(tmp_path, text, error, words):
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=words):
        prepare_corpus([path], tmp_path / "c", SMALL, format="self_dialogue")
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_corpus_is_never_overwritten(corpus_folder, dialogues):
    with pytest.raises(DialometerError, match="exists already"):
        prepare_corpus([dialogues], corpus_folder, SMALL)


def test_a_changed_vocabulary_is_noticed(dialogues, tmp_path):
    prepare_corpus([dialogues], tmp_path / "c", SMALL)
    other = Vocabulary.train(["quite other words"] * 9, 300)
    (tmp_path / "c" / "tokenizer.json").write_text(other.description, encoding="utf-8")
    with pytest.raises(DialometerError, match="changed after the corpus was prepared"):
        load_corpus(tmp_path / "c")
    with pytest.raises(DialometerError, match="no prepared corpus"):
        load_corpus(tmp_path)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """The same preparation of four times as much text holds less than a fifth of the added bytes at its peak."""
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in range(200)]

    def peak_of(n_dialogues, name):
        path = tmp_path / f"{name}.jsonl.gz"
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for k in range(n_dialogues):
                turns = [" ".join(rng.choice(words, 30)) for _ in range(20)]
                file.write(json.dumps({"id": f"{name}{k}", "turns": turns}) + "\n")
        tracemalloc.start()
        corpus = prepare_corpus([path], tmp_path / name, SMALL, format="self_dialogue")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak, sum(split["words"] for split in corpus.about["splits"].values()) * 7

    small, few_bytes = peak_of(60, "small")
    large, many_bytes = peak_of(240, "large")
    assert large - small < 0.2 * (many_bytes - few_bytes)


def test_nothing_is_unknown_and_only_whole_text_may_be_said(corpus):
    vocabulary = corpus.vocabulary
    odd = "žluťoučký 🐎 — <end> <pad> 中文"
    assert vocabulary.decode(vocabulary.encode([odd])[0]) == "žluťoučký 🐎 — end pad 中文"
    assert not {PAD, START, END} & set(vocabulary.encode([odd])[0])
    allowed = vocabulary.may_be_said
    assert allowed[END]
    assert not allowed[PAD]
    assert not allowed[START]
    text = vocabulary.decode([t for t in range(len(vocabulary)) if allowed[t] and t != END])
    assert "�" not in text
    assert text.isprintable()


@pytest.mark.parametrize("window", [Window(3, 64), Window(1, 64), Window(2, 6)])
def test_batches_gathered_from_the_corpus_equal_those_put_together_by_hand(corpus, window):
    split = corpus.split("train")
    rows = np.random.default_rng(0).choice(split.examples, 17)
    ours = examples_of(split, rows, window)
    other = batch_of(
        [split.context(int(row), window.n_turns) for row in rows],
        np.asarray(split.topics[rows], dtype=np.int64),
        window,
        [split.turn(int(row)) for row in rows],
    )
    for name in ("turns", "source", "targets", "inputs"):
        a, b = getattr(ours, name), getattr(other, name)
        width = min(a.shape[-1], b.shape[-1])
        assert (a[..., :width] == b[..., :width]).all()
        assert not a[..., width:].any()
        assert not b[..., width:].any()
    assert (ours.turn_lengths == other.turn_lengths).all()
    assert (ours.source_lengths == other.source_lengths).all()
    assert ours.n_targets == other.n_targets


@pytest.mark.parametrize("n_turns", [1, 3])
def test_an_epoch_visits_every_example_once_in_batches_of_alike_lengths(corpus, n_turns):
    split = corpus.split("train")
    common = {"size": 8, "seed": 1, "n_turns": n_turns}
    batches = order(split, epoch=0, **common)
    assert sorted(np.concatenate(batches).tolist()) == split.examples.tolist()
    again = order(split, epoch=0, **common)
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))
    assert any((a != b).any() for a, b in zip(batches, order(split, epoch=1, **common), strict=True))

    def padding(parts):
        """Tokens computed for nothing: responses and contexts are padded apart from each other."""
        total = 0
        for part in parts:
            said = [len(split.turn(int(row))) + 1 for row in part]
            read = [sum(len(turn) + 1 for turn in split.context(int(row), n_turns)) for row in part]
            total += sum(max(line) * len(line) - sum(line) for line in (said, read))
        return total

    assert padding(batches) < 0.5 * padding(order(split, epoch=0, is_bucketed=False, **common))


def test_damaged_vocabularies_and_sizes_are_refused():
    """The library of tokenizers panics at such a prefix, which is no ordinary error."""
    description = json.loads(Vocabulary.train(["hello there"] * 9, 270).description)
    description["model"]["continuing_subword_prefix"] = "x" * 10
    with pytest.raises(DialometerError, match="not a vocabulary"):
        Vocabulary(json.dumps(description))
    for dropout in ("/dev/zero", 1.0, True, -0.1):
        with pytest.raises(DialometerError, match="the dropout is"):
            Shape(n_tokens=300, dropout=dropout)
