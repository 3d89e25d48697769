"""Forms answered in a browser on the real servers of Label Studio and Potato, and read back: every answer is kept.

``make test-tools`` installs both and runs this. Each server starts with an empty folder of its own, on loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from commands import invoke
from dialometer.design.templates import copy_template
from dialometer.exchange.tool_form import KEY_FILE
from dialometer.storage.store import Store

LABEL_STUDIO, POTATO = "DIALOMETER_LABEL_STUDIO", "DIALOMETER_POTATO"
ADDRESS, PASSWORD = "ann@example.org", "of-the-tests-1"
START_S = 600
"""Label Studio makes its database anew, which takes a minute on an idle machine."""
pytestmark = [pytest.mark.slow, pytest.mark.browser]


def program(variable):
    path = os.environ.get(variable, "")
    if not Path(path).is_file():
        pytest.skip(f"make test-tools installs the tool and names it in {variable}")
    return path


@contextlib.contextmanager
def running(command, url, cwd, **environment):
    """The tool's server, until the block ends."""
    log = cwd / "server.log"
    with log.open("wb") as opened:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=opened, stderr=opened, env={**os.environ, **environment}, start_new_session=True
        )
    try:
        deadline = time.monotonic() + START_S
        while True:
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(url, timeout=5, follow_redirects=True).status_code == 200:
                    break
            time.sleep(0.5)
        yield
    finally:
        process.terminate()
        process.wait(20)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture
def form(tmp_path):
    def make(template, tool):
        copy_template(template, tmp_path / "study")
        invoke("export", tmp_path / "study", "--form", tool, "--out", tmp_path / "project", "--json")
        return tmp_path / "study", tmp_path / "project"

    return make


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1366, "height": 1800})
    context.set_default_timeout(60_000)
    shown = context.new_page()
    shown.route("**/*", lambda r: r.continue_() if "127.0.0.1" in r.request.url else r.abort())
    yield shown
    context.close()


def judged(folder):
    with Store.open(folder / "study.db") as store:
        return list(store.records.judgments())


class Studio:
    """Label Studio as a person who has logged in uses it."""

    def __init__(self, url):
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=60, follow_redirects=True)
        self.http.get("/user/login/")
        form = {"email": ADDRESS, "password": PASSWORD, "csrfmiddlewaretoken": self.http.cookies["csrftoken"]}
        self.http.post("/user/login/", data=form, headers={"Referer": url})

    def api(self, method, path, **more):
        headers = {"X-CSRFToken": self.http.cookies["csrftoken"], "Referer": self.url}
        response = self.http.request(method, f"/api{path}", headers=headers, **more)
        assert response.is_success, response.text
        return response

    def project(self, folder):
        config = (folder / "config.xml").read_text()
        number = self.api("POST", "/projects/", json={"title": "study", "label_config": config}).json()["id"]
        self.api("POST", f"/projects/{number}/import", json=json.loads((folder / "items.json").read_text()))
        return number


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    command, port = program(LABEL_STUDIO), free_port()
    words = ["start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1"]
    user = ["--username", ADDRESS, "--password", PASSWORD]
    folder = tmp_path_factory.mktemp("label-studio")
    home = {"LABEL_STUDIO_BASE_DATA_DIR": str(folder), "LATEST_VERSION_CHECK": "0", "COLLECT_ANALYTICS": "0"}
    url = f"http://127.0.0.1:{port}"
    with running([command, *words, *user], f"{url}/health", folder, **home):
        studio = Studio(url)
        yield studio
        studio.http.close()


@pytest.mark.parametrize("template", ["acute", "best-worst"])
def test_label_studio_keeps_every_answer(form, studio, page, template):
    study, project = form(template, "label_studio")
    number = studio.project(project)
    page.context.add_cookies([{"name": n, "value": v, "url": studio.url} for n, v in studio.http.cookies.items()])
    page.goto(f"{studio.url}/projects/{number}/data?labeling=1")
    submit = page.locator("button", has_text="Submit").first
    submit.click()
    page.get_by_text("Please answer:").wait_for()  # what is required is asked for
    page.get_by_role("button", name="OK").click()
    choice = lambda letter: page.locator(f"input[name={letter}]:visible")  # noqa: E731
    if template == "acute":
        for place in range(choice("B").count()):
            choice("B").nth(place).check()
    else:  # the worst of the first question unfolds above the best of the second
        choice("B").first.check()
        choice("A").nth(1).check()
        choice("B").last.check()
        choice("A").last.check()
    submit.click()
    deadline = time.monotonic() + 60
    while not (done := studio.api("GET", f"/projects/{number}/export?exportType=JSON").json()):
        assert time.monotonic() < deadline, page.inner_text("body")[-1000:]
        time.sleep(0.5)
    item = json.loads((project / KEY_FILE).read_text())["items"][done[0]["data"]["item"]]
    values = []
    for kind, name in (("JSON", "whole.json"), ("JSON_MIN", "small.json"), ("CSV", "table.csv")):
        (study / "study.db").unlink(missing_ok=True)
        file = project / name
        file.write_bytes(studio.api("GET", f"/projects/{number}/export?exportType={kind}").content)
        invoke("import", study, file, "--format", "label_studio", "--json")
        values.append(sorted((j.criterion, str(j.value), j.item_id) for j in judged(study)))
    assert values[0] == values[1] == values[2]
    second, first = item["systems"][1], item["systems"][0]
    wanted = second if template == "acute" else {"best": second, "worst": first}
    assert [(value, name) for _, value, name in values[0]] == [(str(wanted), item["item"])] * len(values[0])
    assert len(values[0]) == (4 if template == "acute" else 2)


@pytest.mark.parametrize("template", ["acute", "best-worst", "likert"])
def test_potato_keeps_every_answer(form, page, template):
    command = program(POTATO)
    study, project = form(template, "potato")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running([command, "start", "config.yaml", "-p", str(port)], url, project):
        page.goto(url)
        page.locator("#register-tab").click()
        page.locator("input[name=email]:visible").fill("ann")
        page.locator("input[name=pass]:visible").fill(PASSWORD)
        page.locator("button[type=submit]:visible").click()
        page.locator("#next-btn").wait_for()
        shown = page.locator("input[name=instance_id]").get_attribute("value")
        page.locator("#next-btn").click(force=True)
        page.get_by_text("Please answer the required questions").wait_for()
        n_answers = answer_potato(page)
        page.locator("#next-btn").click()
        page.wait_for_function("id => (document.querySelector('[name=instance_id]')?.value ?? id) !== id", arg=shown)
    item = json.loads((project / KEY_FILE).read_text())["items"][shown]
    invoke("import", study, project / "annotation_output", "--json")
    found = judged(study)
    assert {judgment.item_id for judgment in found} == {item["item"]}
    assert len(found) == n_answers
    if template == "best-worst":
        second, first = item["systems"][1], item["systems"][0]
        assert all(judgment.value == {"best": second, "worst": first} for judgment in found)


def answer_potato(page):
    """Choose B (or the second point) everywhere; how many judgments that must give."""
    n_answers = 0
    for scheme in page.locator("form.annotation-form").all():
        name = scheme.get_attribute("data-schema-name") or ""
        if "__worst" in name and not name.endswith("__B"):
            continue  # asked only after another choice of the best
        if scheme.locator("input[type=radio]").count():
            at = 0 if "__worst" in name else 1
            scheme.locator("input[type=radio]").nth(at).evaluate("control => control.click()")
            page.wait_for_timeout(300)  # what is asked next unfolds
        else:
            scheme.locator("[data-value=B]").first.click()
        n_answers += "__worst" not in name
    return n_answers
