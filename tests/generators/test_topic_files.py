"""Topics found elsewhere: every form of file gives the same topics, and a bot is trained with them."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

from dialometer.errors import DialometerError
from dialometer.generators.bot import Bot
from dialometer.generators.decoding import Decoding
from dialometer.generators.preparing import Preparation, prepare_corpus
from dialometer.generators.topic_files import read_topic_file
from dialometer.generators.training import GeneratorTraining, train
from dialometer.generators.vocabulary import PAD

FORMS = {
    "plain.txt": "# found in 2018\nguitar melody album\noven, flour, zzyzx\n",
    "labelled.txt": "Topic 0: guitar melody album\nTopic 1: oven flour zzyzx\n",
    "keys.txt": "0\t0.5\tguitar melody album \n1\t0.5\toven flour zzyzx \n",
    "gensim.txt": '(0, \'0.300*"guitar" + 0.200*"melody" + 0.100*"album"\')\n'
    '(1, \'0.300*"oven" + 0.200*"flour" + 0.100*"zzyzx"\')\n',
    "log.txt": 'topic #0 (0.020): 0.300*"guitar" + 0.200*"melody" + 0.100*"album"\n'
    'topic #1 (0.020): 0.300*"oven" + 0.200*"flour" + 0.100*"zzyzx"\n',
    "pairs.txt": "guitar:0.3 melody:0.2 album:0.1\noven:0.3, flour:0.2, zzyzx:0.1\n",
    "tidy.csv": "topic,term,beta\n1,guitar,0.3\n1,melody,0.2\n1,album,0.1\n2,oven,0.3\n2,flour,0.2\n2,zzyzx,0.1\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_topics(name, corpus, tmp_path):
    path = tmp_path / name
    path.write_text(FORMS[name], encoding="utf-8")
    model, about = read_topic_file(path).in_vocabulary(corpus.vocabulary)
    top = [[corpus.vocabulary.pieces[t].strip() for t in row if t != PAD] for row in model.top_words(3).tolist()]
    assert top == [["guitar", "melody", "album"], ["oven", "flour"]]
    assert (about["n_topics"], about["n_words"], about["n_words_known"]) == (2, 6, 5)
    tokens = corpus.vocabulary.encode(["I like the oven and the flour.", "a guitar", "the oven"])
    assert model.topics_of(tokens).tolist() == [1, 0, 1]


def test_a_scikit_learn_model_gives_its_own_shares(corpus, tmp_path):
    """``LatentDirichletAllocation.transform`` over words, ours over the tokens of the same words."""
    words = ["guitar", "melody", "album", "oven", "flour", "garlic", "comet", "planet", "rocket"]
    rng = np.random.default_rng(1)
    shares = np.repeat(np.eye(3), 3, axis=1) * 0.9 + 0.1 / 3
    counts = np.array([rng.multinomial(12, shares[k % 3] / shares[k % 3].sum()) for k in range(90)])
    theirs = LatentDirichletAllocation(n_components=3, random_state=0, max_iter=5, doc_topic_prior=0.2).fit(counts)
    path = tmp_path / "topics.npz"
    np.savez(path, components=theirs.components_, words=np.array(words, dtype=str), prior=theirs.doc_topic_prior_)
    model, _ = read_topic_file(path).in_vocabulary(corpus.vocabulary)
    texts = [" ".join(np.repeat(words, row)) for row in counts[:20]]
    ours = model.mixtures(corpus.vocabulary.encode(texts))
    np.testing.assert_allclose(ours, theirs.transform(csr_matrix(counts[:20])), atol=2e-3)


def test_a_prior_for_each_topic_is_kept(corpus, tmp_path):
    path = tmp_path / "topics.npz"
    words = np.array(["guitar", "oven", "comet"])
    components = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    np.savez(path, components=components, words=words, prior=np.array([0.1, 0.1, 2.0]))
    model, _ = read_topic_file(path).in_vocabulary(corpus.vocabulary)
    model.save(tmp_path / "kept.npz")
    again = type(model).load(tmp_path / "kept.npz")
    text = corpus.vocabulary.encode(["the guitar"])
    assert again.mixtures(text)[0, 2] > again.mixtures(text)[0, 1]
    np.testing.assert_array_equal(again.mixtures(text), model.mixtures(text))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("one.txt", "guitar melody\n", "1 topics are too few"),
        ("none.txt", "quux zzyzx\nfoobar blaargh\n", "none of its 4 words is a word of the vocabulary"),
        ("bad.csv", "topic,term\n1,guitar\n", "give the columns topic, word and weight"),
        ("bad.csv", "topic,word,weight\n1,guitar,x\n2,oven,1\n", r"bad.csv:2: 'x' is not a weight"),
        ("bad.txt", "guitar melody\n , \n", r"bad.txt:2: no words of a topic"),
        ("bad.npz", "no arrays", "the arrays cannot be read"),
    ],
)
def test_what_is_no_topic_model_is_refused(name, text, words, corpus, tmp_path):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DialometerError, match=words):
        read_topic_file(path).in_vocabulary(corpus.vocabulary)


def test_arrays_of_python_objects_are_refused_with_what_to_do(tmp_path):
    path = tmp_path / "topics.npz"
    np.savez(path, components=np.ones((2, 2)), words=np.array(["a", "b"], dtype=object), allow_pickle=True)
    with pytest.raises(DialometerError, match="dtype=str"):
        read_topic_file(path)
    np.savez(path, components=np.ones((2, 3)), words=np.array(["a", "b"]))
    with pytest.raises(DialometerError, match="the components are 2 by 3, but there are 2 words"):
        read_topic_file(path)


def test_thred_learns_with_topics_from_elsewhere(dialogues, tmp_path):
    from .conftest import GROUPS, SIZES

    path = tmp_path / "topics.txt"
    path.write_text("\n".join(" ".join(group) for group in GROUPS), encoding="utf-8")
    options = Preparation(
        n_tokens=560, topic_file=path, validation_share=0.15, test_share=0.15, near_duplicate=2.0, n_context_turns=3
    )
    corpus = prepare_corpus([dialogues], tmp_path / "c", options)
    assert corpus.topics.n_topics == len(GROUPS)
    assert corpus.about["given_topics"]["file"] == "topics.txt"
    split = corpus.split("train")
    rows = split.examples[:40]
    known = [json.loads(line)["turns"] for line in dialogues.read_text(encoding="utf-8").splitlines()]
    group_of = {f"d{n}": n % len(GROUPS) for n in range(len(known))}
    assert [int(split.topics[row]) for row in rows] == [group_of[split.ids[int(split.dialogues[row])]] for row in rows]
    quick = GeneratorTraining(n_epochs=1, batch_size=64, learning_rate=1e-2, n_warmup_steps=5, device="cpu")
    bot = Bot.load(train("thred", corpus, tmp_path / "b", quick, sizes={**SIZES, "cell": "lstm"}))
    assert bot.checkpoint.topics.n_topics == len(GROUPS)
    assert bot.respond([["I like the oven."]], Decoding("greedy"))[0].text
