"""A folder of small studies with simulated raters, a server for them, and visitors of every role."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dashboard_cases import collect, cut
from dashboard_site import Site

from dialometer.design.load import load_study
from dialometer.design.lock import freeze
from dialometer.design.templates import copy_template
from dialometer.web.dashboard import login as passwords
from dialometer.web.dashboard.running_studies import StudyFolders


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords():
    """Argon2 with its smallest settings: what is tested is that it is used, not how slow it is."""
    from argon2 import PasswordHasher

    before = passwords._hasher
    passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    passwords._of_nobody.cache_clear()
    yield
    passwords._hasher = before
    passwords._of_nobody.cache_clear()


@pytest.fixture(scope="session")
def answered(tmp_path_factory) -> Path:
    """Two frozen studies with raters, made once: ``likert`` (gold, attention) and ``anchoring`` (four cells)."""
    parent = tmp_path_factory.mktemp("answered")
    for name, n_items, n_raters in (("likert", 4, 8), ("anchoring", 3, 8)):
        copy_template(name, parent / name)
        cut(parent / name, n_items)
        collect(parent / name, n_raters)
        freeze(load_study(parent / name), parent / name, datetime.now(UTC))
    return parent


@pytest.fixture
def studies_folder(answered, tmp_path) -> Path:
    """A folder of studies: two that are frozen and answered, one draft."""
    parent = tmp_path / "studies"
    shutil.copytree(answered, parent)
    copy_template("avatar", parent / "draft")
    return parent


@pytest.fixture
def site(studies_folder):
    """A site for the folder of studies."""
    opened = Site(StudyFolders(parent=str(studies_folder)))
    yield opened
    opened.close()


@pytest.fixture
def make_site():
    """Sites for any studies."""
    opened = []

    def make(folders: StudyFolders, **settings) -> Site:
        opened.append(Site(folders, **settings))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
