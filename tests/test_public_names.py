"""The few public names: all there, and importing the package loads nothing heavy."""

import subprocess
import sys

import pytest

import dialometer


@pytest.mark.parametrize("name", dialometer.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(dialometer, name) is not None
    assert name in dir(dialometer)


def test_importing_is_light():
    code = "import dialometer, sys; print(','.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "polars", "pydantic", "sqlalchemy"} & set(loaded.strip().split(","))


def test_unknown_names_are_told():
    with pytest.raises(AttributeError, match="no attribute 'analyze'"):
        _ = dialometer.analyze
