"""Valid folders of trained models, as small as they can be: a CMADE evaluator, an answer ranker, a bot and its corpus.

Everything here needs torch, so it is imported when the first of these folders is made.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.fuzz.valid_files import Files, of_folder

_WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "hi", "ok", "who", "are", "you", "1", "2", "?")
_SIZES = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}


@cache
def _encoder() -> tuple[Any, Any]:
    """A tokenizer of a few words and a network of one layer."""
    import torch  # noqa: PLC0415 - very heavy
    from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: PLC0415
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast  # noqa: PLC0415

    torch.set_num_threads(1)
    torch.manual_seed(1)
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=64, **special)
    return tokenizer, BertModel(BertConfig(vocab_size=len(_WORDS), max_position_embeddings=64, **_SIZES))


@cache
def cmade() -> Files:
    """An evaluator of one untrained model."""
    from dialometer.learned.cmade.encoder import DialogueEncoder  # noqa: PLC0415
    from dialometer.learned.cmade.evaluator import Member, RankNetEvaluator, save_evaluator  # noqa: PLC0415
    from dialometer.learned.cmade.ranknet import RankNet  # noqa: PLC0415

    tokenizer, network = _encoder()
    model = RankNet(DialogueEncoder(tokenizer, network, window=32, pooling="mean"))
    with TemporaryDirectory() as place:
        save_evaluator(place, RankNetEvaluator([Member(model.eval(), 0.0, 1.0)]), {"fingerprint": "x"})
        return of_folder(Path(place))


@cache
def ranker() -> Files:
    """An answer ranker: the encoder with a head beside it."""
    from dialometer.retrieval.training.ranker import CrossEncoder, PairNetwork  # noqa: PLC0415

    tokenizer, network = _encoder()
    with TemporaryDirectory() as place:
        CrossEncoder(tokenizer, PairNetwork(network, "mean"), "cpu").save(Path(place))
        return of_folder(Path(place))


@cache
def corpus() -> Files:
    """A prepared corpus of a few dialogues."""
    from dialometer.generators.preparing import Preparation, prepare_corpus  # noqa: PLC0415

    words = ("hello there you", "i like music", "what do you eat", "i eat bread", "good bye now", "see you soon")
    lines = [f"{words[n % 6]} {n}\t{words[(n + 1 + n % 4) % 6]} {n % 7}\t{words[(n + 2) % 6]}" for n in range(40)]
    with TemporaryDirectory() as place:
        source = Path(place) / "d.txt"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        options = Preparation(n_tokens=260, n_topics=0, validation_share=0.2, test_share=0.2, near_duplicate=2)
        prepare_corpus([source], Path(place) / "corpus", options, format="thred")
        return of_folder(Path(place) / "corpus")


@cache
def bot() -> Files:
    """An untrained bot in its file."""
    from dialometer.generators.bot import BOT_FILE, save_checkpoint  # noqa: PLC0415
    from dialometer.generators.generator import Shape, build  # noqa: PLC0415
    from dialometer.generators.vocabulary import Vocabulary  # noqa: PLC0415

    vocabulary = Vocabulary(corpus()["tokenizer.json"].decode())
    shape = Shape(
        len(vocabulary), n_turns=2, max_turns=2, n_turn_tokens=8, embedding=4, hidden=4, n_layers=1, n_heads=1
    )
    with TemporaryDirectory() as place:
        save_checkpoint(Path(place) / BOT_FILE, "seq2seq", build("seq2seq", shape), vocabulary, {"epochs": 1})
        return of_folder(Path(place))
