"""Recruiting platforms, one file each; other packages add theirs by the entry point ``dialometer.recruit.platforms``."""

from __future__ import annotations

from dialometer.model.recruitment import Recruitment
from dialometer.recruit.platform import Platform
from dialometer.registry import Registry

PLATFORMS: Registry[type[Platform]] = Registry("recruiting platform", "dialometer.recruit.platforms")

__all__ = ["PLATFORMS", "platform_of"]


def platform_of(recruitment: Recruitment) -> Platform:
    """The platform of a study; a preset names a known site of ``platform: redirect``."""
    return PLATFORMS.get(recruitment.preset or recruitment.platform)(recruitment)
