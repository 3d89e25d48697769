"""Real pairs with a judge's verdicts: ``python -m bench.judged_pairs [FILE] [--write]``; FILE is autoj.jsonl.gz of the Auto-J data.

Li et al. (Auto-J, ICLR 2024): 1,392 pairs of responses in 58 scenarios with human labels and the verdicts of one judge in both orders.
A tenth of the human labels is drawn 1,000 times. The share of choices for the first response is estimated by people alone, by the
judge alone and by both, and set beside the truth of all labels: how often the interval holds it, and how wide it is. The pairs are all
that the claim is about, so items are fixed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from pathlib import Path

import numpy as np

from bench.calibrate_judges import PAGE
from dialometer.stats.judged.means import corrected, judged_ratings

FILE = Path(os.environ.get("DIALOMETER_DATA", "data")) / "judged_pairs" / "autoj.jsonl.gz"
MARKS = "<!-- pairs: written by python -m bench.judged_pairs --write -->", "<!-- end of pairs -->"
N_DRAWS, SHARE, SEED = 1000, 0.1, 4
POINTS = {"first": 1.0, "tie": 0.5, "second": 0.0}
KINDS = {
    "writing": ("writing_", "creative_writing", "functional_writing", "roleplay"),
    "code and exams": ("code_", "explaining_code", "data_analysis", "math_", "solving_"),
    "rewriting and summaries": (
        "_summarization",
        "_rewriting",
        "polishing",
        "paraphras",
        "text_",
        "title_",
        "keywords",
    ),
    "questions and advice": ("",),
}
"""Scenarios in four groups by their names: a tenth of one scenario would be two pairs."""


def kind_of(scenario: str) -> str:
    """The group of a scenario, the first that its name fits."""
    return next(kind for kind, words in KINDS.items() if any(word in scenario for word in words))


def knowing_the_judge(human: np.ndarray, first: np.ndarray, exchanged: np.ndarray) -> list[str]:
    """Consistency over the two orders, agreement with people, and the advantage of the place."""
    same = first == exchanged
    in_first = np.concatenate([first[first != 0.5] == 1, exchanged[exchanged != 0.5] == 0])
    return [
        f"- The two orders agree in {same.mean():.1%} of pairs.",
        f"- Both orders agree with people in {(same & (first == human)).mean():.1%}; one order in {(first == human).mean():.1%}, and "
        f"with flips as ties {(np.where(same, first, 0.5) == human).mean():.1%}.",
        f"- The response shown first is chosen in {in_first.mean():.1%} of decided verdicts (50 % without position bias).",
    ]


def coverage(human: np.ndarray, judge: np.ndarray, rng: np.random.Generator) -> tuple[float, ...]:
    """Over many draws of a tenth of the labels: coverage of people, judge and both, mean widths, and what the judge was worth."""
    truth, n, items = human.mean(), round(SHARE * len(human)), np.arange(len(human))
    found = []
    for _ in range(N_DRAWS):
        rated = rng.permutation(len(human))[:n]
        result = corrected(
            judged_ratings(human[rated], rated, judge, items, has_fixed_items=True), {"0": 1.0}, null=0.5, is_share=True
        )
        widths = (result.people.high - result.people.low, result.both.high - result.both.low)
        holds = (part.low <= truth <= part.high for part in (result.people, result.both))
        error = (abs(result.people.value - truth), abs(result.both.value - truth))
        found.append((*holds, *widths, *error, result.n_worth / n))
    return tuple(np.mean(found, axis=0))


def table(path: Path) -> str:
    """The findings as Markdown."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    human, first, exchanged = (
        np.array([POINTS[row[key]] for row in rows]) for key in ("human", "judge", "judge_exchanged")
    )
    judge = (first + exchanged) / 2  # a verdict that flips with the order is a tie
    kinds = np.array([kind_of(row["scenario"]) for row in rows])
    lines = [*knowing_the_judge(human, first, exchanged), ""]
    lines += [
        "| scenarios | pairs | labels drawn | truth | judge alone | coverage: people | both | narrower | mean error: people | both "
        "| worth |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    rng = np.random.default_rng(SEED)
    for name in ("all", *KINDS):
        own = np.ones(len(rows), dtype=bool) if name == "all" else kinds == name
        people, both, before, after, error, corrected_error, worth = coverage(human[own], judge[own], rng)
        lines.append(
            f"| {name} | {own.sum():,} | {round(SHARE * own.sum())} | {human[own].mean():.1%} | {judge[own].mean():.1%} | "
            f"{people:.1%} | {both:.1%} | {1 - after / before:.0%} | {error:.3f} | {corrected_error:.3f} | × {worth:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=FILE)
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks/judges.md")
    given, _ = parser.parse_known_args()
    if not given.file.exists():
        print(f"{given.file} is missing: give the path of autoj.jsonl.gz")
        return
    text = table(given.file)
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
