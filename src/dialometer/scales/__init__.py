"""Rating scales, one file each. A scale turns a raw answer into a value or says in words why it cannot."""

from dialometer.model.scale import Scale
from dialometer.registry import Registry

SCALES: Registry[type[Scale]] = Registry("scale", "dialometer.scales")

__all__ = ["SCALES"]
