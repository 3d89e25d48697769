"""What is tried: designs, and for each how much raters and items differ, how many raters there are, and what is planted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from dialometer.analysis.planning.simulated_study import Assumptions, resized
from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.model.study import Study
from dialometer.scales.choice import Choice

TEMPLATES = (
    *("strategies", "acute", "best-worst", "anchoring", "likert", "chat", "avatar"),
    *("compare", "wizard", "arena", "pairs", "rubric", "mqm"),
)
IMPORTED = ("ratings-crossed", "ratings-nested")
"""Ratings as they are imported: raters judge one system per item, which all systems share or which shows only that one."""
NOMINAL = "nominal"
"""Criteria answered by categories without an order: the best-worst template, in which raters name the dialogue act instead."""
ACTS = ["Question", "Advice", "Sympathy", "Small talk"]
DESIGNS = (*TEMPLATES, *IMPORTED, NOMINAL)
FEW = {"strategies": 20, "acute": 8, "best-worst": 8, "anchoring": 16, "likert": 10, "chat": 16, "avatar": 8}
FEW |= {"compare": 10, "wizard": 16, "arena": 20, "pairs": 8, "rubric": 9, "mqm": 6}
FEW[NOMINAL] = FEW["best-worst"]
MANY = {"strategies": 60, "acute": 15, "best-worst": 24, "anchoring": 40, "likert": 30, "chat": 60, "avatar": 20}
MANY |= {"compare": 30, "wizard": 30, "arena": 60, "pairs": 24, "rubric": 27, "mqm": 20}
MANY[NOMINAL] = MANY["best-worst"]
EFFECT = {
    "acute": 1.5,
    "anchoring": 0.8,
    "chat": 0.5,
    "likert": 0.5,
    "strategies": 0.8,
    "best-worst": 0.5,
    "avatar": 1.0,
    "compare": 0.5,
    "wizard": 0.5,
    "arena": 0.8,
    "pairs": 0.8,
    "rubric": 0.5,
    "mqm": 0.8,
    NOMINAL: 0.8,
}
"""Planted in cells with an effect: sizes at which a test neither always nor never finds it."""
ITEMS = {"strategies": 40}
"""Items in cells with an effect, where those of the template are too few to find any."""
POWER_STUDIES = dict.fromkeys(("likert", "anchoring", *IMPORTED, NOMINAL), 1000)
"""Studies with an effect where 400 left more than three points open between the power promised and found."""
SECONDS = {
    "strategies": 0.12,
    "acute": 0.35,
    "best-worst": 0.1,
    "anchoring": 0.7,
    "likert": 0.35,
    "chat": 0.3,
    "avatar": 1.0,
    "compare": 0.4,
    "wizard": 1.0,
    "arena": 0.3,
    "pairs": 0.4,
    "rubric": 0.15,
    "mqm": 0.4,
    "ratings-crossed": 0.15,
    "ratings-nested": 0.15,
    NOMINAL: 0.15,
}
"""Seconds of one whole analysis on one core, for the estimate of the cost before anything is measured."""
TEST_SECONDS = {"likert": 0.05, "anchoring": 0.06, "acute": 0.04}


Kind = Literal["tests", "report", "walked"]
WORST = Assumptions(item_sd=0.6, taste_sd=0.4, careless=0.05)
"""Where false claims are most likely: items and raters differ most, some are careless."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the table.

    ``kind``: only the primary tests are made, or the whole answer of the report, or raters also walk through every screen
    of the study and a database.
    """

    design: str
    n_raters: int
    effect: float
    assumed: Assumptions
    kind: Kind
    n_studies: int
    n_items: int | None = None

    @property
    def name(self) -> str:
        """The name of its file and of ``--only``."""
        a = self.assumed
        parts = [
            self.design,
            self.kind,
            "null" if not self.effect else f"effect{self.effect:g}",
            f"r{self.n_raters}",
            *([f"n{self.n_items}"] if self.n_items else []),
            f"item{a.item_sd:g}",
            f"taste{a.taste_sd:g}",
            f"careless{100 * a.careless:g}",
        ]
        return "_".join(parts)

    @property
    def seconds(self) -> float:
        """About how long all its studies take on one core."""
        each = TEST_SECONDS.get(self.design, 0.025) if self.kind == "tests" else SECONDS[self.design]
        if self.kind == "walked":
            each += self.n_raters * (0.3 if self.design == "anchoring" else 0.1)  # every screen of every rater
        return self.n_studies * each


def study_of(design: str, n_items: int | None = None) -> Study:
    """The study of a design, resized where that is asked."""
    if design == NOMINAL:
        study = _nominal()
    elif design in IMPORTED:
        study = _imported(design)
    else:
        study = load_study(template_folder(design))
    return study if n_items is None else resized(study, n_items)


@lru_cache
def cached_study(design: str, n_items: int | None) -> Study:
    return study_of(design, n_items)


def _imported(design: str) -> Study:
    """The ratings of the Likert template as an imported table has them, without quality rules."""
    study = load_study(template_folder("likert"))
    gold = study.gold_ids
    items = [item for item in study.rated_items if item.id not in gold]
    if design == "ratings-nested":
        items = [
            replace(item, id=f"{item.id}-{system}", responses={system: text})
            for item in items
            for system, text in item.responses.items()
        ]
    is_crossed = design == "ratings-crossed"
    shown = {"n_practice_items": 0, "items_per_rater": 10 if is_crossed else 30}
    if is_crossed:
        shown["systems_per_item"] = 1
    spec = study.spec.model_copy(
        update={
            "quality": [],
            "criteria": [c for c in study.spec.criteria if c.name == "helpfulness"],
            "design": study.spec.design.model_copy(update=shown),
            "analysis": study.spec.analysis.model_copy(
                update={
                    "comparisons": [c for c in study.spec.analysis.comparisons if c.name == "system_helpfulness"],
                    "subgroups": [],
                }
            ),
        }
    )
    return Study(spec=spec, items=tuple(items), texts=study.texts)


def _nominal() -> Study:
    """The best-worst template with a choice of dialogue acts for every criterion, and without the rules for best and worst."""
    study = load_study(template_folder("best-worst"))
    used = {criterion.scale for criterion in study.spec.criteria}
    scales = {name: Choice(options=ACTS) if name in used else scale for name, scale in study.spec.scales.items()}
    return replace(study, spec=study.spec.model_copy(update={"scales": scales, "quality": []}))


def _cells_of(design: str, n_tests: int, n_whole: int) -> list[Cell]:
    few, many = FEW.get(design, 12), MANY.get(design, 30)
    effect, n_items = EFFECT.get(design, 0.6), ITEMS.get(design)
    cells = []
    for item_sd in (0.6, 0.3, 0.0):
        for taste_sd in (0.4, 0.0):
            for careless in (0.0, 0.05):
                assumed = Assumptions(item_sd=item_sd, taste_sd=taste_sd, careless=careless)
                decides = assumed == WORST  # whole answers are made there
                for n_raters in (many, few):
                    kind: Kind = "report" if decides else "tests"
                    cells.append(Cell(design, n_raters, 0.0, assumed, kind, n_whole if decides else n_tests))
                if careless and (taste_sd > 0) == (item_sd > 0):
                    n_power = max(n_tests, POWER_STUDIES.get(design, 0)) if item_sd == 0.6 else n_tests
                    cells.append(Cell(design, many, effect, assumed, "tests", n_power, n_items))
                    if item_sd == 0.6:
                        cells.append(Cell(design, many, effect, assumed, "report", n_whole, n_items))
    return cells


def all_cells(n_tests: int = 1000, n_whole: int = 400) -> list[Cell]:
    """Every cell of the table, those that decide first: whole answers without an effect, then with one, then the tests."""
    cells = [cell for design in DESIGNS for cell in _cells_of(design, n_tests, n_whole)]
    cells += [
        Cell("strategies", 60, effect, Assumptions(), "tests", n_tests, n_items)
        for effect in (0.0, 0.8)
        for n_items in (20, 40)
    ]
    # What was found before: two transcript pairs a strategy (and one, where no general claim is possible), and acute with few.
    cells += [Cell("strategies", 60, 0.0, WORST, "report", n_whole, n_items) for n_items in (5, 10)]
    cells += [Cell("acute", n_raters, EFFECT["acute"], WORST, "tests", n_tests) for n_raters in (6, 8)]
    cells += [
        Cell(
            design,
            FEW[design] if design == "anchoring" else MANY[design],
            EFFECT.get(design, 0.6),
            Assumptions(),
            "walked",
            100,
            ITEMS.get(design),
        )
        for design in ("acute", "best-worst", "likert", "strategies", "anchoring")
    ]
    order = ("report", "tests", "walked")
    return sorted(cells, key=lambda cell: (order.index(cell.kind), cell.effect != 0, -cell.assumed.item_sd))


def short_cells(n_studies: int = 40) -> list[Cell]:
    """The few that run among the tests of the project: one null design of each kind where errors were most frequent."""
    worst = Assumptions(item_sd=0.6, taste_sd=0.4, careless=0.0)
    designs = ("strategies", "acute", "best-worst", "ratings-crossed", "ratings-nested", "chat")
    return [Cell(design, MANY.get(design, 30), 0.0, worst, "tests", n_studies) for design in designs]
