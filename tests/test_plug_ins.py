"""Parts from other packages: one package for each page of docs/how-to that shows one, installed once and walked to the report."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
import yaml

from command_server import CORE, command_server
from installed_pages import install

sys.path.insert(0, str(Path(__file__).parent / "judges"))

from model_on_loopback import Model

PAGES = (
    "add-a-scale.md",
    "write-a-quality-rule.md",
    "add-a-statistic.md",
    "add-a-reader.md",
    "add-a-platform.md",
    "add-a-retriever.md",
)
SERVED_PAGE = """
import re, sys
from pathlib import Path
from starlette.testclient import TestClient
from dialometer.design.load import load_study
from dialometer.web.server.turns import TurnTakingStore
from dialometer.web.study_app import create_app

store = TurnTakingStore.open(Path("served.db"))
client = TestClient(create_app(load_study(Path(sys.argv[1])), store))
with client:
    csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)[1]
    print(client.post("/start", data={"csrf": csrf}).text)
"""


class Commands:
    """The command line in fresh processes, with one more folder of packages; in ones that have libraries loaded as ``ready``."""

    def __init__(self, folder):
        self.folder = folder
        self.packages = folder / "packages"
        self.packages.mkdir()
        path = os.pathsep.join([str(self.packages), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}
        self.dialometer = [sys.executable, "-m", "dialometer"]

    @contextmanager
    def ready(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", self.environment["PYTHONPATH"])
            with command_server(self.folder, CORE) as programs:
                self.dialometer = [programs / "dialometer"]
                yield self

    def run(self, command, *, is_fine=True):
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) is is_fine, done.stdout + done.stderr
        return done.stdout + done.stderr

    def python(self, *arguments):
        return self.run([sys.executable, *arguments])

    def __call__(self, *arguments, is_fine=True):
        return self.run([*self.dialometer, *arguments], is_fine=is_fine)


@pytest.fixture(scope="module")
def dialometer(tmp_path_factory):
    """The command line with all packages of the pages installed."""
    commands = Commands(tmp_path_factory.mktemp("plug-ins"))
    for page in PAGES:
        install(page, commands.packages)
    with commands.ready():
        yield commands


@pytest.fixture(scope="module")
def study(dialometer):
    """A study that asks its primary question on the scale and excludes by the rule, checked, simulated and exported."""
    dialometer("new", "likert", "s")
    file = dialometer.folder / "s" / "study.yaml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["scales"]["helpfulness_7"] = {"type": "grades"}
    spec["screening"] = [{"name": "own_grade", "text": "Your last grade in English?", "scale": "helpfulness_7"}]
    spec["quality"] = [{"rule": "few_numbers", "at_least": 5, "action": "exclude"}]
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    dialometer("check", "s")
    dialometer("simulate", "s", "--raters", "12", "--seed", "4")
    dialometer("export", "s", "--out", "data", "--format", "csv")
    dialometer("report", "s", "--out", "shown", "--format", "json", "--format", "html", "--resamples", "100")
    return dialometer.folder


@pytest.fixture(scope="module")
def report(study):
    return json.loads(next((study / "shown").glob("*.json")).read_text(encoding="utf-8"))


def test_all_six_parts_are_known_at_once(dialometer, study):
    """Readers, platforms and retrievers are walked to their reports in tests/readers, tests/recruit, tests/retrieval_commands."""
    assert {"grades", "few_numbers", "campus"} <= set(re.findall(r'"([a-z_]+)"', dialometer("schema")))
    assert "shared-words" in dialometer("retrieval", "list")
    assert "helpdesk" in dialometer.python("-c", "from dialometer.readers import READERS; print(READERS.names())")


def test_the_scale_is_in_the_schema_and_in_the_simulated_and_exported_answers(dialometer, study):
    assert '"Grades"' in dialometer("schema")
    judgments = pl.read_csv(study / "data" / "judgments.csv").filter(pl.col("scale") == "grades")
    assert len(judgments) > 100
    given = dict(judgments.select("choice", "value").unique().iter_rows())
    assert given.items() <= {"F": 0.0, "D": 1.0, "C": 2.0, "B": 3.0, "A": 4.0}.items()
    assert {"D", "C", "B"} <= given.keys()
    dictionary = (study / "data" / "data_dictionary.md").read_text(encoding="utf-8")
    assert "grades from A to F" in dictionary


def test_the_scale_is_in_the_declared_comparison(report):
    [declared] = [section for section in report["sections"] if section["is_confirmatory"]]
    rows = [row for row in declared["parts"][0]["rows"] if row[:2] == ["System helpfulness (primary)", "Helpfulness"]]
    assert len(rows) == 3
    for *_, difference in (row[:5] for row in rows):
        estimate = difference["estimate"]
        assert -4 < estimate["low"] < estimate["value"] < estimate["high"] < 4


def test_the_distribution_shows_the_letters(report):
    parts = {part["name"]: part for section in report["sections"] for part in section["parts"]}
    assert all(f'"{grade}"' in json.dumps(parts["distribution_helpfulness"]) for grade in "ABCDF")


@pytest.mark.slow
def test_the_scale_is_on_the_served_page_with_its_own_template_or_without(dialometer, study, tmp_path):
    page = dialometer.python("-c", SERVED_PAGE, "s")
    assert re.search(r'<select class="grades"[^>]*name="own_grade"', page)
    template = dialometer.packages / "grades.html"
    text = template.read_text(encoding="utf-8")
    template.unlink()
    try:
        page = dialometer.python("-c", SERVED_PAGE, "s")
    finally:
        template.write_text(text, encoding="utf-8")
    assert re.findall(r'<input type="radio"[^>]*name="own_grade" value="(\w)"', page) == ["F", "D", "C", "B", "A"]


def test_a_model_is_asked_on_the_scale_and_its_grades_are_stored(dialometer, study):
    with Model() as model:
        dialometer("judge", "s", "--endpoint", model.endpoint, "--model", "little")
    asked = [request["messages"][-1]["content"] for request in model.requests]
    assert any('→ one of "F", "D", "C", "B", "A".' in prompt for prompt in asked)


def test_the_rule_excludes_and_the_report_says_what_that_changed(study, report):
    flags = (study / "data" / "flags.csv").read_text(encoding="utf-8")
    n_excluded = flags.count("few_numbers,exclude")
    assert n_excluded >= 1
    parts = {part["name"]: part for section in report["sections"] for part in section["parts"]}
    assert [row[:3] for row in parts["rule_counts"]["rows"]] == [["few numbers", "excludes", n_excluded]]
    shown = parts["sensitivity"]
    assert "Exclusions: nobody excluded" in [row[0] for row in shown["rows"]]


@pytest.mark.slow
def test_the_preregistration_states_the_rule(dialometer, study):
    dialometer("preregister", "s")
    text = (study / "s" / "preregistration.md").read_text(encoding="utf-8")
    assert "- **Few numbers**: at least: 5. The rater is excluded from the analysis." in text


@pytest.mark.slow
def test_a_statistic_of_another_package_is_listed_computed_and_reported(dialometer):
    printed = dialometer.python(dialometer.packages / "try_it.py").splitlines()
    assert "extreme_answers" in printed[-2]
    value, interval = printed[-1].split(" ", 1)
    assert 0 < float(value) < 1
    assert interval.startswith("[")
    dialometer("report", "my-ratings", "--out", "ratings", "--format", "html", "--format", "csv")
    [page] = (dialometer.folder / "ratings").glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "Further statistics" in text
    assert "Share of ratings at either end of the scale" in text
    assert "Greenleaf 1992" in text
    file = next((dialometer.folder / "ratings").rglob("further_extreme_answers.csv"))
    [fluency] = [line for line in file.read_text(encoding="utf-8").splitlines() if "luency" in line]
    assert float(fluency.split(",")[2]) == pytest.approx(float(value), abs=5e-4)
    dialometer("new", "acute", "pairs")
    dialometer("simulate", "pairs", "--raters", "4")
    dialometer("report", "pairs", "--out", "without", "--format", "markdown", "--resamples", "100")
    [page] = (dialometer.folder / "without").glob("*.md")
    assert "Further statistics" not in page.read_text(encoding="utf-8")


def test_a_broken_package_is_named(tmp_path):
    commands = Commands(tmp_path)
    install("add-a-scale.md", commands.packages)
    (commands.packages / "grades_scale.py").write_text("import a_package_that_is_not_there\n")
    message = commands("schema", is_fine=False)
    assert "'grades' of another package cannot be loaded" in message
    assert "uninstall" in message
