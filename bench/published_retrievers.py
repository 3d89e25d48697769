"""The retrievers of Chierici and Habash (2021) with their settings, measured on the Margarita corpus's development part.

``python -m bench.published_retrievers FOLDER --out results.json``, where FOLDER holds ``knowledge_base.csv`` and
``dialogues_dev.csv``. Training takes minutes on a GPU; ``-r bert-q-a-1-1`` measures one alone. Recall counts right answers over
all questions together, as the paper does.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from dialometer.neural.work import Work
from dialometer.retrieval.evaluate_retrievers import relevant_ranks
from dialometer.retrieval.evaluation import CUTOFFS, metric_values
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.published import ALL_PUBLISHED
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.selection import fit_or_load, retriever_label, select_retrievers
from dialometer.retrieval.training.augment import find_wordnet
from dialometer.stats.retrieval.metrics import RelevantRanks


def measured(ranks: RelevantRanks) -> dict[str, float]:
    """All metrics in percent."""
    means = {name: 100 * float(np.nanmean(values)) for name, values in metric_values(ranks).items()}
    total = int(ranks.n_relevant.sum())
    return {**means, **{f"R@{k}": 100 * float((ranks.rank <= k).sum()) / total for k in CUTOFFS}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-r", dest="retrievers", action="append")
    parser.add_argument("--model", default="", help="Encoder for those that have one.")
    parser.add_argument("--seeds", type=int, default=1, help="Trainings of each.")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    kb = read_knowledge_base(asked.folder / "knowledge_base.csv")
    query_set = read_queries(asked.folder / "dialogues_dev.csv", kb)
    relevant = query_set.relevance(len(kb.answers))
    print(f"synonyms: {'WordNet' if find_wordnet() else 'nearest words of the encoder'}", flush=True)
    results = []
    for name, retriever in select_retrievers(asked.retrievers or ALL_PUBLISHED).items():
        n_seeds = asked.seeds if "seed" in type(retriever).model_fields else 1
        for seed in range(asked.first_seed, asked.first_seed + n_seeds):
            own = {"model": asked.model, "seed": seed}
            made = retriever.model_copy(update={key: own[key] for key in own if key in type(retriever).model_fields})
            began = time.monotonic()
            fitted = fit_or_load(made, kb, Work())
            trained_s = time.monotonic() - began
            values = measured(relevant_ranks(fitted, query_set, [relevant])[0])
            row = {"name": name, "label": retriever_label(name, made), "seed": seed, "fitting_s": trained_s, **values}
            results.append(row)
            print(json.dumps({key: round(v, 2) if isinstance(v, float) else v for key, v in row.items()}), flush=True)
            if asked.out:
                asked.out.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
