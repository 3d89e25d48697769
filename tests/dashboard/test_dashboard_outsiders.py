"""Nothing for strangers, and no more for members than their role allows: every route, every method."""

import re

import pytest

from dialometer.flow.engine import now_ms
from dialometer.web.dashboard.dashboard import RANKS, all_pages
from dialometer.web.dashboard.login import Login

PAGES = all_pages()
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
TITLES = ("travel assistant", "likert", "anchoring", "draft", "R0001")
EXAMPLES = {
    "study": "likert",
    "ordinal:number": "1",
    "item:path": "t01",
    "file": "study.yaml",
    "cell": "0",
    "language": "de",
    "format": "csv",
    "step:number": "0",
    "step": "study",
    "number": "1",
    "number:number": "0",
    "line:number": "1",
    "template": "likert",
    "id:number": "1",
}


def address(page):
    return "/dashboard" + re.sub(r"\{([^}]+)\}", lambda found: EXAMPLES[found[1]], page.path)


def ids(page):
    return f"{page.method} {page.path}"


def test_there_are_many_pages_and_each_has_a_role():
    assert len(PAGES) > 30
    assert all(page.role in RANKS for page in PAGES)
    assert all(
        page.role != "viewer" or page.method == "GET" or "preview" in page.path or "comments" in page.path
        for page in PAGES
    )


@pytest.mark.parametrize("cookie", ["", "made-up-secret"])
def test_a_stranger_gets_nothing_from_any_route(site, cookie):
    site.owner()
    for page in PAGES:
        for method in METHODS:
            stranger = site.visitor(**({"cookie": f"dialometer_dashboard={cookie}"} if cookie else {}))
            path = address(page)
            data = {"csrf": "0" * 64} if method == "POST" else None
            response = stranger.client.request(method, path, data=data, follow_redirects=False)
            told = f"{method} {path}: {response.status_code}"
            assert response.status_code in (303, 401, 404, 405), told
            if response.status_code == 303:
                assert response.headers["location"].startswith("/dashboard/login?next="), told
            assert not response.content or not any(word in response.text for word in TITLES), told
    assert not site.store("likert").control.log()
    assert [account.name for account in site.accounts.all()] == ["ada"]


def test_a_stranger_learns_nothing_from_addresses_that_are_not_there(site):
    stranger = site.visitor()
    for path in (
        "/dashboard/studies/nothing/",
        "/dashboard/what",
        "/dashboard/studies/likert/items/zzz",
        "/dashboard/x/../studies/likert/",
    ):
        response = stranger.client.get(path, follow_redirects=False)
        assert (response.status_code, response.headers["location"].split("?")[0]) == (303, "/dashboard/login"), path
    assert stranger.client.post("/dashboard/what", data={}).status_code == 401


def test_the_door_shows_no_study(site):
    stranger = site.visitor()
    for path in ("/login", "/join"):
        stranger.get(path)
        assert not any(word in stranger.page for word in TITLES), path
    assert stranger.get("/join", token="guessed").status == 403


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_a_role_is_held_to_its_pages(site, role):
    member = site.member(role)
    csrf = member.csrf
    for page in PAGES:
        if RANKS[page.role] <= RANKS[role]:
            continue
        path = address(page).removeprefix("/dashboard")
        member.get(path) if page.method == "GET" else member.post(path, csrf=csrf)
        assert member.status == 403, (role, path)
        assert "your account may not do this" in member.text.lower()
    assert not site.store("likert").control.log()
    assert not list(site.store("likert").exclusions.log("x"))


def test_an_editor_of_one_study_gets_nothing_of_another(site):
    site.owner()
    guest = site.visitor()
    token = Login(site.accounts).invite("editor", by="ada", at_ms=now_ms(), study="anchoring")
    guest.join(token, "gil", follow=False)
    csrf = guest.csrf
    of_studies = [page for page in PAGES if "{study}" in page.path]
    assert len(of_studies) > 40
    for page in of_studies:
        path = address(page).removeprefix("/dashboard")
        guest.get(path) if page.method == "GET" else guest.post(path, csrf=csrf)
        assert guest.status == 403, ids(page)
        assert "travel assistant" not in guest.text, ids(page)
    assert guest.get("/studies/anchoring/files").status == 200
    assert not site.store("likert").control.log()


def test_every_form_needs_its_mark(site):
    owner = site.owner()
    for page in PAGES:
        if page.method != "POST":
            continue
        owner.post(address(page).removeprefix("/dashboard"), csrf="0" * 64)
        assert owner.status == 403, ids(page)
        owner.client.headers["sec-fetch-site"] = "cross-site"
        owner.post(address(page).removeprefix("/dashboard"), csrf="right" if False else owner_mark(owner))
        del owner.client.headers["sec-fetch-site"]
        assert owner.status == 403, ids(page)


def owner_mark(owner):
    from dialometer.web.server.security import csrf_for

    return csrf_for(owner.client.cookies["dialometer_dashboard"])


def test_every_page_opens_for_a_viewer(site):
    viewer = site.member("viewer")
    for page in PAGES:
        if page.method != "GET" or page.role != "viewer" or "{file}" in page.path:
            continue
        viewer.get(address(page).removeprefix("/dashboard"))
        if page.path.endswith("/adjudication"):
            assert "this study has no adjudication" in viewer.text.lower()
            continue
        if "{language}" in page.path:
            assert viewer.status == 422, "this study has one language"
            continue
        assert viewer.status == 200, (page.path, viewer.text[:300])
        if "text/html" in viewer.response.headers["content-type"] and "/preview/" not in page.path:
            assert "Exclude from the analysis" not in viewer.page
            assert 'name="what"' not in viewer.page


def test_answers_are_safe_to_show(site):
    owner = site.owner()
    for path in ("/", "/studies/likert/", "/accounts", "/nothing"):
        owner.get(path)
        policy = owner.response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe" not in policy
        assert owner.response.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=", owner.page), path


STRANGE = (
    "/studies/likert/raters?page=-1&sort=%00&q=%F0%9F%92%A9%00&only_state=%27",
    "/studies/likert/raters?page=" + "9" * 40,
    "/studies/likert/raters/" + "9" * 30,
    "/studies/likert/items/" + "x" * 3000,
    "/studies/likert/items/%00%FF",
    "/studies/%F0%9F%92%A9/",
    "/studies/..%2Flikert/",
    "/studies/likert/preview/" + "9" * 30 + "/0/s",
    "/studies/likert/preview/0/" + "9" * 30 + "/s",
    "/studies/likert/preview?cell=" + "9" * 30 + "&step=-1",
    "/studies/likert/files/%2e%2e%2fstudy.yaml",
    "/studies/likert/?source=%3Cscript%3E",
    "/studies/likert/results?told=x&mark=%FF",
)


@pytest.mark.parametrize("path", STRANGE)
def test_strange_addresses_are_no_trouble(site, path):
    owner = site.owner()
    response = owner.client.get(f"/dashboard{path}")
    assert response.status_code in (200, 404, 422), response.text[:300]
    assert "<script>" not in response.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x"),
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n\xff\xfe\r\n--x--',
        ),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % n for n in range(5000))),
        ("application/x-www-form-urlencoded", b"csrf=%ff%fe"),
        ("application/json", b"{"),
        ("text/plain", b"\x00"),
    ],
)
def test_strange_forms_are_no_trouble(site, kind, body):
    owner = site.owner()
    for path in ("/studies/likert/control", "/studies/draft/files", "/new"):
        response = owner.client.post(f"/dashboard{path}", content=body, headers={"content-type": kind})
        assert response.status_code in (400, 403, 413, 422), (path, response.status_code, response.text[:300])


def test_a_study_that_has_not_started_has_a_page_of_its_own(site, studies_folder):
    """In the study's language, with its style sheet; an address without a study is something else."""
    spec = studies_folder / "draft" / "study.yaml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("language: en", "language: de"), encoding="utf-8")
    rater = site.visitor()
    page = rater.client.get("/draft/")
    assert page.status_code == 403
    assert "Die Studie hat noch nicht begonnen" in page.text
    assert "content-security-policy" in page.headers
    sheet = re.search(r'href="([^"]+base\.css[^"]*)"', page.text)
    assert sheet is not None
    assert rater.client.get(sheet[1]).status_code == 200
    again = re.search(r'<a class="button main" href="([^"]*)"', page.text)
    assert again is not None
    assert again[1] == "", "loaded again at the study's own address"
    assert rater.client.get("/nowhere/").status_code == 404
