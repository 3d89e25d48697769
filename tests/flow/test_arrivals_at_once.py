"""Many raters arriving at once in several processes: cells stay balanced, every item keeps its quota."""

import multiprocessing
from collections import Counter

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import AssignmentError
from dialometer.flow.engine import Flow
from dialometer.storage.store import Store

N_PROCESSES, N_EACH = 4, 10


def arrive_many(folder, url, process, gate, results):
    study = load_study(folder)
    with Store.open(url) as store:
        flow = Flow(study, store)
        gate.wait(300)
        refused = 0
        for i in range(N_EACH):
            try:
                flow.arrive(external_id=f"p{process}-{i}")
            except AssignmentError:
                refused += 1
        results.put(refused)


def arrive_at_once(folder, url):
    # Processes of their own that have the libraries loaded already: they are forked from one that does nothing else.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "dialometer.design.load", "dialometer.flow.engine"])
    gate, results = context.Barrier(N_PROCESSES), context.Queue()
    workers = [context.Process(target=arrive_many, args=(folder, url, i, gate, results)) for i in range(N_PROCESSES)]
    for worker in workers:
        worker.start()
    refused = sum(results.get(timeout=600) for _ in workers)
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    return refused


@pytest.fixture
def folder(tmp_path):
    def make(name):
        copy_template(name, tmp_path / name)
        return tmp_path / name

    return make


def test_cells_stay_balanced(folder, study_url):
    path = folder("anchoring")
    assert arrive_at_once(path, study_url) == 0
    with Store.open(study_url) as store:
        sessions = list(store.sessions.all())
    assert sorted(session.ordinal for session in sessions) == list(range(1, N_PROCESSES * N_EACH + 1))
    assert set(Counter(session.draw.cell for session in sessions).values()) == {10}


def test_items_keep_their_quota(folder, study_url):
    """The Likert template needs exactly ten raters: 20 items, 5 judgments each, 10 items per rater."""
    path = folder("likert")
    refused = arrive_at_once(path, study_url)
    assert refused == N_PROCESSES * N_EACH - 10
    study = load_study(path)
    gold = {item.id for item in study.items if item.metadata.get("gold")}
    with Store.open(study_url) as store:
        counts = Counter(i for s in store.sessions.all() for ids in s.draw.items.values() for i in ids if i not in gold)
    assert len(counts) == 20
    assert set(counts.values()) == {5}
