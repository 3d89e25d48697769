"""Studies and commands for the tests of models as raters."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from commands import invoke
from dialometer.design.templates import copy_template

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def make_study(tmp_path):
    def make(template="acute", n_items=None, **changes):
        folder = tmp_path / template
        copy_template(template, folder)
        if n_items is not None:
            items = folder / "items.jsonl"
            items.write_text(
                "".join(items.read_text().splitlines(keepends=True)[: n_items + 1])
            )  # the first is practice
        path = folder / "study.yaml"
        spec = yaml.safe_load(path.read_text())
        # The little model of these tests takes the first option everywhere and would not pass a check.
        changes.setdefault("quality", [])
        for part, change in changes.items():
            spec[part] = {**spec.get(part, {}), **change} if isinstance(change, dict) else change
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        return folder

    return make


@pytest.fixture
def dialometer():
    return invoke


@pytest.fixture
def judge(dialometer):
    def run(folder, model, *more):
        return json.loads(
            dialometer("judge", folder, "--endpoint", model.endpoint, "--model", "little", "--json", *more)
        )

    return run
