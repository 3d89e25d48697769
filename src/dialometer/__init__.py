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
    from dialometer.public.judged import compare, icc
    from dialometer.public.retrievers import evaluate_retrievers
    from dialometer.public.studies import new_study, power, read_judgments, simulate_raters
    from dialometer.readers import read_dialogues
    from dialometer.report import render
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
    "compare": "dialometer.public.judged",
    "evaluate_retrievers": "dialometer.public.retrievers",
    "icc": "dialometer.public.judged",
    "load_evaluator": "dialometer.public.evaluators",
    "load_study": "dialometer.design.load",
    "long_table": "dialometer.storage.table",
    "new_study": "dialometer.public.studies",
    "power": "dialometer.public.studies",
    "read_dialogues": "dialometer.readers",
    "read_judgments": "dialometer.public.studies",
    "read_ratings": "dialometer.learned.data.rated",
    "render": "dialometer.report",
    "report_evaluator": "dialometer.public.evaluators",
    "score_dialogues": "dialometer.public.evaluators",
    "simulate_raters": "dialometer.public.studies",
    "simulate_ratings": "dialometer.public.evaluators",
    "train_evaluator": "dialometer.public.evaluators",
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
    "compare",
    "evaluate_retrievers",
    "icc",
    "load_evaluator",
    "load_study",
    "long_table",
    "new_study",
    "power",
    "read_dialogues",
    "read_judgments",
    "read_ratings",
    "render",
    "report_evaluator",
    "score_dialogues",
    "simulate_raters",
    "simulate_ratings",
    "train_evaluator",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialometer' has no attribute '{name}'")
    if "IPython" in sys.modules:
        import_module("dialometer.report.notebook").enable()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
