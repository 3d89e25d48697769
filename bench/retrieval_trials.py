"""What was tried to make retrieval better, each measured on dialogues that nothing was trained or chosen on.

Leave one dialogue out, over the ten development dialogues of the Margarita corpus: the recorded questions that the dialogue repeats
are removed, the nine other dialogues are known with their labels, and the dialogue is asked. An answer that keeps no question is
not at hand. The weights of a fusion come from the other nine, each scored by an encoder that did not know it (but the tenth).
In steps, since training belongs on another machine than the rest:

    python -m bench.retrieval_trials prepare FOLDER      texts as tokens, the encoder's weights: all that training needs
    python -m bench.retrieval_training FOLDER            trains each trial, all folds side by side (torch and numpy alone)
    python -m bench.retrieval_trials likelihood FOLDER --model NAME     what a language model thinks of the first answers
    python -m bench.retrieval_trials table FOLDER        success rates with intervals over dialogues
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench._question_templates import questions_for
from bench._retrieval_likelihood import N_READ, likelihoods
from bench._retrieval_table import Trials, first_answers, show
from bench.retrieval_training import MOST_TOKENS, N_OPENED, N_VARIANTS
from dialometer.neural.encoder import TextEncoder
from dialometer.retrieval.cross_validation import add_queries
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import REPRESENTATIONS, read_queries, repeated_questions, texts_of, with_context
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.training.augment import OPENERS, one_variant, synonym_source

LETTERS = {"analyzer": "char_wb", "shortest": 2, "longest": 5}
PLAIN: dict[str, tuple[str, dict[str, Any], str]] = {
    "tfidf": ("tfidf", {}, "lessons"),
    "bm25": ("bm25", {}, "lessons"),
    "words": ("tfidf", LETTERS, "lessons"),
    "words_plain": ("tfidf", LETTERS, "plain"),
}
"""What needs no training: the retriever, its options, and whether the other dialogues are known."""
ASKS_YES_NO = frozenset(
    ["do", "did", "does", "are", "is", "was", "were", "have", "has", "can", "could", "would", "will", "so"]
)
ASKS_FACT = frozenset(["what", "where", "who", "how", "why", "when", "which"])
YES_NO = frozenset(["yes", "no", "yeah", "sure", "nope", "not", "kind", "absolutely", "of"])


def first_word(text: str) -> str:
    """In small letters, without punctuation."""
    return text.lower().split()[0].strip(",.?!")


def prepare(folder: Path, data: Path) -> None:
    """Writes texts as tokens, folds and weights; only tokens that occur keep their row of the word table."""

    kb = read_knowledge_base(data / "knowledge_base.csv")
    asked = read_queries(data / "dialogues_dev.csv", kb)
    encoder = TextEncoder()
    synonyms = synonym_source(encoder.tokenizer, encoder.network)
    rng = np.random.default_rng(0)
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    forms = {form: [[number(text) for text in texts_of(q, form)] for q in asked.queries] for form in REPRESENTATIONS}
    forms["two turns"] = [[number(with_context(q, 2))] for q in asked.queries]
    folds = []
    plain = {key: np.zeros((len(asked), len(kb.answers)), dtype=np.float32) for key in PLAIN}
    for name in sorted(set(asked.dialogues)):
        rows = [row for row, dialogue in enumerate(asked.dialogues) if dialogue == name]
        gone = repeated_questions(kb, [asked.queries[row] for row in rows], encoder).tolist()
        left = kb.without_questions(gone)
        others = asked.subset(row for row in range(len(asked)) if row not in set(rows))
        fold: dict[str, Any] = {"name": name, "rows": rows}
        for key, known in (("plain", left), ("lessons", add_queries(left, others))):
            pairs = zip(known.pair_question.tolist(), known.pair_answer.tolist(), strict=True)
            fold[key] = [[number(known.questions[question]), answer] for question, answer in pairs]
            for column, (retriever, options, known_by) in PLAIN.items():
                if known_by == key:
                    fitted = make_retriever(retriever, options).fit(known)
                    plain[column][rows] = np.nan_to_num(fitted.scores([asked.queries[row] for row in rows]), nan=0.0)
        folds.append(fold)
    texts = {own: text for text, own in numbers.items()}
    questions = sorted({pair[0] for fold in folds for pair in fold["lessons"]})
    variants = {
        question: [number(one_variant(texts[question], rng, synonyms)) for _ in range(N_VARIANTS)]
        + [number(f"{OPENERS[int(lot)]} {texts[question]}") for lot in rng.permutation(len(OPENERS))[:N_OPENED]]
        for question in questions
    }
    in_context = {forms["turn"][row][0]: forms["context"][row][0] for row in range(len(asked))}
    generated = [(number(text), answer) for answer, own in enumerate(kb.texts) for text in questions_for(own)]
    plan = {
        "generated": generated,
        "answers": [number(text) for text in kb.texts],
        "forms": forms,
        "folds": folds,
        "variants": variants,
        "in_context": in_context,
        "right": [list(right) for right in asked.right],
        "dialogues": list(asked.dialogues),
    }
    tokens = encoder.tokenizer(list(numbers), truncation=True, max_length=MOST_TOKENS)["input_ids"]
    used = np.unique(np.concatenate([np.array(own) for own in tokens]))
    used = np.concatenate([[0], used[used != 0]])
    place = np.zeros(used.max() + 1, dtype=np.int64)
    place[used] = np.arange(len(used))
    weights = {
        name: value.detach().cpu().numpy().astype(np.float16)
        for name, value in encoder.network.state_dict().items()
        if "pooler" not in name and value.is_floating_point()
    }
    words = "embeddings.word_embeddings.weight"
    weights[words] = weights[words][used]
    positions = "embeddings.position_embeddings.weight"
    weights[positions] = weights[positions][: 2 * MOST_TOKENS]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **weights)
    first = [first_word(query.text) for query in asked.queries]
    kind = np.array([0 if word in ASKS_YES_NO else 1 if word in ASKS_FACT else 2 for word in first])
    is_yes_no = np.array([first_word(text) in YES_NO for text in kb.texts])
    np.savez(folder / "plain.npz", kind=kind, yes_no=is_yes_no, **plain)
    plan["tokens"] = [place[own].tolist() for own in tokens]
    (folder / "plan.json").write_text(json.dumps(plan))
    print(f"{len(numbers)} texts, {len(used)} words, {len(asked)} questions of {len(folds)} dialogues")


def read_likelihoods(folder: Path, data: Path, model: str) -> None:
    """Writes, in thousandths, how much likelier each question makes its first answers; -30000 for those that are not read."""
    kb = read_knowledge_base(data / "knowledge_base.csv")
    asked = read_queries(data / "dialogues_dev.csv", kb)
    found = likelihoods(model, asked.queries, kb.texts, first_answers(Trials(folder), N_READ))
    scores = np.where(np.isnan(found), -30000, np.round(1000 * found)).astype(np.int16)
    np.savez_compressed(folder / "scores" / "likelihood.npz", scores=scores[:, :, None])


def main(arguments: Sequence[str]) -> int:
    """Prepare the training, read likelihoods, or print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval_trials")
    parser.add_argument("step", choices=("prepare", "likelihood", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DIALOMETER_DATA", "")) / "mdc")
    parser.add_argument("--model", default="", help="a causal language model by name or folder")
    parser.add_argument("--only", default="", help="rows of the table whose names contain this")
    chosen = parser.parse_args(list(arguments))
    if chosen.step == "table":
        show(chosen.folder, chosen.only)
    elif chosen.step == "likelihood":
        read_likelihoods(chosen.folder, chosen.data, chosen.model)
    else:
        prepare(chosen.folder, chosen.data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
