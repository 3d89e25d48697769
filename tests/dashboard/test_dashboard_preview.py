"""Every condition as raters see it, and nothing of it stored."""

import re

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template, template_names
from dialometer.errors import FlowError
from dialometer.web.dashboard.pages.preview import NoStore, Preview
from dialometer.web.dashboard.running_studies import StudyFolders


@pytest.fixture
def looking(make_site, tmp_path):
    """Somebody at a draft of a template."""

    def look(template):
        copy_template(template, tmp_path / "all" / template)
        site = make_site(StudyFolders(parent=str(tmp_path / "all")))
        return site.owner(), load_study(tmp_path / "all" / template), tmp_path / "all" / template

    return look


@pytest.mark.parametrize("template", template_names())
def test_every_screen_of_every_condition_can_be_seen(looking, template):
    ada, study, folder = looking(template)
    files = {p.name for p in folder.iterdir()}
    for cell, condition in enumerate(study.cells):
        preview = Preview(study, cell)
        assert preview.session.condition == condition
        kinds = [step.kind for step in preview.flow.path(preview.session).steps]
        wanted = {kinds.index(kind) for kind in kinds} | {len(kinds) - 1}
        for step in sorted(wanted):
            ada.get(f"/studies/{template}/preview/{cell}/{step}/s")
            assert ada.status == 200, (cell, step, ada.text[:200])
            assert f"preview/{cell}/{step}/static/base.css" in ada.page
            assert f'action="/dashboard/studies/{template}/preview/{cell}/{step}/s"' in ada.page
        ada.get(f"/studies/{template}/preview/{cell}/{len(kinds)}/s")
        assert ada.status == 200
    assert {p.name for p in folder.iterdir()} == files, "a preview leaves nothing behind"


def test_the_frame_offers_conditions_and_screens(looking):
    ada, study, _ = looking("anchoring")
    ada.get("/studies/anchoring/preview", cell=2, step=1)
    for condition in study.cells:
        assert study.cell_label(condition) in ada.text
    assert 'src="/dashboard/studies/anchoring/preview/2/1/s"' in ada.page
    assert ada.get("/studies/anchoring/preview", cell="x", step="99999999").status == 200


def test_forms_are_read_with_the_same_complaints_and_then_forgotten(looking):
    ada, study, _ = looking("likert")
    steps = Preview(study, 0).flow.path(Preview(study, 0).session).steps
    item = next(i for i, step in enumerate(steps) if step.kind == "item" and not step.task.is_practice)
    path = f"/studies/likert/preview/0/{item}/s"
    ada.get(path)
    names = set(re.findall(r'<input type="radio"[^>]*name="([^"]+)"', ada.page))
    csrf = ada.csrf
    ada.post(path, dict.fromkeys(list(names)[:1], "9"), csrf=csrf)
    assert ada.status == 422
    assert "Please answer this" in ada.text
    ada.post(path, dict.fromkeys(names, "3"), csrf=csrf, follow=False)
    assert (ada.status, ada.response.headers["location"]) == (303, f"/dashboard/studies/likert/preview/0/{item + 1}/s")


def test_drafts_chats_and_files_of_a_preview(looking):
    ada, _, _ = looking("chat")
    csrf = ada.csrf
    answer = ada.client.post(
        "/dashboard/studies/chat/preview/0/0/s/draft",
        json={"screen": "x", "answers": {}},
        headers={"x-csrf-token": csrf},
    )
    assert answer.status_code == 204
    said = ada.client.post(
        "/dashboard/studies/chat/preview/0/0/s/chat", json={"text": "hi"}, headers={"x-csrf-token": csrf}
    )
    assert said.status_code == 409
    assert "preview" in said.json()["error"]
    assert ada.get("/studies/chat/preview/0/0/static/base.css").response.headers["content-type"].startswith("text/css")
    for file in ("nothing.css", "..%2Fapp.py", "..%2F..%2Fapp.py"):
        assert ada.get(f"/studies/chat/preview/0/0/static/{file}").status == 404
    assert ada.get("/studies/chat/preview/9/0/s").status == 404


def test_there_is_no_store_to_write_to(looking):
    with pytest.raises(FlowError, match="stores nothing"):
        NoStore().submissions.record([])
