"""Who edits a study in the browser is not the administrator: agents send and reach only what a server's lists allow."""

import json
import socket

import pytest
import yaml
from pydantic import ValidationError

from dialometer.agents.access import AgentAccess
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import AgentError
from dialometer.flow.agents import agent_problems, build_agent
from dialometer.model.dialogue import Turn
from dialometer.web.server.settings import Settings
from loopback import Handler, serving_http

HISTORY = [Turn("User", "Hello", "user")]
NOTHING = AgentAccess((), (), ())
LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
def system():
    class Answering(Handler):
        def reply(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.server.asked.append(dict(self.headers))
            body = {"reply": "Hi", "choices": [{"message": {"content": "Hi"}}]}
            self.answer(200, json.dumps(body).encode(), {})

    with serving_http(Answering, asked=[]) as server:
        yield server


def http_agent(url, access, **options):
    return build_agent("http", {"url": url, "timeout_s": 60, "n_retries": 0, **options}, None, access)


def url_of(system, host="127.0.0.1"):
    return f"http://{host}:{system.server_port}/"


@pytest.mark.parametrize("access", [AgentAccess(), AgentAccess((), None), AgentAccess(("TOKEN", "PGPASSWORD@x.org"))])
def test_the_password_of_the_database_is_never_sent(system, monkeypatch, access):
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    with pytest.raises(AgentError, match="may not read the variable PGPASSWORD"):
        http_agent(url_of(system), access, headers={"X-Key": "${PGPASSWORD}"}).reply(HISTORY)
    with pytest.raises(AgentError, match="may not read the variable PGPASSWORD"):
        options = {"base_url": url_of(system), "model": "m", "api_key_env": "PGPASSWORD"}
        build_agent("openai", options, None, access).reply(HISTORY)
    assert system.asked == []


def test_listed_variables_are_sent_and_only_where_they_belong(system, monkeypatch):
    monkeypatch.setenv("TOKEN", "t0ken")
    for allowed in ("TOKEN", "TOKEN@127.0.0.1"):
        http_agent(url_of(system), AgentAccess((allowed,)), headers={"X-Key": "${TOKEN}"}).reply(HISTORY)
        assert system.asked.pop()["X-Key"] == "t0ken"
    with pytest.raises(AgentError, match=r"--agent-variable TOKEN@127\.0\.0\.1"):
        http_agent(url_of(system), AgentAccess(("TOKEN@api.org",)), headers={"X-Key": "${TOKEN}"}).reply(HISTORY)


def test_the_usual_key_of_a_model_goes_nowhere_unless_it_is_listed(system, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    options = {"base_url": url_of(system), "model": "m"}
    for access, is_sent in ((AgentAccess(), True), (AgentAccess(()), False), (AgentAccess(("OPENAI_API_KEY",)), True)):
        build_agent("openai", options, None, access).reply(HISTORY)
        assert ("Authorization" in system.asked.pop()) == is_sent


NOT_PUBLIC = (
    *("127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
    *(
        "0.0.0.0",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00::1]",
        "[fe80::1]",
        "[fec0::1]",
    ),
    *("224.0.0.1", "127.1", "2130706433", "0x7f.1"),
)


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_addresses_that_are_not_public_are_not_called(host):
    with pytest.raises(AgentError, match=r"it is not a public address .* --agent-address .*:5432"):
        NOTHING.ip_for(f"http://{host}:5432/")


def test_public_addresses_are_called():
    assert NOTHING.ip_for("https://93.184.215.14/v1") == "93.184.215.14"
    assert (
        NOTHING.ip_for("https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/") == "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
    )
    assert AgentAccess().ip_for("http://127.0.0.1/") == "", "one's own study is not restricted"


@pytest.fixture
def names(monkeypatch):
    """What names point to, one answer for each time they are looked up."""
    answers, asked = {}, []
    real = socket.getaddrinfo

    def look_up(host, port, *args, **more):
        if host not in answers:
            return real(host, port, *args, **more)
        asked.append(host)
        return real(answers[host].pop(0), port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return answers, asked


def test_a_name_that_points_inside_is_not_called(system, names):
    names[0]["evil.example"] = ["127.0.0.1"]
    with pytest.raises(AgentError, match=r"may not call evil\.example"):
        http_agent(url_of(system, "evil.example"), NOTHING).reply(HISTORY)
    assert system.asked == []


def test_a_name_is_looked_up_once_so_that_it_cannot_change_after_the_check(system, names, monkeypatch):
    answers, asked = names
    answers["agent.example"] = ["127.0.0.1"]
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    access = AgentAccess((), LOOPBACK)
    assert http_agent(url_of(system, "agent.example"), access).reply(HISTORY).text == "Hi"
    assert asked == ["agent.example"]
    assert system.asked[0]["Host"] == f"agent.example:{system.server_port}"


@pytest.mark.parametrize(
    ("entry", "is_allowed"),
    [
        ("127.0.0.1", True), ("127.0.0.1:9000", True), ("127.0.0.1:9001", False), ("127.0.0.0/8:9000", True),
        ("localhost:9000", True), ("LOCALHOST", True), ("10.0.0.0/8", False), ("other.example", False), ("::1", False),
    ],
)  # fmt: skip
def test_the_administrator_allows_hosts_networks_and_ports(entry, is_allowed, names):
    names[0]["localhost"] = ["127.0.0.1"]
    access = AgentAccess((), (entry,))
    if is_allowed:
        assert access.ip_for("http://localhost:9000/") == "127.0.0.1"
    else:
        with pytest.raises(AgentError):
            access.ip_for("http://localhost:9000/")


def test_models_are_loaded_from_the_study_or_a_listed_folder(tmp_path):
    study, models = tmp_path / "study", tmp_path / "models"
    for folder in (study, models):
        folder.mkdir()
        (folder / "bot.safetensors").write_bytes(b"")
    (study / "link").symlink_to(models)
    for name in ("../models", str(models), "link"):
        with pytest.raises(ValidationError, match="outside the study's folder"):
            build_agent("generator", {"bot": name}, study, NOTHING)
        assert build_agent("generator", {"bot": name}, study, AgentAccess((), (), (str(models),)))
    assert build_agent("generator", {"bot": "."}, study, NOTHING)


def test_a_model_outside_the_study_is_not_even_looked_at(tmp_path, monkeypatch):
    """Whether a file is there, and whether it is a model, is no editor's business either."""
    study, hub = tmp_path / "study", tmp_path / "hub"
    study.mkdir()
    (tmp_path / "passwords").write_text("root")
    (study / "link.gguf").symlink_to(tmp_path / "passwords")
    cached = hub / "models--secret--name" / "snapshots" / "1" / "in-house.gguf"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"GGUF")
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))
    outside = (str(tmp_path / "passwords"), "../passwords", "../missing", "link.gguf")
    for name in (*outside, "secret/name", "secret/missing", "*/*"):
        with pytest.raises(ValidationError, match="outside the study's folder"):
            build_agent("local", {"model": name}, study, NOTHING)
    assert build_agent("local", {"model": "secret/name"}, study, AgentAccess((), (), (str(hub),)))


@pytest.mark.parametrize(("kind", "option"), [("generator", "bot"), ("retriever", "folder"), ("local", "model")])
def test_a_name_that_no_file_can_have_is_a_wrong_option(kind, option, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in ("a" * 5000, "a/" * 5000, "a\0b", "a" * 5000 + "/b", "a/\0b"):
        with pytest.raises(ValidationError):
            build_agent(kind, {option: name}, tmp_path, AgentAccess())
        with pytest.raises(ValidationError):
            build_agent(kind, {option: name}, tmp_path, NOTHING)


def test_agents_that_suggest_to_a_wizard_are_checked_like_any_other(tmp_path):
    copy_template("wizard", tmp_path / "study")
    path = tmp_path / "study" / "study.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    suggest = [
        {"type": "http", "options": {"url": "http://127.0.0.1:5432/"}},
        {"type": "nobody"},
        {"type": "http", "options": {}},
    ]
    spec["systems"][0]["agent"] = {"type": "wizard", "options": {"suggest": suggest}}
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    problems = agent_problems(load_study(tmp_path / "study"), NOTHING)
    places = ["0.options.url", "1.type", "2.options.url"]
    assert [p.field for p in problems] == [f"systems.0.agent.options.suggest.{place}" for place in places]


def test_models_that_suggest_to_a_wizard_have_prices_too(tmp_path):
    copy_template("wizard", tmp_path / "study")
    path = tmp_path / "study" / "study.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    model = {"type": "openai", "options": {"base_url": "https://models.example/v1", "model": "m1"}}
    for suggest, problems in (([model], []), ([], ["live.prices.m1", "live.budget"])):
        spec["systems"][0]["agent"] = {"type": "wizard", "options": {"suggest": suggest}}
        spec["live"] = {"prices": {"m1": {"input": 1, "output": 2}}, "budget": 5}
        path.write_text(yaml.safe_dump(spec), encoding="utf-8")
        assert [problem.field for problem in agent_problems(load_study(tmp_path / "study"))] == problems


def test_what_is_not_allowed_is_a_problem_of_the_study_with_its_line(tmp_path):
    copy_template("chat", tmp_path / "study")
    path = tmp_path / "study" / "study.yaml"
    text = path.read_text(encoding="utf-8")
    start, end = text.index("    agent:"), text.index("\n  - name:", text.index("    agent:"))
    options = '        url: "http://127.0.0.1:5432/"\n        headers: {X: "${PGPASSWORD}"}'
    agent = f"    agent:\n      type: http\n      options:\n{options}"
    path.write_text(text[:start] + agent + text[end:], encoding="utf-8")
    study = load_study(tmp_path / "study")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [
        (lines[p.line - 1].split(":")[0].strip(), p.severity, bool(p.remedy)) for p in agent_problems(study, NOTHING)
    ]
    assert found == [("url", "error", True), ("headers", "error", True)]
    assert [p.field.rpartition(".")[2] for p in agent_problems(study, AgentAccess())] == ["headers"]


def test_where_studies_can_be_edited_nothing_is_allowed_by_default(monkeypatch, tmp_path):
    from dialometer.web.dashboard.running_studies import RunningStudies, StudyFolders

    assert RunningStudies(StudyFolders(parent=str(tmp_path)), Settings()).settings.agents == NOTHING
    assert RunningStudies(StudyFolders((str(tmp_path),)), Settings()).settings.agents == AgentAccess()
    monkeypatch.setenv("DIALOMETER_AGENT_VARIABLES", "TOKEN KEY@api.org")
    settings = RunningStudies(StudyFolders(parent=str(tmp_path)), Settings()).settings
    assert settings.agents == AgentAccess(("TOKEN", "KEY@api.org"), (), ())
    assert Settings.from_json(settings.as_json()) == settings
    assert Settings.from_json(Settings().as_json()) == Settings()
