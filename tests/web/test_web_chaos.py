"""``make chaos`` itself: it finds what is lost and doubled, and a few of its kills."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.chaos.faults import Figures, look_up
from bench.chaos.load import Acknowledged
from sqlalchemy import text

from dialometer.flow.engine import Flow
from dialometer.flow.submissions import Timing
from dialometer.storage.safety.acknowledged import ACKNOWLEDGED_FILE, AcknowledgementLog
from dialometer.storage.store import Store

ROOT = Path(__file__).parents[2]


def test_a_lost_and_a_doubled_screen_are_found(make_study):
    study = make_study("best-worst", n_items=2)
    target = study.folder / "study.db"
    acknowledged = []
    with Store.open(target) as store:
        log = AcknowledgementLog(study.folder / ACKNOWLEDGED_FILE)
        store.database.log_stored = log.add
        flow = Flow(study, store)
        session = flow.arrive(external_id="P1", source="simulated").session
        for screen, answers in (("consent", {"consent": "agree"}), ("instructions", {})):
            shown = flow.screen(store.sessions.get(session.id))
            if shown.key == screen:
                flow.submit(session.id, screen, answers, Timing(1, 2), f"token-{screen}")
                acknowledged.append(Acknowledged(session.id, screen, f"token-{screen}"))
        log.close()
    assert acknowledged
    load = SimpleNamespace(acknowledged=acknowledged)
    figures = Figures("kill -9", "SQLite")
    look_up(figures, load, study, target)
    assert (figures.n_lost, figures.n_doubled, figures.is_passed) == (0, 0, True), figures
    with Store.open(target) as store, store.database.writing() as writing:
        columns = "session_id, screen, step_after, state_after, at_ms"
        writing.execute(text(f"INSERT INTO submissions (token, {columns}) SELECT 'again', {columns} FROM submissions"))
        writing.execute(text("DELETE FROM submissions WHERE token = :token"), {"token": acknowledged[0].token})
        writing.execute(
            text(f"INSERT INTO submissions (token, {columns}) SELECT 'more', {columns} FROM submissions LIMIT 1")
        )
    figures = Figures("kill -9", "SQLite")
    look_up(figures, load, study, target)
    assert (figures.n_lost, figures.n_doubled, figures.is_passed) == (1, 1, False)
    assert any("acknowledged" in problem for problem in figures.problems)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [("kills", "--kills", "3"), ("disk",), ("clock",)])
def test_a_few_faults_lose_nothing(fault):
    command = [sys.executable, "-m", "bench.chaos", "--database", "sqlite", "--only", *fault]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 doubled" in done.stdout
