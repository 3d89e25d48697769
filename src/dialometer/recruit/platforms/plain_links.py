"""Sites that need nothing but a link: they send raters by parameters and take them back at an address or with a code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dialometer.recruit.platform import Platform
from dialometer.recruit.platforms import PLATFORMS


@PLATFORMS.register("link")
class OpenLink(Platform):
    """Everybody who opens the address is a new rater."""

    label = "an open link"
    is_open = True


@PLATFORMS.register("redirect")
class Redirect(Platform):
    """Any site whose parameters and way back the study file gives."""

    label = "a link with parameters"
    arrival: ClassVar[Mapping[str, str]] = {"rater": "rater"}
    link = "?rater=…"


@PLATFORMS.register("connect")
class Connect(Platform):
    """CloudResearch Connect, which adds its parameters by itself; ``return_url`` is the project's redirect address."""

    label = "CloudResearch Connect"
    arrival: ClassVar[Mapping[str, str]] = {"rater": "participantId", "session": "assignmentId", "study": "projectId"}
    qualifications: ClassVar[Mapping[str, str]] = {
        "min_approval_percent": "approval rating",
        "min_earlier_tasks": "number of completed projects",
        "max_earlier_tasks": "number of completed projects",
        "countries": "country",
        "platform_filters": "audience",
    }


@PLATFORMS.register("sona")
class Sona(Platform):
    """SONA puts a number of its own into the address; its completion address takes it back as ``survey_code``."""

    label = "SONA"
    arrival: ClassVar[Mapping[str, str]] = {"rater": "survey_code"}
    link = "?survey_code=%SURVEY_CODE%"


@PLATFORMS.register("mturk")
class MechanicalTurk(Platform):
    """Sites that work like Mechanical Turk."""

    label = "Mechanical Turk"
    arrival: ClassVar[Mapping[str, str]] = {"rater": "workerId", "session": "assignmentId", "study": "hitId"}
    qualifications: ClassVar[Mapping[str, str]] = {
        "min_approval_percent": "HIT approval rate",
        "min_earlier_tasks": "number of HITs approved",
        "max_earlier_tasks": "number of HITs approved",
        "countries": "location",
        "platform_filters": "qualifications",
    }
