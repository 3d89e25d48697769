"""Peers that need an environment of their own: run there by ``bench.learned``, print what they found as JSON.

Called as ``python _learned_peers.py NAME FOLDER``; the folder holds the arrays.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np


def now() -> np.ndarray:
    """Seconds by the clock and of processor time."""
    return np.array([time.perf_counter(), time.process_time()])


def pydvl(folder: Path) -> np.ndarray:
    """Exact KNN-Shapley of pyDVL, for classes: the only target its nearest neighbours know."""
    from pydvl.valuation.dataset import Dataset  # noqa: PLC0415
    from pydvl.valuation.methods.knn_shapley import KNNShapleyValuation  # noqa: PLC0415
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415

    features, labels, development, wanted = (
        np.load(folder / f"{name}.npy") for name in ("features", "labels", "development", "wanted")
    )
    model = KNeighborsClassifier(n_neighbors=50, algorithm="brute")
    start = now()
    valuation = KNNShapleyValuation(model, Dataset(development, wanted), progress=False)
    valuation.fit(Dataset(features, labels))
    took = now() - start
    np.save(folder / "pydvl.npy", valuation.result.values)
    return took


def cleanlab(folder: Path) -> np.ndarray:
    """Data Shapley of cleanlab: the rated dialogues are their own development set, only the K nearest count."""
    from cleanlab.data_valuation import data_shapley_knn  # noqa: PLC0415

    features, labels = (np.load(folder / f"{name}.npy") for name in ("features", "labels"))
    start = now()
    data_shapley_knn(labels, features=features, k=50)
    return now() - start


def encode(folder: Path) -> np.ndarray:
    """sentence-transformers as it comes: encode() with its defaults, once to warm up on a few texts."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    work = json.loads((folder / "texts.json").read_text())
    model = SentenceTransformer(work["model"], device="cpu")
    model.encode(work["texts"][:8])
    start = now()
    vectors = model.encode(work["texts"])
    took = now() - start
    np.save(folder / "encode.npy", vectors)
    return took


if __name__ == "__main__":
    peer = {"pydvl": pydvl, "cleanlab": cleanlab, "encode": encode}[sys.argv[1]]
    print(json.dumps(peer(Path(sys.argv[2])).tolist()))
