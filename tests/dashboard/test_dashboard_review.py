"""The study as one document for an ethics board, by a link that needs no account."""

import re

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import template_folder, template_names
from dialometer.web.dashboard.pages.together import review
from dialometer.web.dashboard.pages.together.review import screens


@pytest.mark.parametrize("name", template_names())
def test_every_condition_and_every_question_is_shown(name):
    study = load_study(template_folder(name))
    shown = screens(study)
    assert {label for screen in shown for label in screen.conditions} == {
        study.cell_label(cell) for cell in study.cells
    }
    text = " ".join(re.sub(r"<[^>]+>", " ", " ".join(screen.content for screen in shown)).split())
    asked = [
        question.text
        for part in ("screening", "pre_questionnaire", "post_questionnaire")
        for question in getattr(study.spec, part)
    ]
    for words in asked:
        assert any(part in text for part in (words, words.replace("'", "&#39;").replace('"', "&#34;"))), words
    if len(study.cells) > 1:
        consent = [screen for screen in shown if screen.title == "Consent"]
        assert [len(screen.conditions) for screen in consent] == [len(study.cells)], "what all see is shown once"
    assert " id=" not in " ".join(screen.content for screen in shown), "names would be given twice"


def test_a_link_for_reviewers(site, monkeypatch):
    ada = site.owner()
    ada.get("/studies/draft/review")
    assert "What is kept about raters" in ada.text
    ada.post("/studies/draft/review")
    link = re.search(r'class="one-time">([^<]+)<', ada.page)[1]
    path = link.partition("/dashboard")[2]
    stranger = site.visitor()
    assert stranger.get(path).status == 200
    assert "What raters see" in stranger.text
    assert "Make a link" not in stranger.text
    assert "Sign out" not in stranger.text
    wrong = [
        path[:-1] + ("0" if path[-1] != "0" else "1"),
        path.replace("/draft/", "/likert/"),
        path.rpartition("/")[0] + "/é",
    ]
    for address in (*wrong, re.sub(r"/\d+/", "/99999/", path), re.sub(r"/\d+/", "/x/", path)):
        assert stranger.get(address).status in (403, 404), address
    later = review.now_ms() + (review.VALID_DAYS + 2) * review.DAY_MS
    monkeypatch.setattr(review, "now_ms", lambda: later)
    assert stranger.get(path).status == 403
    assert "has ended" in stranger.text
    viewer = site.member("viewer")
    assert viewer.get("/studies/draft/review").status == 200
    assert viewer.post("/studies/draft/review").status == 403
