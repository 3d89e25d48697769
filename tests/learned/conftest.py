"""A very small encoder with random weights, and dialogues whose quality can be read off their words."""

import importlib.util
import warnings

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural.engines import OnRay
from ray_workers import OneWorkerDies

GOOD = ["great", "lovely", "thanks", "fun", "interesting", "music", "dogs", "films"]
BAD = ["sorry", "repeat", "what", "again", "nonsense", "error", "stop", "boring"]
PLAIN = ["i", "you", "like", "do", "and", "the", "a", "to", "is", "hello", "yes", "no", "we", "talk", "about", "tell"]


def made_up(n, seed=0, n_turns=(4, 9), prefix="d"):
    """Dialogues with a hidden quality from -1 to 1 that decides how many good and bad words they hold."""
    rng = np.random.default_rng(seed)
    dialogues, quality = [], rng.uniform(-1, 1, n)
    for number in range(n):
        turns = []
        for place in range(int(rng.integers(*n_turns))):
            words = list(rng.choice(PLAIN, int(rng.integers(2, 6))))
            coloured = GOOD if rng.uniform(-1, 1) < quality[number] else BAD
            words.append(str(rng.choice(coloured)))
            role = "agent" if place % 2 == 0 else "user"
            turns.append(Turn(role, " ".join(words), role))
        dialogues.append(Dialogue(f"{prefix}{number}", tuple(turns)))
    return dialogues, quality


def tiny_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PLAIN, *GOOD, *BAD]
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    )


def tiny_network(seed=0, dropout=0.1):
    import torch
    from transformers import BertConfig, BertModel

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=64,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        return BertModel(config, add_pooling_layer=False)


def tiny_encoder(seed=0, dropout=0.1, window=0, pooling="mean"):
    from dialometer.learned.cmade.encoder import DialogueEncoder

    return DialogueEncoder(tiny_tokenizer(), tiny_network(seed, dropout), window=window, pooling=pooling)


@pytest.fixture(scope="session")
def make_dialogues():
    return made_up


@pytest.fixture(scope="session")
def make_encoder():
    return tiny_encoder


@pytest.fixture(scope="session")
def tiny_encoder_folder(tmp_path_factory):
    """The very small encoder as a folder that can be named on the command line."""
    folder = tmp_path_factory.mktemp("tiny-encoder")
    tiny_tokenizer().save_pretrained(folder)
    tiny_network().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def two_workers():
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'dialometer[ray]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns about its own plans
        try:
            engine = OnRay(n_workers=2)
        except DialometerError as error:
            pytest.skip(f"Ray cannot start here: {error}")
        with engine:
            yield engine


@pytest.fixture
def one_dies(two_workers, tmp_path):
    folder = tmp_path / "begun"
    folder.mkdir()
    return OneWorkerDies(two_workers, folder)
