"""Sites that send raters by a link with parameters: what they call them, and where finished raters go back to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dialometer.model.recruitment import Recruitment

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.\-]+)\}")


@dataclass(frozen=True, slots=True)
class Site:
    """``parameters`` maps rater, session and study to the names in the link; ``return_url`` is empty where the site
    gives every project an address of its own. ``link`` is what to enter there, after the study's address."""

    parameters: Mapping[str, str]
    return_url: str = ""
    link: str = ""


INVITATION = "invite"
SITES: Mapping[str, Site] = {
    "invite": Site({"rater": INVITATION}),
    "redirect": Site({"rater": "rater"}, link="?rater=…"),
    "prolific": Site(
        {"rater": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"},
        "https://app.prolific.com/submissions/complete?cc={code}",
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    ),
    # CloudResearch Connect adds these by itself; a project's redirect address goes into return_url.
    "connect": Site({"rater": "participantId", "session": "assignmentId", "study": "projectId"}),
    # SONA puts a number of its own into the address; its completion address takes it back as survey_code.
    "sona": Site({"rater": "survey_code"}, link="?survey_code=%SURVEY_CODE%"),
    # Sites in the manner of Mechanical Turk.
    "mturk": Site({"rater": "workerId", "session": "assignmentId", "study": "hitId"}),
}
"""By ``recruitment.platform``, or ``recruitment.preset`` where a site is named."""


def site_of(recruitment: Recruitment) -> Site:
    """The site of a study, with the study's own names for parameters over the usual ones."""
    known = SITES.get(recruitment.preset or recruitment.platform, Site({}))
    return Site({**known.parameters, **recruitment.parameters}, recruitment.return_url or known.return_url, known.link)


def kept_parameters(recruitment: Recruitment) -> set[str]:
    """Parameters of a link that are stored: those with a role, and those that the way back fills in."""
    site = site_of(recruitment)
    addresses = site.return_url + recruitment.screen_out_url
    return {*site.parameters.values(), *PLACEHOLDER.findall(addresses)} - {"code", site.parameters.get("rater", "")}
