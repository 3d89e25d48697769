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
    from dialometer.analysis.choose import analyse
    from dialometer.analysis.folder import analyse_folder
    from dialometer.design.load import load_study
    from dialometer.errors import DialometerError
    from dialometer.model.estimate import Estimate
    from dialometer.model.report import Report
    from dialometer.model.study import Study
    from dialometer.readers import read_dialogues
    from dialometer.report import render
    from dialometer.storage.store import Store
    from dialometer.table import long_table

_HOMES = {
    "DialometerError": "dialometer.errors",
    "Estimate": "dialometer.model.estimate",
    "Report": "dialometer.model.report",
    "Store": "dialometer.storage.store",
    "Study": "dialometer.model.study",
    "analyse": "dialometer.analysis.choose",
    "analyse_folder": "dialometer.analysis.folder",
    "load_study": "dialometer.design.load",
    "long_table": "dialometer.table",
    "read_dialogues": "dialometer.readers",
    "render": "dialometer.report",
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
    "load_study",
    "long_table",
    "read_dialogues",
    "render",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialometer' has no attribute '{name}'")
    if "IPython" in sys.modules:
        import_module("dialometer.report.notebook").enable()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
