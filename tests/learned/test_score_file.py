"""Scores of a large file: written part by part, and continued after an interruption with the numbers of one run."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from dialometer.learned import evaluators
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.training import fit_gaussian, save_gaussian
from dialometer.learned.score_file import COLUMNS, DialogueSource, score_file
from dialometer.neural.engines import LOCAL, InProcesses
from dialometer.readers import read_dialogues
from dialometer.readers.writing import write_dialogues

from .test_gaussian_evaluator import talks

ASPECTS = ("words", "behaviour")


class _Ended(Exception):
    pass


class _EndsAfter:
    """An engine that is ended after some parts."""

    def __init__(self, n_parts):
        self.n_parts, self.n_scored = n_parts, 0

    def run(self, work, shared, parts):
        for result in LOCAL.run(work, shared, parts):
            if self.n_scored == self.n_parts:
                raise _Ended
            self.n_scored += 1
            yield result


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluators, "PART", 10)
    rated = talks(60, 21, n_users=15)
    table = describe([one.dialogue for one in rated], has_meaning=False)
    save_gaussian(tmp_path / "evaluator", fit_gaussian(rated, aspects=ASPECTS, table=table))
    file = tmp_path / "chats.jsonl"
    write_dialogues(file, [one.dialogue for one in talks(47, 22)])
    return tmp_path, DialogueSource.of(file, lambda: read_dialogues(file))


def rows_of(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_an_interrupted_run_goes_on_after_the_last_whole_part(work):
    folder, source = work
    whole = score_file(folder / "evaluator", source, out=folder / "whole.csv")
    assert (whole.n, whole.n_known, source.n) == (47, 0, 47)
    out, part = folder / "scores.csv", folder / "scores.csv.part"
    with pytest.raises(_Ended):
        score_file(folder / "evaluator", source, out=out, engine=_EndsAfter(3))
    assert not out.exists()
    part.write_bytes(part.read_bytes()[:-7])  # the power went while the last row was written
    counted = _EndsAfter(99)
    found = score_file(folder / "evaluator", source, out=out, engine=counted)
    assert (found.n, found.n_known, counted.n_scored) == (47, 20, 3)
    assert rows_of(out) == rows_of(folder / "whole.csv")
    assert rows_of(out)[0] == list(COLUMNS)
    np.testing.assert_array_equal(found.scores.values, whole.scores.values)
    assert sorted(found.best) == sorted(whole.best)
    assert not list(folder.glob("*.part*"))


def test_dialogues_without_a_turn_of_an_agent_keep_their_rows(work):
    """Those of a whole part too; the numbers of the others do not depend on them."""
    folder, source = work
    whole = score_file(folder / "evaluator", source, keeps_rows=True)
    some = {0, 1, *range(10, 20), 46}
    mixed = [
        replace(dialogue, turns=tuple(turn for turn in dialogue.turns if turn.role != "agent"))
        if n in some
        else dialogue
        for n, dialogue in enumerate(read_dialogues(folder / "chats.jsonl"))
    ]
    write_dialogues(folder / "mixed.jsonl", mixed)
    file = folder / "mixed.jsonl"
    mixed_source = DialogueSource.of(file, lambda: read_dialogues(file))
    with pytest.raises(_Ended):
        score_file(folder / "evaluator", mixed_source, out=folder / "mixed.csv", engine=_EndsAfter(2))
    scored = score_file(folder / "evaluator", mixed_source, out=folder / "mixed.csv")
    assert (scored.n, scored.n_known, len(scored.scores.values)) == (47, 20, 47 - len(some))
    assert scored.mute == [mixed[n].id for n in sorted(some)]
    rows = rows_of(folder / "mixed.csv")[1:]
    assert [row[0] for row in rows] == [dialogue.id for dialogue in mixed]
    assert [n for n, row in enumerate(rows) if row[1:] == ["", "", ""]] == sorted(some)
    for n, (row, before) in enumerate(zip(rows, whole.rows, strict=True)):
        assert n in some or float(row[1]) == pytest.approx(before[1], abs=1e-9)
    assert not {row[0] for *_, row in (*scored.best, *scored.worst)} & set(scored.mute)


def test_what_another_evaluator_left_is_scored_anew(work):
    folder, source = work
    with pytest.raises(_Ended):
        score_file(folder / "evaluator", source, out=folder / "scores.csv", engine=_EndsAfter(3))
    other = talks(40, 23, n_users=10)
    table = describe([one.dialogue for one in other], has_meaning=False)
    save_gaussian(folder / "other", fit_gaussian(other, aspects=ASPECTS, table=table))
    assert score_file(folder / "other", source, out=folder / "scores.csv").n_known == 0


def test_processes_take_parts_as_they_are_needed():
    taken = []

    def parts():
        for number in range(20):
            taken.append(number)
            yield number

    engine = InProcesses(1)
    try:
        results = engine.run(divmod, 100, (number + 1 for number in parts()))
        assert next(results) == (100, 0)
        assert len(taken) < 6
        assert [one[0] for one in results] == [100 // (number + 1) for number in range(1, 20)]
    finally:
        engine.close()
