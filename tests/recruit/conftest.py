"""Prolific on loopback, a study that recruits there, and its commands."""

import sys
from pathlib import Path

import pytest
import yaml

from commands import invoke
from dialometer.design.templates import copy_template

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
sys.path.insert(0, str(Path(__file__).parent))

from prolific_on_loopback import TOKEN, Loopback


@pytest.fixture
def loopback(monkeypatch):
    with Loopback() as there:
        monkeypatch.setenv("PROLIFIC_API", there.address)
        monkeypatch.setenv("PROLIFIC_TOKEN", TOKEN)
        monkeypatch.setattr("time.sleep", lambda _: None)
        yield there


@pytest.fixture
def make_study(tmp_path):
    def make(**recruitment):
        folder = tmp_path / "study"
        copy_template("acute", folder)
        spec = yaml.safe_load((folder / "study.yaml").read_text())
        spec["recruitment"] |= {
            "platform": "prolific",
            "quota": 15,
            "completion_code": "C0MPLETE",
            "screen_out_code": "SCR33NED",
            **recruitment,
        }
        (folder / "study.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
        return folder

    return make


@pytest.fixture
def dialometer():
    return invoke
