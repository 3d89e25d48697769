"""Screens that were drawn before are the same pages as those drawn anew, whoever looks at them."""

from dataclasses import replace

import pytest

from dialometer.flow.engine import Flow
from dialometer.storage.store import Store
from dialometer.web.rater import pages
from dialometer.web.rater.drawn_screens import DrawnScreens
from dialometer.web.rater.pages import Pages

NASTY = 'http://"><script>alert(1)</script>/resume/'


@pytest.mark.parametrize("template", ["likert", "best-worst", "acute", "anchoring"])
def test_kept_pages_are_those_drawn_anew(template, make_study, tmp_path, monkeypatch):
    study = make_study(template, n_items=3)
    with Store.open(tmp_path / "pages.db") as store:
        flow = Flow(study, store, clock=lambda: 1_800_000_000_000)
        kept = Pages(study)
        looks = []
        for n in range(4):
            session = flow.arrive(external_id=f"r{n}").session
            for step in range(len(flow.path(session).steps)):
                at = replace(session, step=step, consent_version="1" if step else "")
                own = {"csrf": f"csrf-{n}", "token": f"token-{n}-{step}", "resume_link": f"{NASTY}{n}"}
                looks.append((at, flow.screen(at), own))
        shown = [kept.render_screen(flow, at, screen, **own) for at, screen, own in looks]
        n_kept = len(kept._drawn_screens._kept)
        monkeypatch.setattr(pages, "drawn_alike", lambda *_: None)
        for (at, screen, own), page in zip(looks, shown, strict=True):
            assert page == kept.render_screen(flow, at, screen, **own), screen.key
            assert "<script>alert" not in page
    assert 0 < n_kept < len(looks), "raters share pages"


def test_the_oldest_pages_make_room():
    drawn = DrawnScreens(most_characters=100)
    for name in ("a", "b", "c"):
        page = drawn.keep(name, f"{name * 40}{drawn.gap('token')}", {"token": "<1>"})
        assert page == f"{name * 40}&lt;1&gt;"
    assert drawn.filled("a", {"token": 2}) is None
    assert drawn.filled("c", {"token": 2}) == f"{'c' * 40}2"
