"""The public self-dialogues as a corpus: a part of the real file, prepared, learned from and answered."""

import gzip
import os
from itertools import islice
from pathlib import Path

import pytest

from dialometer.generators.bot import Bot
from dialometer.generators.corpus import describe
from dialometer.generators.decoding import Decoding
from dialometer.generators.preparing import Preparation, prepare_corpus
from dialometer.generators.training import GeneratorTraining, train

FILE = Path(os.environ.get("DIALOMETER_DATA", "")) / "self_dialogue" / "dialogues.jsonl.gz"

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        not os.environ.get("DIALOMETER_DATA") or not FILE.is_file(),
        reason="DIALOMETER_DATA names no folder with self_dialogue",
    ),
]


@pytest.mark.slow
def test_a_part_of_the_real_corpus_is_prepared_and_learned(tmp_path):
    part = tmp_path / "part.jsonl"
    with gzip.open(FILE, "rt", encoding="utf-8") as whole, part.open("w", encoding="utf-8") as few:
        few.writelines(islice(whole, 0, 24_000, 80))
    options = Preparation(n_tokens=1500, n_topics=5, validation_share=0.1, test_share=0.1)
    corpus = prepare_corpus([part], tmp_path / "corpus", options)
    table = describe(corpus.about)
    assert corpus.about["n_dialogues_read"] == 300
    assert 8 < table["train"]["words_per_turn"] < 12
    settings = GeneratorTraining(n_epochs=1, batch_size=64, learning_rate=5e-3, n_warmup_steps=10, device="cpu")
    sizes = {"embedding": 32, "hidden": 48, "n_topic_words": 20}
    path = train("thred", corpus, tmp_path / "thred", settings, sizes=sizes)
    bot = Bot.load(path)
    assert bot.checkpoint.record["validation_perplexity"] < 700  # 1,500 tokens guessed evenly would be 1,500
    said = bot.respond(
        [["Have you seen the new Star Wars movie?"], ["Who won the game last night?"]], Decoding("sample")
    )
    assert all(spoken.text for spoken in said)
