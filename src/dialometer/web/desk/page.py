"""What a page of the desk is: an address, who may open it, and what it does. Files of ``pages`` register theirs here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from starlette.responses import Response

from dialometer.storage.accounts import Role

if TYPE_CHECKING:
    from dialometer.web.desk.desk import Desk
    from dialometer.web.desk.visit import Visit

Work = Callable[["Desk", "Visit"], Response]
Method = Literal["GET", "POST"]


@dataclass(frozen=True)
class Page:
    """One address under ``/desk``. ``is_of_running`` pages need a study that collects data."""

    path: str
    method: Method
    role: Role
    work: Work
    is_of_running: bool = False


_pages: list[Page] = []


def page(path: str, *, role: Role, method: Method = "GET", of_running: bool = False) -> Callable[[Work], Work]:
    """Registers a page; a page without a role cannot be written."""

    def add(work: Work) -> Work:
        _pages.append(Page(path, method, role, work, of_running))
        return work

    return add


def all_pages() -> list[Page]:
    """Every page of the folder."""
    folder = importlib.import_module("dialometer.web.desk.pages")
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    return list(_pages)
