"""Do intervals of human raters corrected by judges hold? ``make calibrate-judges``, or ``python -m bench.calibrate_judges [--write]``.

Studies are simulated with a known truth: people judge a fifth of the items, a judge all of them. The judge is useless (its scores
have nothing to do with quality), good, or biased (it gives two points more, and squeezes the differences). Counted is how often the
95 % interval holds the truth, and how much narrower it is than that of people alone.
Every row has a seed of its own and is kept in a file when it is done, so a run that was stopped goes on where it was, and two may
share the work. ``--write`` puts the table into docs/benchmarks/judges.md.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.stats.judged.means import Corrected, corrected, judged_ratings
from dialometer.stats.judged.strengths import JudgedVotes, judged_strengths, pair_design, strength_contrasts

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "judges.md"
MARKS = "<!-- coverage: written by python -m bench.calibrate_judges --write -->", "<!-- end of coverage -->"
SIZES = (50, 200, 1000)
JUDGES = ("useless", "good", "biased")
NOISE, SEVERITY, JUDGE_NOISE = 0.7, 0.5, 0.5
PER_ITEM, SHARE = 2, 0.2
Floats = np.ndarray


def scores(judge: str, quality: Floats, rng: np.random.Generator) -> Floats:
    """What the judge says of items of this quality."""
    known = {"useless": 0 * quality, "good": quality, "biased": 2 + 0.5 * quality}[judge]
    return np.asarray(known + rng.normal(scale=JUDGE_NOISE, size=quality.shape))


def _mean(n: int, judge: str, rng: np.random.Generator) -> Corrected:
    """One mean; every judgment is of another rater on another item."""
    quality = rng.normal(size=round(n / SHARE))
    value = quality[:n] + rng.normal(scale=NOISE, size=n)
    data = judged_ratings(value, np.arange(n), scores(judge, quality, rng), np.arange(len(quality)))
    return corrected(data, {"0": 1.0})


THRESHOLD = 0.5
TRUE_SHARE = float(stats.norm.cdf(THRESHOLD / math.hypot(1, NOISE)))


def _share(n: int, judge: str, rng: np.random.Generator) -> Corrected:
    """A share of votes; the judge's scores are probabilities."""
    quality = rng.normal(size=round(n / SHARE))
    vote = (quality[:n] + rng.normal(scale=NOISE, size=n) > -THRESHOLD) * 1.0
    judged = 1 / (1 + np.exp(-scores(judge, quality, rng)))
    data = judged_ratings(vote, np.arange(n), judged, np.arange(len(quality)))
    return corrected(data, {"0": 1.0}, null=0.5, is_share=True)


def _crossed(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Items and raters of ``n`` judgments: two on each item, about five by each rater."""
    item, n_raters = np.repeat(np.arange(n // PER_ITEM), PER_ITEM), n // 5
    rater = np.concatenate([rng.permutation(n_raters) for _ in range(-(-n // n_raters))])[:n]
    return item, rater


def _clustered(n: int, judge: str, rng: np.random.Generator) -> Corrected:
    """One mean; raters differ in severity and judge about five items each, every item is judged twice."""
    item, rater = _crossed(n, rng)
    quality = rng.normal(size=round(n / PER_ITEM / SHARE))
    severity = rng.normal(scale=SEVERITY, size=int(rater.max()) + 1)
    value = quality[item] + severity[rater] + rng.normal(scale=NOISE, size=n)
    data = judged_ratings(value, item, scores(judge, quality, rng), np.arange(len(quality)), raters=rater)
    return corrected(data, {"0": 1.0})


def _difference(n: int, judge: str, rng: np.random.Generator) -> Corrected:
    """Two systems on the same items, both judged by the same raters; ``n`` counts judgments of pairs."""
    item, rater = _crossed(n, rng)
    quality = rng.normal(size=(round(n / PER_ITEM / SHARE), 2))
    leaning = rng.normal(scale=SEVERITY / 2, size=(int(rater.max()) + 1, 2))
    value = quality[item] + leaning[rater] + rng.normal(scale=NOISE, size=(n, 2))
    groups = np.repeat(["a", "b"], n)
    judged, names = scores(judge, quality, rng), np.repeat(["a", "b"], len(quality))
    items = np.tile(np.arange(len(quality)), 2)
    data = judged_ratings(
        value.T.ravel(),
        np.tile(item, 2),
        judged.T.ravel(),
        items,
        raters=np.tile(rater, 2),
        groups=groups,
        judge_groups=names,
    )
    return corrected(data, {"a": 1.0, "b": -1.0})


def _stratified(n: int, judge: str, rng: np.random.Generator) -> Corrected:
    """Two strata: a tenth of the one is judged, three tenths of the other, whose quality is higher."""
    sizes = {"low": round(n / SHARE / 2), "high": round(n / SHARE / 2)}
    stratum = np.repeat(list(sizes), list(sizes.values()))
    quality = rng.normal(size=len(stratum)) + (stratum == "high") - 0.5
    take = {"low": round(0.1 * sizes["low"]), "high": round(0.3 * sizes["high"])}
    rated = np.concatenate([np.flatnonzero(stratum == name)[: take[name]] for name in sizes])
    value = quality[rated] + rng.normal(scale=NOISE, size=len(rated))
    strata = dict(zip(map(str, range(len(stratum))), stratum, strict=True))
    data = judged_ratings(value, rated, scores(judge, quality, rng), np.arange(len(stratum)), strata=strata)
    return corrected(data, {"0": 1.0})


def _strength(n: int, judge: str, rng: np.random.Generator) -> Corrected:
    """Three equal systems in pairs: the first one's Bradley-Terry strength; a vote on each item."""
    n_all = round(n / SHARE)
    first = rng.integers(0, 3, n_all)
    second = (first + rng.integers(1, 3, n_all)) % 3
    quality = rng.logistic(size=n_all)
    vote = (quality > 0) * 1.0
    judged = 1 / (1 + np.exp(-scores(judge, quality / 1.8, rng)))
    rows = pair_design(first, second, 3)
    votes = JudgedVotes(rows[:n], vote[:n], judged[:n], rows[n:], judged[n:], np.arange(n), np.arange(n, n_all))
    return judged_strengths(votes, {"a": strength_contrasts(["a", "b", "c"])["a"]})["a"]


@dataclass(frozen=True)
class Case:
    """A kind of study: how one is drawn and analysed, and what is true in it."""

    label: str
    draw: Callable[[int, str, np.random.Generator], Corrected]
    truth: float = 0.0


CASES = (
    Case("mean", _mean),
    Case("share of votes", _share, TRUE_SHARE),
    Case("mean, raters judge often", _clustered),
    Case("difference of two systems, raters judge often", _difference),
    Case("mean, two strata with unequal shares", _stratified),
    Case("Bradley-Terry strength", _strength),
)


@dataclass(frozen=True)
class Row:
    """What came out of one case, judge and number of human judgments."""

    case: str
    judge: str
    n: int
    n_studies: int
    people: float
    both: float
    narrower: float
    worth: float


def run(case: Case, judge: str, n: int, n_studies: int, seed: int) -> Row:
    """So many studies of one kind."""
    rng = np.random.default_rng([seed, CASES.index(case), JUDGES.index(judge), n])
    covered, narrower, worth, done = np.zeros(2), 0.0, 0.0, 0
    for _ in range(n_studies):
        try:
            result = case.draw(n, judge, rng)
        except NotEnoughData:
            continue
        done += 1
        covered += [part.low <= case.truth <= part.high for part in (result.people, result.both)]
        narrower += result.narrower
        worth += result.n_worth / result.both.n
    return Row(case.label, judge, n, done, *(covered / done), narrower / done, worth / done)


def kept(path: Path) -> dict[tuple[str, str, int], Row]:
    """Rows of earlier runs."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(row.case, row.judge, row.n): row for row in (Row(**json.loads(line)) for line in lines)}


def on_page() -> dict[tuple[str, str, int], Row]:
    """Rows of the table in the documentation, with its rounding."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").split(MARKS[0])[1].split(MARKS[1])[0].splitlines():
        cells = [
            cell.strip(" ⚠%×").replace(",", "") if place else cell.strip()
            for place, cell in enumerate(line.split("|")[1:-1])
        ]
        if len(cells) == 8 and cells[1] in JUDGES:
            n, n_studies, people, both, narrower, worth = map(float, cells[2:])
            key = (cells[0].replace("  ", " "), cells[1], int(n))
            rows[key] = Row(*key, int(n_studies), people / 100, both / 100, narrower / 100, worth)
    return rows


def table(rows: list[Row]) -> str:
    """As Markdown; a coverage outside 94 to 96 % beyond chance is marked."""
    lines = [
        "| what is estimated | judge | human judgments | studies | people alone | both | narrower | worth |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        error = math.sqrt(0.95 * 0.05 / row.n_studies)
        mark = " ⚠" if abs(row.both - 0.95) > 0.01 + 2 * error else ""
        cells = (row.case, row.judge, f"{row.n:,}", f"{row.n_studies:,}", f"{row.people:.1%}", f"{row.both:.1%}{mark}")
        lines.append(f"| {' | '.join(cells)} | {row.narrower:.0%} | × {row.worth:.2f} |")
    outside = [row for row in rows if "⚠" in lines[2 + rows.index(row)]]
    within = sum(0.94 <= row.both <= 0.96 for row in rows)
    lines += [
        "",
        f"{within} of {len(rows)} rows lie within 94.0 and 96.0 %; {len(outside)} {'lies' if len(outside) == 1 else 'lie'} "
        f"more than two standard errors below 94 % or above 96 %. Mean over all rows: {np.mean([row.both for row in rows]):.2%} "
        f"for both, {np.mean([row.people for row in rows]):.2%} for people alone.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--studies", type=int, default=2000, help="how many of each kind (those of 1,000 judgments: half)"
    )
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--kept", type=Path, default=Path("calibrate-judges.jsonl"), help="where rows are kept")
    parser.add_argument("--backwards", action="store_true", help="begin with the last row, beside another run")
    parser.add_argument(
        "--outside",
        action="store_true",
        help="only rows of the page that lie outside 94 to 96 %%; all others stay as they are",
    )
    parser.add_argument(
        "--only", help="only rows whose kind holds these words; all others stay as they are on the page"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks/judges.md")
    given = parser.parse_args()
    wanted = [(case, judge, n) for case in CASES for judge in JUDGES for n in SIZES]
    before = on_page() if given.outside or given.only else {}
    settled = {
        key: row
        for key, row in before.items()
        if (given.outside and 0.94 <= row.both <= 0.96) or (given.only and given.only not in row.case)
    }
    for case, judge, n in reversed(wanted) if given.backwards else wanted:
        if (case.label, judge, n) in settled or (case.label, judge, n) in kept(given.kept):
            continue
        begin = time.process_time()
        row = run(case, judge, n, given.studies // (2 if n >= 1000 else 1), given.seed)
        with given.kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")
        print(
            f"{row.case}, {judge}, {n}: people {row.people:.1%}, both {row.both:.1%}, {row.narrower:.0%} narrower "
            f"({time.process_time() - begin:.0f} s)",
            flush=True,
        )
    done = settled | kept(given.kept)
    rows = [done[case.label, judge, n] for case, judge, n in wanted]
    text = table(rows)
    print("\n" + text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(MARKS[0])
        _, after = rest.split(MARKS[1])
        PAGE.write_text(f"{head}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
