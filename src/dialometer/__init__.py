"""dialometer: which conversational agent is better, by how much, and can the answer be trusted?

The few names that a whole analysis needs; each is loaded when first used, so that importing the package costs nothing.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialometer._version import __version__

# Read by OpenMP when a numerical library is loaded. Its threads would else spin while they wait, and on a busy machine take the
# processor from what they wait for: training a small encoder takes seven times the processor's time there, and on an idle
# machine a tenth less.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from dialometer.analysis.base.choose import analyse, analyse_folder
    from dialometer.design.load import load_study
    from dialometer.errors import DialometerError
    from dialometer.learned.data.rated import read_ratings
    from dialometer.model.estimate import Estimate
    from dialometer.model.report import Report
    from dialometer.model.study import Study
    from dialometer.public.evaluators import (
        load_evaluator,
        report_evaluator,
        score_dialogues,
        simulate_ratings,
        train_evaluator,
    )
    from dialometer.public.frames import to_frame, to_pandas
    from dialometer.public.judged import compare, equivalence, icc
    from dialometer.public.leaderboards import leaderboard, leaderboard_with_covariates
    from dialometer.public.models import generalizability, ordinal_model, rater_severity
    from dialometer.public.retrievers import evaluate_retrievers
    from dialometer.public.statistics import bootstrap, compute, dawid_skene, fleiss_kappa, gwet, mace, statistics
    from dialometer.public.studies import new_study, power, read_judgments, simulate_raters
    from dialometer.readers import read_dialogues
    from dialometer.report import render
    from dialometer.stats.clustered.preference import mcnemar
    from dialometer.stats.clustered.proportion import proportion_difference
    from dialometer.stats.effects.correlation import kendall, pearson, spearman
    from dialometer.stats.effects.effect_size import hedges_g
    from dialometer.stats.effects.permutation import permutation_two_groups
    from dialometer.stats.effects.ranks import friedman, wilcoxon_signed_rank
    from dialometer.stats.effects.two_groups import mann_whitney
    from dialometer.stats.judged.bootstrap import judged_mean_bootstrap
    from dialometer.stats.judged.means import judged_mean
    from dialometer.storage.store import Store
    from dialometer.storage.table import long_table

_HOMES = {
    "DialometerError": "dialometer.errors",
    "Estimate": "dialometer.model.estimate",
    "Report": "dialometer.model.report",
    "Store": "dialometer.storage.store",
    "Study": "dialometer.model.study",
    "analyse": "dialometer.analysis.base.choose",
    "analyse_folder": "dialometer.analysis.base.choose",
    "bootstrap": "dialometer.public.statistics",
    "compare": "dialometer.public.judged",
    "compute": "dialometer.public.statistics",
    "dawid_skene": "dialometer.public.statistics",
    "equivalence": "dialometer.public.judged",
    "evaluate_retrievers": "dialometer.public.retrievers",
    "fleiss_kappa": "dialometer.public.statistics",
    "friedman": "dialometer.stats.effects.ranks",
    "generalizability": "dialometer.public.models",
    "gwet": "dialometer.public.statistics",
    "hedges_g": "dialometer.stats.effects.effect_size",
    "icc": "dialometer.public.judged",
    "judged_mean": "dialometer.stats.judged.means",
    "judged_mean_bootstrap": "dialometer.stats.judged.bootstrap",
    "kendall": "dialometer.stats.effects.correlation",
    "leaderboard": "dialometer.public.leaderboards",
    "leaderboard_with_covariates": "dialometer.public.leaderboards",
    "load_evaluator": "dialometer.public.evaluators",
    "load_study": "dialometer.design.load",
    "long_table": "dialometer.storage.table",
    "mace": "dialometer.public.statistics",
    "mann_whitney": "dialometer.stats.effects.two_groups",
    "mcnemar": "dialometer.stats.clustered.preference",
    "new_study": "dialometer.public.studies",
    "ordinal_model": "dialometer.public.models",
    "pearson": "dialometer.stats.effects.correlation",
    "permutation_two_groups": "dialometer.stats.effects.permutation",
    "power": "dialometer.public.studies",
    "proportion_difference": "dialometer.stats.clustered.proportion",
    "rater_severity": "dialometer.public.models",
    "read_dialogues": "dialometer.readers",
    "read_judgments": "dialometer.public.studies",
    "read_ratings": "dialometer.learned.data.rated",
    "render": "dialometer.report",
    "report_evaluator": "dialometer.public.evaluators",
    "score_dialogues": "dialometer.public.evaluators",
    "simulate_raters": "dialometer.public.studies",
    "simulate_ratings": "dialometer.public.evaluators",
    "spearman": "dialometer.stats.effects.correlation",
    "statistics": "dialometer.public.statistics",
    "to_frame": "dialometer.public.frames",
    "to_pandas": "dialometer.public.frames",
    "train_evaluator": "dialometer.public.evaluators",
    "wilcoxon_signed_rank": "dialometer.stats.effects.ranks",
}

__all__ = [
    "DialometerError",
    "Estimate",
    "Report",
    "Store",
    "Study",
    "__version__",
    "analyse",
    "analyse_folder",
    "bootstrap",
    "compare",
    "compute",
    "dawid_skene",
    "equivalence",
    "evaluate_retrievers",
    "fleiss_kappa",
    "friedman",
    "generalizability",
    "gwet",
    "hedges_g",
    "icc",
    "judged_mean",
    "judged_mean_bootstrap",
    "kendall",
    "leaderboard",
    "leaderboard_with_covariates",
    "load_evaluator",
    "load_study",
    "long_table",
    "mace",
    "mann_whitney",
    "mcnemar",
    "new_study",
    "ordinal_model",
    "pearson",
    "permutation_two_groups",
    "power",
    "proportion_difference",
    "rater_severity",
    "read_dialogues",
    "read_judgments",
    "read_ratings",
    "render",
    "report_evaluator",
    "score_dialogues",
    "simulate_raters",
    "simulate_ratings",
    "spearman",
    "statistics",
    "to_frame",
    "to_pandas",
    "train_evaluator",
    "wilcoxon_signed_rank",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialometer' has no attribute '{name}'")
    if "IPython" in sys.modules:
        import_module("dialometer.report.notebook").enable()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
