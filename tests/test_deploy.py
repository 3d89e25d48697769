"""What deploy/ says of commands, options, metrics, libraries and pages is true of this version."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from dialometer.cli import build_app
from dialometer.web.server.metrics import declare_metrics
from dialometer.web.server.refused import Refusals

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"


def commands() -> list[list[str]]:
    """Every call of dialometer in the files, as its words."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    calls = [service["command"] for service in compose["services"].values() if "command" in service]
    calls += re.findall(r"^ExecStart=(.*)$", (DEPLOY / "dialometer.service").read_text(), re.MULTILINE)
    calls += re.findall(r"exec (.*)'$", (DEPLOY / "dialometer-backup.service").read_text(), re.MULTILINE)
    calls += re.findall(r"if (dialometer .*); then", (DEPLOY / "backup.sh").read_text())
    calls += [
        " ".join(yaml.safe_load(line)) for line in re.findall(r"^CMD (\[\"dialometer.*\])$", container(), re.MULTILINE)
    ]
    return [shlex.split(call) for call in calls if "dialometer" in call]


def container() -> str:
    return (DEPLOY / "Containerfile").read_text()


def test_every_command_and_option_exists():
    app = typer.main.get_command(build_app())
    seen = []
    for words in commands():
        program = next(place for place, word in enumerate(words) if word.endswith("dialometer"))
        verb = app.commands[words[program + 1]]
        known = {name for parameter in verb.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, words
        seen.append(words[program + 1])
    assert sorted(set(seen)) == ["backup", "serve"]
    assert len(seen) == 5


def test_alerts_name_series_that_are_counted_and_pages_that_exist():
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    shown = declare_metrics().render({}) + Refusals().metrics.render({})
    page = (ROOT / "docs/how-to/operate.md").read_text()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-")
        for line in re.findall(r"^## .*", page, re.MULTILINE)
    }
    for rule in rules:
        for name, labels in re.findall(r"(dialometer_\w+)(\{[^}]*\})?", rule["expr"]):
            assert f"\n{name}{labels}" in shown if labels else f"\n{name}" in shown, rule["alert"]
        path, anchor = rule["annotations"]["runbook"].split("#")
        assert path == "docs/how-to/operate.md"
        assert anchor in headings, rule["alert"]


def test_the_lock_has_every_library_of_the_server_with_hashes():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*declared["dependencies"], *declared["optional-dependencies"]["postgres"]]
    pinned: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", (DEPLOY / "requirements.lock").read_text()):
        if match := re.match(r"([a-z0-9.-]+)(?:\[[^\]]*\])?==(\S+)", entry):
            assert "--hash=sha256:" in entry, match[1]
            pinned[match[1]] = match[2]
    for requirement in wanted:
        name, lowest = re.match(r"([A-Za-z0-9-]+)(?:\[[^\]]*\])?>=([0-9.]+)", requirement).groups()
        have = tuple(int(part) for part in re.findall(r"\d+", pinned[name.lower()])[:3])
        assert have >= tuple(int(part) for part in lowest.split(".")), requirement


def test_workflows_run_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        jobs = yaml.safe_load(path.read_text())["jobs"]
        steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
        assert steps
        for line in "\n".join(steps).splitlines():
            if line.strip().startswith("make "):
                assert line.split()[1] in targets, line


@pytest.mark.parametrize("unit", ["dialometer.service", "dialometer-backup.service", "dialometer-backup.timer"])
def test_systemd_understands_the_units(unit):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    ended = subprocess.run(
        ["systemd-analyze", "verify", DEPLOY / unit], capture_output=True, text=True, timeout=300, check=False
    )
    problems = [line for line in ended.stderr.splitlines() if "is not executable" not in line]
    assert not problems


@pytest.mark.parametrize(
    "command",
    [
        ["caddy", "validate", "--adapter", "caddyfile", "--config", "Caddyfile"],
        ["promtool", "check", "rules", "alerts.yml"],
        ["promtool", "check", "config", "prometheus.yml"],
    ],
    ids=" ".join,
)
def test_the_programs_that_read_the_files_accept_them(command, tmp_path):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    folders = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "SITE": "study.example.org"}
    ended = subprocess.run(
        command, cwd=DEPLOY, env=os.environ | folders, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_the_compose_file_names_files_volumes_and_services_that_exist():
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    known = set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\$\{(\w+)", text)) <= known
    content = yaml.safe_load(text)
    services = content["services"]
    volumes = set(content.get("volumes", {}))
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("$"):
                continue
            assert (DEPLOY / source).exists() if source.startswith(".") else source in volumes, (name, source)
        if "build" in service:
            build = service["build"]
            assert (DEPLOY / build["context"] / build["dockerfile"]).is_file(), name
