"""Places and identities: who takes whose session, slot, code or secret."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from html import unescape
from pathlib import Path

import httpx

from bench.attack.target import Hole, Rater, Target, Visitor, check, fields_of, make_study, owner_of, serving
from dialometer.recruit.signed_links import signature
from dialometer.storage.access.secrets import SIGNING
from dialometer.storage.migrations.versions.r0005_links_and_codes import earlier_code
from dialometer.storage.store import Store

SECTION = "Places and identities"
PROLIFIC = {"platform": "prolific", "completion_code": "C1", "screen_out_code": "C2", "quota": 20}
COOKIE = "dialometer_session"


def simulated_clock(work: Path) -> str:
    """Simulated raters, whose clock runs ahead, take part in a study with people in it."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        people = [Rater(target, f"person-{n}") for n in range(10)]
        for person in people:
            person.answer()
        command = [sys.executable, "-m", "dialometer", "simulate", str(folder), "--url", target.url, "--raters", "5"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        answers = [person.answer()[0] for person in people]
        n_going_on = sum(answer is not None and answer.status_code == 200 for answer in answers)
        with Store.open(folder / "study.db", create=False) as store:
            states = [session.state for session in store.sessions.all() if session.source == "person"]
    n_stale = states.count("stale")
    return check(n_stale == 0 and n_going_on == 10, f"{n_stale} of 10 people stale, {n_going_on} of 10 could go on")


def impossible_clock(work: Path) -> str:
    """A program says that it is the year 287396."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        head = {"Authorization": f"Bearer {target.key}"}
        statuses = []
        for at_ms in (2**53, -(2**53), 10**15):
            body = {"source": "simulated", "at_ms": at_ms}
            statuses.append(httpx.post(f"{target.url}/api/v1/sessions", json=body, headers=head).status_code)
        command = [sys.executable, "-m", "dialometer", "status", str(folder)]
        status = subprocess.run(command, check=False, capture_output=True, timeout=60).returncode
    is_refused = all(400 <= number < 500 for number in statuses)
    return check(is_refused and status == 0, f"refused with {', '.join(map(str, statuses))}; status works")


def _arrive(client: httpx.Client, name: str) -> str:
    """A browser follows a rater's link and presses what there is to press; gives the token it got."""
    query = {"PROLIFIC_PID": name, "STUDY_ID": "s", "SESSION_ID": "x"}
    page = client.get("/", params=query, follow_redirects=True)
    if COOKIE not in client.cookies:
        action = re.search(r'<form[^>]*action="([^"]*)"', page.text)
        fields = {field: unescape(value) for field, value in fields_of(page.text).items()}
        client.post(unescape(action[1]) if action else "/start", data={**fields, "consent": "agree"})
    return client.cookies.get(COOKIE) or ""


def taken_session(work: Path) -> str:
    """A stranger opens the link of a rater who has begun."""
    folder = make_study(work / "study", recruitment=PROLIFIC)
    with serving(folder) as target:
        with httpx.Client(base_url=target.url, timeout=30) as alice, httpx.Client(base_url=target.url) as stranger:
            own, got = _arrive(alice, "alice"), _arrive(stranger, "alice")
            still = alice.get("/s").status_code
        with Store.open(folder / "study.db", create=False) as store:
            hers = store.sessions.by_token(own) if own else None
            his = store.sessions.by_token(got) if got else None
    is_taken = hers is not None and his is not None and his.id == hers.id
    figures = f"the stranger {'has' if is_taken else 'does not have'} the session, the rater continues ({still})"
    return check(hers is not None and not is_taken and still == 200, figures)


def bare_visits(work: Path) -> str:
    """19 addresses of a study of quota 20 are opened and nothing more."""
    folder = make_study(work / "study", recruitment=PROLIFIC)
    with serving(folder) as target:
        for n in range(19):
            httpx.get(
                f"{target.url}/", params={"PROLIFIC_PID": f"bot{n}", "STUDY_ID": "s", "SESSION_ID": "x"}, timeout=30
            )
        with Store.open(folder / "study.db", create=False) as store:
            n_sessions = len(store.sessions.all())
        with httpx.Client(base_url=target.url, timeout=30) as client:
            is_in = bool(_arrive(client, "carol"))
    return check(n_sessions == 0 and is_in, f"{n_sessions} of 20 slots taken by 19 visits; a rater gets in: {is_in}")


def ids_in_the_log(work: Path) -> str:
    """Somebody reads the server's log for ids from which withdrawal codes could follow."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        for n in range(5):
            Rater(target, f"r{n}").answer()
        httpx.get(f"{target.url}/withdraw")
        log = target.log
        with Store.open(folder / "study.db", create=False) as store:
            sessions = store.sessions.all()
    n_told = sum(session.id in log or session.rater_id in log for session in sessions)
    return check(len(sessions) == 5 and n_told == 0, f"{n_told} of {len(sessions)} sessions named in the log")


def codes_from_ids(work: Path) -> str:
    """Somebody who knows the ids of all sessions works out withdrawal codes as version 0.1.0 made them."""
    folder = make_study(work / "study")
    with serving(folder) as target:
        for n in range(5):
            Rater(target, f"r{n}").answer()
        with Store.open(folder / "study.db", create=False) as store:
            ids = [session.id for session in store.sessions.all()]
            n_valid = sum(store.withdrawals.session_of_code(earlier_code(one)) is not None for one in ids)
    return check(len(ids) == 5 and n_valid == 0, f"{n_valid} of {len(ids)} codes follow from session ids")


def crowd(work: Path) -> str:
    """40 made-up raters agree within seconds in a study that lets in 10 a minute."""
    folder = make_study(work / "study", recruitment={**PROLIFIC, "quota": 100, "arrivals_per_minute": 10})
    with serving(folder) as target:
        tokens = []
        for n in range(40):
            with httpx.Client(base_url=target.url, timeout=30) as client:
                tokens.append(_arrive(client, f"bot{n}"))
        counted = f'reason="crowded"}} {tokens.count("")}' in httpx.get(f"{target.url}/metrics", timeout=30).text
    n_in = sum(map(bool, tokens))
    figures = f"{n_in} of 40 let in, {tokens.count('')} asked to wait and {'' if counted else 'not '}counted"
    return check(n_in == 10 and counted, figures)


def unsigned(work: Path) -> str:
    """Made-up and changed names arrive at a study that asks for signed links."""
    folder = make_study(work / "study", recruitment={"platform": "redirect", "signed": True})
    with serving(folder) as target:
        with Store.open(folder / "study.db", create=False) as store:
            key = store.secrets.get(SIGNING, 0)
        link = {"rater": "ann", "sig": signature(key, "redirect", "ann")}
        tries = [{"rater": f"bot{n}"} for n in range(18)] + [
            {**link, "rater": "bob"},
            {**link, "expires": "9999999999"},
        ]
        statuses = [httpx.get(f"{target.url}/", params=query, timeout=30).status_code for query in tries]
        right = httpx.get(f"{target.url}/", params=link, timeout=30).status_code
    n_in = sum(status != 403 for status in statuses)
    return check(n_in == 0 and right == 200, f"{n_in} of {len(tries)} forged links let in; the signed one: {right}")


def _invite(owner: Visitor, target: Target, role: str, study: str = "") -> Visitor:
    page = owner.client.get("/dashboard/accounts").text
    made = owner.post("/dashboard/accounts/invite", page, role=role, study=study).text
    found = re.search(r"/dashboard/join\?token=([\w-]+)", made)
    if found is None:
        raise SystemExit(f"no link for a {role}")
    visitor = Visitor(target, "203.0.113.60")
    visitor.join(f"/dashboard/join?token={found[1]}", role)
    return visitor


def secrets_for_viewers(work: Path) -> str:
    """A viewer downloads the study."""
    folder = work / "studies"
    folder.mkdir()
    make_study(folder / "film")
    hidden = ("invitations.txt", "people.csv", "prolific.json")
    for name in hidden:
        (folder / "film" / name).write_text("s3cret\n", encoding="utf-8")
    with serving(folder) as target:
        viewer = _invite(owner_of(target), target, "viewer")
        content = viewer.client.get("/dashboard/studies/film/study.zip").content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
        statuses = [viewer.client.get(f"/dashboard/studies/film/files/{name}").status_code for name in hidden]
    n_leaked = len(names & set(hidden)) + sum(status == 200 for status in statuses)
    return check("study.yaml" in names and n_leaked == 0, f"{n_leaked} of 3 secrets in study.zip or by address")


def other_study(work: Path) -> str:
    """An editor of one study looks at another one."""
    folder = work / "studies"
    folder.mkdir()
    for name in ("film", "secret"):
        make_study(folder / name)
    with serving(folder) as target:
        editor = _invite(owner_of(target), target, "editor", "film")
        own = editor.client.get("/dashboard/studies/film/files").status_code
        paths = ("files", "preview", "study.zip", "files/study.yaml")
        statuses = [editor.client.get(f"/dashboard/studies/secret/{path}").status_code for path in paths]
        is_listed = "/studies/secret" in editor.client.get("/dashboard/").text
    n_open = sum(status == 200 for status in statuses)
    figures = f"the own study {own}, {n_open} of {len(paths)} pages of the other one, listed: {is_listed}"
    return check(own == 200 and n_open == 0 and not is_listed, figures)


def locked_out_owner(work: Path) -> str:
    """A stranger gives wrong passwords for the owner."""
    with serving(make_study(work / "study")) as target:
        owner_of(target)
        stranger, owner = Visitor(target, "198.51.100.9"), Visitor(target, "203.0.113.80")
        statuses = [stranger.sign_in("ada", "wrong").status_code for _ in range(8)]
        own = owner.sign_in("ada")
    is_in = own.status_code == 200 and own.url.path.startswith("/dashboard/") and "login" not in own.url.path
    figures = (
        f"the stranger is slowed after {statuses.index(429) if 429 in statuses else 'no'} tries, the owner signs in"
    )
    return check(429 in statuses and is_in, figures if is_in else f"the owner gets {own.status_code}")


HOLES = [
    Hole(SECTION, "clocks of simulated raters", simulated_clock),
    Hole(SECTION, "times outside reason", impossible_clock),
    Hole(SECTION, "a rater's link in another browser", taken_session),
    Hole(SECTION, "19 visits to a study of quota 20", bare_visits),
    Hole(SECTION, "session ids in the log", ids_in_the_log),
    Hole(SECTION, "withdrawal codes from session ids", codes_from_ids),
    Hole(SECTION, "a crowd of made-up raters", crowd),
    Hole(SECTION, "forged links where signed ones are asked for", unsigned),
    Hole(SECTION, "secrets in study.zip", secrets_for_viewers),
    Hole(SECTION, "an editor of another study", other_study),
    Hole(SECTION, "eight wrong passwords for the owner", locked_out_owner),
]
