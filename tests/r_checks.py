"""Runs R where it is installed with the packages that a check needs; elsewhere the test is skipped and says why."""

import shutil
import subprocess

import pytest


def run_r(script: str, *packages: str) -> list[list[float]]:
    """The numbers that a script prints, line by line."""
    place = shutil.which("Rscript")
    if place is None:
        pytest.skip("R is not installed (apt: r-base-core)")
    load = "".join(f"suppressMessages(library({name}));" for name in packages)
    done = subprocess.run(
        [place, "--vanilla", "-e", load + script], capture_output=True, text=True, check=False, timeout=600
    )
    if "there is no package called" in done.stderr:
        pytest.skip(f"R lacks one of {', '.join(packages)} (apt: {' '.join(f'r-cran-{name}' for name in packages)})")
    assert done.returncode == 0, done.stderr
    return [[float(number) for number in line.split()] for line in done.stdout.splitlines() if line.strip()]
