"""Quality rules, one file each: what a session must not do, and what follows if it does."""

from dialometer.model.quality import QualityRule
from dialometer.registry import Registry

RULES: Registry[type[QualityRule]] = Registry("quality rule", "dialometer.quality")

__all__ = ["RULES"]
