"""The command line as a newcomer types it."""

import json
import subprocess
import sys

import pytest

from commands import result_of
from commands import run as dialometer
from dialometer.cli import PANELS, command_line

HEAVY = ("torch", "pandas", "polars", "scipy", "numpy", "sqlalchemy", "pydantic", "fastapi", "altair")


def test_help_imports_nothing_heavy():
    probe = (
        "import sys; sys.argv = ['dialometer', '--help']\n"
        "from dialometer.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(','.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=300)
    loaded = {name.split(".")[0] for name in done.stderr.split(",")}
    assert "Usage" in done.stdout
    assert not loaded & set(HEAVY)


def test_every_verb_has_help_with_an_example():
    listing = dialometer("--help").stdout
    command = command_line()
    verbs = list(command.commands)
    assert {"new", "check", "freeze", "schema", "simulate", "export", "import"} <= set(verbs)
    assert all(f"│ {verb} " in listing for verb in verbs)
    for verb in verbs:
        shown = result_of(verb, "--help")
        assert shown.exit_code == 0
        assert "Example" in shown.output or verb in ("bots", "learn", "retrieval")


def test_new_check_simulate_export(tmp_path):
    dialometer("new", "anchoring", "s", cwd=tmp_path)
    checked = dialometer("check", "s", cwd=tmp_path).stdout
    assert "anchor=both, layout=one_per_screen" in checked
    assert "23,100" in checked
    done = dialometer("simulate", "s", "--raters", "9", "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    counts = [cell.get("completed", 0) for cell in result["cells"].values()]
    assert sorted(counts) == [2, 2, 2, 3]
    told = [json.loads(line)["judgments_stored"] for line in done.stderr.splitlines()]
    assert told == sorted(told)
    assert told[-1] == result["n_judgments"] == 9 * 300
    assert result["n_practice"] == 9 * 6
    dialometer("export", "s", cwd=tmp_path)


def test_a_broken_study_gets_line_exact_errors(tmp_path):
    dialometer("new", "likert", "s", cwd=tmp_path)
    path = tmp_path / "s" / "study.yaml"
    lines = path.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if "question:" in line)
    column = lines[number].index("question") + 1
    lines[number] = lines[number].replace("question:", "qestion:", 1)
    path.write_text("\n".join(lines))
    done = dialometer("check", "s", cwd=tmp_path, code=1)
    assert f"study.yaml:{number + 1}:{column}: error: unknown key 'qestion'" in done.stdout
    assert "did you mean 'question'?" in done.stdout
    problems = json.loads(dialometer("check", "s", "--json", cwd=tmp_path, code=1).stdout)["problems"]
    assert [(p["line"], p["column"]) for p in problems if "qestion" in p["message"]] == [(number + 1, column)]
    refused = dialometer("simulate", "s", cwd=tmp_path, code=1)
    assert "problem" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_controlled_pairs_show_their_differences(tmp_path):
    dialometer("new", "strategies", "s", cwd=tmp_path)
    shown = dialometer("check", "s", cwd=tmp_path).stdout
    assert "empathy-1" in shown
    assert "words (" in shown
    assert "\x1b[" not in shown  # no colours when piped
    assert "[-Your entry has been opened and can be changed later-]{+Please do not feel bad" in shown


def test_freezing_holds_a_study(tmp_path):
    dialometer("new", "likert", "s", cwd=tmp_path)
    assert "version 1" in dialometer("freeze", "s", cwd=tmp_path).stdout
    consent = tmp_path / "s" / "consent.md"
    consent.write_text(consent.read_text() + "\nOne more sentence.\n")
    refused = dialometer("simulate", "s", "--raters", "2", cwd=tmp_path, code=1)
    assert "changed: consent.md" in refused.stderr
    assert "version 2" in dialometer("freeze", "s", "--new-version", cwd=tmp_path).stdout
    dialometer("simulate", "s", "--raters", "2", cwd=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "nowhere"), "there is no folder 'nowhere'"),
        (("check", "my-stdy"), "did you mean 'my-study'?"),
        (("check", "."), "name a study that is in it: my-study"),
        (("check", "my-study/study.yaml"), "name the folder of the study: my-study"),
        (("new", "anchorin", "x"), "did you mean 'anchoring'"),
        (("new", "likert", "file/x"), "a part of this path is a file"),
        (("simulate", "nowhere"), "there is no folder 'nowhere'"),
        (("report", "my-study"), "nothing has been collected"),
        (("privacy", "my-study"), "nothing has been collected"),
        (("preregister", "my-study", "--simulations", "0", "--out", "no/where.md"), "folders above it must exist"),
        (("preregister", "my-study", "--simulations", "0", "--out", "my-study"), "this is a folder; name a file"),
    ],
)
def test_mistakes_get_a_sentence(tmp_path, arguments, words):
    dialometer("new", "likert", "my-study", cwd=tmp_path)
    (tmp_path / "file").touch()
    done = dialometer(*arguments, cwd=tmp_path, code=1)
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_raters_of_two_truths_are_not_mixed(tmp_path):
    dialometer("new", "likert", "s", cwd=tmp_path)
    dialometer("simulate", "s", "--raters", "2", cwd=tmp_path)
    truth = (tmp_path / "s" / "simulation.json").read_text()
    for other in (("--seed", "2"), ("--careless", "0.5")):
        refused = dialometer("simulate", "s", "--raters", "2", *other, cwd=tmp_path, code=1)
        assert "raters of another truth" in refused.stderr
        assert (tmp_path / "s" / "simulation.json").read_text() == truth
    again = dialometer("simulate", "s", "--raters", "2", cwd=tmp_path)
    assert "nothing new" in again.stdout


def test_templates_are_listed():
    listed = dialometer("new", "list").stdout
    assert all(
        name in listed for name in ("anchoring", "strategies", "acute", "likert", "best-worst", "avatar", "chat")
    )


def test_schema_is_json():
    assert json.loads(dialometer("schema").stdout)["title"] == "dialometer study file"


def test_wording_that_no_page_has_is_told_with_its_line(tmp_path):
    dialometer("new", "likert", "s", cwd=tmp_path)
    path = tmp_path / "s" / "study.yaml"
    path.write_text(path.read_text() + "\nwording:\n  no_such_text: Hello\n")
    line = len(path.read_text().splitlines())
    done = dialometer("check", "s", cwd=tmp_path, code=1)
    assert f"study.yaml:{line}:3: error: no page has a text 'no_such_text'" in done.stdout


def test_help_shows_every_verb_under_a_heading_in_the_order_of_a_study():
    verbs = list(command_line().commands)
    assert sorted(verbs) == sorted(name for names in PANELS.values() for name in names)
    listing = dialometer("--help").stdout
    assert [panel for _, panel in sorted((listing.index(f" {panel} ─"), panel) for panel in PANELS)] == list(PANELS)
    assert verbs.index("new") < verbs.index("check") < verbs.index("serve") < verbs.index("report")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [(("control",), "DIR ACTION [NUMBER]"), (("serve",), "DIR..."), (("learn", "judge"), "DIR [SCORES]")],
)
def test_usage_names_arguments_alike(verb, arguments):
    usage = next(line for line in dialometer(*verb, "--help").stdout.splitlines() if "Usage" in line)
    assert usage.split("[OPTIONS]")[1].strip().translate({ord("{"): None, ord("}"): None}) == arguments
