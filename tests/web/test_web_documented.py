"""The pages of the manual about serving are true: the example runs, the options exist, the routes are all there."""

import re
from pathlib import Path

import pytest
from taking_part import KEY, running

from commands import result_of

DOCS = Path(__file__).parents[2] / "docs"
API = DOCS / "reference" / "api.md"
SERVE = DOCS / "how-to" / "serve.md"


@pytest.mark.parametrize("template", ["likert", "best-worst", "chat", "strategies"])
def test_the_example_session_runs(template, make_study, site, capsys):
    n_items = {"chat": 2, "strategies": None}.get(template, 2)
    study = make_study(template, n_items=n_items, quality=[])
    there = site(study)
    (code,) = re.findall(r"```python\n(.*?)```", API.read_text(encoding="utf-8"), re.DOTALL)
    with running(there.app) as url:
        exec(compile(code.replace("{URL}", url).replace("{KEY}", KEY) + "\napi.close()\n", "api.md", "exec"), {})
    assert capsys.readouterr().out == "completed\n"
    session = there.only_session()
    assert (session.state, session.source) == ("completed", "model")


def test_every_option_and_route_is_named(site):
    shown = result_of("serve", "--help", env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    text = SERVE.read_text(encoding="utf-8")
    known = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help", "--no-proxy-headers"}
    assert known
    assert known <= set(re.findall(r"--[a-z][a-z-]+", text)), "an option is not in the manual"
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= known, "the manual names an option that is not there"
    paths = site().client.get("/api/v1/openapi.json").json()["paths"]
    manual = API.read_text(encoding="utf-8")
    assert all(path in manual for path in paths)
