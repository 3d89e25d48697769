"""Systems under test that raters talk to, one file each, behind one interface."""

from dialometer.agents.interface import Agent, Delta, Reply
from dialometer.registry import Registry

AGENTS: Registry[type[Agent]] = Registry("agent", "dialometer.agents")

__all__ = ["AGENTS", "Agent", "Delta", "Reply"]
