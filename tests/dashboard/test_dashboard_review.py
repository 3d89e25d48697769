"""The study as one document for an ethics board, by a link that needs no account."""

import json
import re
import zlib

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.web.dashboard.pages.together import review
from dialometer.web.dashboard.pages.together.review import screens
from dialometer.web.dashboard.running_studies import StudyFolders

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 30 + b"\0\0\0\0IEND" + zlib.crc32(b"IEND").to_bytes(4, "big")


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
    whole = " ".join(screen.content for screen in shown)
    ids = re.findall(r' id="([^"]*)"', whole)
    assert len(ids) == len(set(ids)), "no name is given twice"
    named = re.findall(r' (?:for|aria-labelledby|aria-describedby)="([^"]*)"', whole)
    assert {word for words in named for word in words.split()} <= set(ids), "what names a field is in the document"
    titles = [screen.title for screen in shown]
    assert titles[-1] == "The end", "every form of a screen comes where raters see it"
    assert sorted(titles, key=titles.index) == titles, "the forms of a screen are beside each other"
    assert "XXXX-XXXX" in shown[-1].content, "the consent texts promise a withdrawal code"
    assert not re.search(r"<details(?![^>]* open)", whole), "nothing is folded on paper"
    assert not re.search(r'href="/', whole), "links of a session lead nowhere here"
    assert not re.search(r"<(section|aside)\b", whole), "a screen has no landmarks of the document"


def test_what_raters_open_and_see_is_in_the_document(studies_folder, make_site):
    """Long responses are whole; images come with the link of the document, and with nothing else."""
    copy_template("compare", studies_folder / "pictured")
    folder = studies_folder / "pictured"
    (folder / "media").mkdir()
    (folder / "media" / "fern.png").write_bytes(PNG)
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    for item in items:
        item["context"][0]["media"] = [{"path": "media/fern.png", "alt": "A fern"}]
        item["responses"] = dict.fromkeys(item["responses"], "many words " * 60)
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    with (folder / "study.yaml").open("a", encoding="utf-8") as file:
        file.write("\npresentation: {fold_words: 20}\n")
    site = make_site(StudyFolders(parent=str(studies_folder)))
    ada, stranger = site.owner(), site.visitor()
    picture = r'<img[^>]* src="/dashboard([^"]*)"[^>]*>'
    ada.get("/studies/pictured/review")
    assert 'class="cutting is-whole"' in ada.page
    assert 'class="cutting"' not in ada.page
    assert ada.get(re.search(picture, ada.page)[1]).response.content == PNG
    ada.get("/studies/pictured/review")
    ada.post("/studies/pictured/review")
    path = re.search(r'class="one-time">([^<]+)<', ada.page)[1].partition("/dashboard")[2]
    number = re.search(r"/studies/pictured/review/(\d+)/revoke", ada.page)[1]
    image = re.search(picture, stranger.get(path).page)[1]
    assert image.startswith(path)
    assert stranger.get(image).response.content == PNG
    assert stranger.get(image[:-1]).status == 404
    ada.post(f"/studies/pictured/review/{number}/revoke")
    assert stranger.get(image).status == 403


def test_what_raters_write_in_own_words_is_said_as_it_is_asked(studies_folder, make_site):
    for name in ("anchoring", "chat"):
        copy_template(name, studies_folder / f"new-{name}")
    file = studies_folder / "new-anchoring" / "study.yaml"
    asked = "screening:\n  - {name: job, text: What is your job?, scale: free_text}\n\npre_questionnaire:"
    file.write_text(file.read_text(encoding="utf-8").replace("pre_questionnaire:", asked, 1), encoding="utf-8")
    ada = make_site(StudyFolders(parent=str(studies_folder))).owner()
    said = re.search(r"own words\.(.*?)</ul>", ada.get("/studies/new-anchoring/review").page, re.DOTALL)[1]
    assert [text.split("<")[0] for text in said.split('<li dir="auto">')[1:]] == [
        "What is your job?",
        "What is your gender?",
        "Is there another quality that you looked for, or that we should ask about?",
        "Is there anything you would like to tell us about the study?",
    ]
    assert "<dt>Language</dt><dd>English</dd>" in ada.page
    assert "<dt>Recruitment</dt><dd>an open link</dd>" in ada.page
    assert "<dd>ein offener Link</dd>" in ada.get("/studies/new-anchoring/review", dashboard_language="de").page
    ada.get("/", dashboard_language="en")
    assert '<li dir="auto">conversation</li>' in ada.get("/studies/new-chat/review").page


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
    assert stranger.response.headers["referrer-policy"] == "no-referrer"
    for address in (path[:-1], f"{path}x", path.replace("/review/", "/report/"), "/review/é", "/review/" + "a" * 3000):
        assert stranger.get(address).status in (403, 404), address
    later = review.now_ms() + (review.VALID_DAYS + 2) * review.DAY_MS
    monkeypatch.setattr(review, "now_ms", lambda: later)
    assert stranger.get(path).status == 403
    assert "has ended" in stranger.text
    viewer = site.member("viewer")
    assert viewer.get("/studies/draft/review").status == 200
    assert viewer.post("/studies/draft/review").status == 403


def test_a_link_for_reviewers_is_revoked(site):
    ada, stranger = site.owner(), site.visitor()
    ada.get("/studies/draft/review")
    ada.post("/studies/draft/review")
    path = re.search(r'class="one-time">([^<]+)<', ada.page)[1].partition("/dashboard")[2]
    number = re.search(r"/studies/draft/review/(\d+)/revoke", ada.page)[1]
    assert path not in ada.get("/studies/draft/review").page, "shown once"
    assert site.member("viewer").post(f"/studies/draft/review/{number}/revoke").status == 403
    assert ada.post(f"/studies/likert/review/{number}/revoke").status == 409, "of another study"
    assert stranger.get(path).status == 200
    ada.get("/studies/draft/review")
    assert "no longer works" in ada.post(f"/studies/draft/review/{number}/revoke").text
    assert "/revoke" not in ada.page
    assert stranger.get(path).status == 403
    assert "revoked a link for reviewers" in ada.get("/audit").text
    ada.get("/studies/likert/review")
    ada.post("/studies/likert/review")
    assert "None yet." in ada.get("/studies/likert/share").text, "a link for review is no copy of a report"


def test_the_document_in_every_language_of_the_study(site):
    ada, stranger = site.owner(), site.visitor()
    folder = site.studies.folders.folder("draft")
    text = (folder / "study.yaml").read_text(encoding="utf-8")
    (folder / "study.yaml").write_text(f"languages: [en, de]\n{text}", encoding="utf-8")
    (folder / "translations.de.yaml").write_text('title: {text: "Die Sitzungen"}\n', encoding="utf-8")
    try:
        ada.get("/studies/draft/review", language="de")
        assert '<html lang="de"' in ada.page
        assert '<h1 lang="de" dir="ltr">Die Sitzungen</h1>' in ada.page
        assert "Was über Bewertende aufbewahrt wird" in ada.text
        assert "Weiter" in ada.text, "the rater's buttons too"
        assert 'href="?language=en"' in ada.page
        ada.get("/studies/draft/review")
        assert '<html lang="en"' in ada.page
        ada.post("/studies/draft/review")
        path = re.search(r'class="one-time">([^<]+)<', ada.page)[1].partition("/dashboard")[2]
        assert "Die Sitzungen" in stranger.get(path, language="de").text
        assert '<html lang="en"' in stranger.get(path, language="xx").page
    finally:
        (folder / "study.yaml").write_text(text, encoding="utf-8")
        (folder / "translations.de.yaml").unlink()
