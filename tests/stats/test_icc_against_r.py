"""ICCs and their classical intervals against R psych and lme4, where R is installed."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.variance_components import variance_components


def r_result(package, script, tmp_path):
    """What an R script prints as JSON-like text; skipped with the reason where R or the package is missing."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed: apt-get install r-base-core")
    known = subprocess.run(
        ["Rscript", "-e", f'quit(status = if (requireNamespace("{package}", quietly = TRUE)) 0 else 3)'],
        capture_output=True,
        check=False,
    )
    if known.returncode:
        pytest.skip(f"R package {package} is not installed: apt-get install r-cran-{package.lower()}")
    done = subprocess.run(
        ["Rscript", "-e", script], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(7)
    matrix = rng.normal(size=(20, 1)) + 0.6 * rng.normal(size=5) + rng.normal(size=(20, 5))
    np.savetxt(tmp_path / "ratings.csv", matrix, delimiter=",")
    return matrix


def test_classical_intervals_are_those_of_psych(ratings, tmp_path):
    """psych::ICC(x, lmer = FALSE): ICC1, ICC2, ICC3, ICC1k, ICC2k, ICC3k with lower and upper bound and p."""
    script = """
    x <- as.matrix(read.csv("ratings.csv", header = FALSE))
    r <- psych::ICC(x, lmer = FALSE)$results
    rows <- apply(r[, c("ICC", "lower bound", "upper bound", "p")], 1,
                  function(v) paste0("[", paste(sprintf("%.12f", v), collapse = ","), "]"))
    cat(paste0("[", paste(rows, collapse = ","), "]"))
    """
    rows = r_result("psych", script, tmp_path)
    for form, (value, low, high, p) in zip(
        ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)"), rows, strict=True
    ):
        ours = icc(ratings, form)
        assert (ours.value, ours.low, ours.high) == pytest.approx((value, low, high), abs=1e-8), form
        assert ours.p_value == pytest.approx(p, abs=1e-8)


@pytest.mark.slow
def test_variance_components_with_holes_are_those_of_lme4(ratings, tmp_path):
    holed = ratings.copy()
    holed[np.random.default_rng(8).random(holed.shape) < 0.3] = np.nan
    item, rater = np.nonzero(~np.isnan(holed))
    rows = np.column_stack([item, rater, holed[item, rater]])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="item,rater,y", comments="", fmt="%.12f")
    script = """
    d <- read.csv("rows.csv")
    m <- lme4::lmer(y ~ 1 + (1 | item) + (1 | rater), data = d, REML = TRUE)
    v <- as.data.frame(lme4::VarCorr(m))
    v <- setNames(v$vcov, v$grp)
    cat(sprintf("[%.10f, %.10f, %.10f]", v["item"], v["rater"], v["Residual"]))
    """
    expected = r_result("lme4", script, tmp_path)
    ours = variance_components(holed[item, rater], item, rater)
    assert (ours.item, ours.rater, ours.residual) == pytest.approx(expected, rel=1e-4)
