"""How pages of the desk are drawn: templates, and numbers and times in a form that people read."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dialometer.web.desk.visit import Visit
from dialometer.web.pages import static_version


class Views:
    """The templates of the desk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._env = Environment(
            loader=PackageLoader("dialometer.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.filters.update(
            moment=moment, duration=duration, milliseconds=lambda ms: duration(ms / 1000), count=count, percent=percent
        )
        self._env.globals.update(
            root=root, desk=f"{root}/desk", asset=lambda name: f"{root}/desk/static/{name}?v={static_version()}"
        )

    def render(self, template: str, visit: Visit | None, **content: object) -> str:
        """One page; without a visit it is for somebody who is not signed in."""
        content.setdefault("told", visit.told if visit else "")
        content.setdefault("csrf", visit.csrf if visit else "")
        return self._env.get_template(f"desk/{template}").render(
            visit=visit, running=content.pop("running", None), **content
        )


def moment(at_ms: int | None) -> Markup:
    """A time that the page turns into the reader's own zone."""
    if not at_ms:
        return Markup("–")
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%d %b %H:%M UTC")
    )


def duration(seconds: float | None) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def count(number: float | None) -> str:
    """A whole number with its thousands apart."""
    return "–" if number is None else f"{number:,.0f}"


def percent(share: float | None) -> str:
    """A share in hundredths."""
    return "–" if share is None or math.isnan(share) else f"{share:.0%}"
