"""Export, import elsewhere, export again: the same tables, whatever they were written as."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from dialometer.design.load import check_study, load_study
from dialometer.design.templates import copy_template
from dialometer.errors import ImportFileError
from dialometer.exchange.exports.export import export_study
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store

NOT_COMPARABLE = {"judgment", "entry", "replaces"}
"""Numbers of rows are given anew, and only the last of a chain of corrections comes along."""


def lines_of(path, rows) -> list[str]:
    """The rows of a table with what can be compared, as sorted texts."""
    kept = [{key: cell for key, cell in row.items() if key not in NOT_COMPARABLE} for row in rows(path)]
    return sorted(json.dumps(row) for row in kept)


TEMPLATES = ["anchoring", "likert", "strategies", "best-worst", "avatar", "acute", "chat"]
OTHER_FORMS = [("strategies", "jsonl"), ("best-worst", "parquet"), ("avatar", "parquet"), ("acute", "jsonl")]


@pytest.mark.parametrize(("template", "format"), [*((template, "csv") for template in TEMPLATES), *OTHER_FORMS])
def test_every_template_comes_back_the_same(collect, tmp_path, rows, template, format):
    database = str(tmp_path / "a.db")
    study, _ = collect(template, database, n_raters=3, careless_share=0.4)
    copy_template(template, tmp_path / "fresh")
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out", format=format, include_practice=True)
        export_study(study, store, tmp_path / "one", include_practice=True)
    done = import_files(tmp_path / "fresh", [tmp_path / "out"], tmp_path / "b.db", at_ms=1)
    assert done.files[0].format == "dialometer"
    with Store.open(tmp_path / "b.db") as store:
        export_study(load_study(tmp_path / "fresh"), store, tmp_path / "two", include_practice=True)
    for name in ("judgments.csv", "answers.csv", "sessions.csv"):
        assert lines_of(tmp_path / "one" / name, rows) == lines_of(tmp_path / "two" / name, rows), name
    assert len(rows(tmp_path / "one" / "judgments.csv")) > 10


def test_on_both_databases_with_exclusions_and_people(collect, database_url, tmp_path, rows):
    """People's sessions become imported ones; how they ended, why they are excluded and their consent stay."""
    study, folder = collect("likert", database_url, n_raters=5, careless_share=0.5, drop_out=0.4)
    source = tmp_path / "source.db"
    with Store.open(database_url) as store:
        sessions = store.sessions.all()
        store.exclusions.exclude(sessions[0].id, "me", 'odd, "so to speak"', 1)
        export_study(study, store, tmp_path / "one")
        store.withdrawals.withdraw(sessions[-1].id, 1)
        export_study(study, store, tmp_path / "out")
    states = {row["state"] for row in rows(tmp_path / "one" / "sessions.csv")}
    assert {"completed", "active"} <= states, "the case should have unfinished sessions"
    assert any(row["exclusion_reason"] for row in rows(tmp_path / "one" / "sessions.csv"))
    sessions_file = tmp_path / "out" / "sessions.csv"
    judgments_file = tmp_path / "out" / "judgments.csv"
    for path in (sessions_file, judgments_file):
        path.write_text(path.read_text().replace(",simulated,", ",person,"))
    rehash(tmp_path / "out")
    import_files(folder, [tmp_path / "out"], source, at_ms=1)
    with Store.open(source) as store:
        export_study(study, store, tmp_path / "two")
    for name in ("judgments.csv", "sessions.csv"):
        expected = lines_of(tmp_path / "out" / name, rows)
        expected = [line.replace('"person"', '"imported"').replace('"active"', '"stale"') for line in expected]
        assert lines_of(tmp_path / "two" / name, rows) == sorted(expected)
    assert rows(tmp_path / "two" / "sessions.csv")[-1]["state"] == "withdrawn"


def rehash(folder) -> None:
    """Makes the manifest fit a changed folder, as if it had been exported so."""
    from dialometer.exchange.exports.export_folder import sha256_of

    manifest = json.loads((folder / "export.json").read_text())
    for name, about in manifest["files"].items():
        about["sha256"] = sha256_of(folder / name)
    (folder / "export.json").write_text(json.dumps(manifest))


def test_corrected_rows_do_not_come_twice(collect, tmp_path, rows):
    from dataclasses import replace

    database = str(tmp_path / "a.db")
    study, folder = collect("likert", database, n_raters=2)
    with Store.open(database) as store:
        first = next(j for j in store.records.judgments() if not j.is_practice)
        new = 1 if first.value != 1 else 2
        again = replace(first, id=None, value=new, replaces=first.id, corrected_by="rater")
        second = store.submissions.correct(again)
        store.submissions.correct(replace(again, value=first.value, replaces=second))
        answer = next(iter(store.records.answers()))
        store.submissions.correct(replace(answer, id=None, replaces=answer.id, corrected_by="rater"))
        export_study(study, store, tmp_path / "all", include_corrected=True)
        export_study(study, store, tmp_path / "one")
    done = import_files(folder, [tmp_path / "all"], tmp_path / "b.db", at_ms=1)
    assert done.files[0].left_out == {"judgments and answers that were corrected later": 3}
    with Store.open(tmp_path / "b.db") as store:
        export_study(study, store, tmp_path / "two")
    for name in ("judgments.csv", "answers.csv", "sessions.csv"):
        assert lines_of(tmp_path / "one" / name, rows) == lines_of(tmp_path / "two" / name, rows)


@pytest.mark.parametrize("template", TEMPLATES)
def test_without_a_study_one_is_written_that_holds_the_same_judgments(collect, tmp_path, rows, template):
    database = str(tmp_path / "a.db")
    study, _ = collect(template, database, n_raters=4)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
    done = import_files(tmp_path / "fresh", [tmp_path / "out"], tmp_path / "b.db", at_ms=1)
    drafted, problems = check_study(tmp_path / "fresh")
    assert [problem for problem in problems if problem.severity == "error"] == []
    assert not done.new_study.has_guessed_scales
    for criterion in study.spec.criteria:
        mine = drafted.criteria_by_name.get(criterion.name)
        if mine is not None:  # nobody may have answered it
            assert mine.question == criterion.question
            assert drafted.spec.scales[mine.scale] == study.spec.scales[criterion.scale]
    with Store.open(tmp_path / "b.db") as store:
        export_study(drafted, store, tmp_path / "two")
    assert lines_of(tmp_path / "out" / "judgments.csv", rows) == lines_of(tmp_path / "two" / "judgments.csv", rows)


def test_the_judgments_file_alone_without_dictionary(collect, tmp_path, rows):
    database = str(tmp_path / "a.db")
    study, _ = collect("likert", database, n_raters=4, careless_share=0.6)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
    (tmp_path / "alone").mkdir()
    path = tmp_path / "alone" / "judgments.csv"
    shutil.copy(tmp_path / "out" / "judgments.csv", path)
    done = import_files(tmp_path / "fresh", [path], tmp_path / "b.db", at_ms=1)
    assert done.files[0].format == "dialometer"
    assert done.new_study.has_guessed_scales
    with Store.open(tmp_path / "b.db") as store:
        export_study(done.study, store, tmp_path / "two")
    assert lines_of(path, rows) == lines_of(tmp_path / "two" / "judgments.csv", rows)
    assert any(row["is_excluded"] == "true" for row in rows(tmp_path / "two" / "sessions.csv"))


def test_a_changed_or_incomplete_folder_is_refused(collect, tmp_path):
    database = str(tmp_path / "a.db")
    study, folder = collect("strategies", database, n_raters=2)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
    path = tmp_path / "out" / "answers.csv"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ImportFileError, match="not as it was exported"):
        import_files(folder, [tmp_path / "out"], tmp_path / "b.db", at_ms=1)
    path.unlink()
    with pytest.raises(ImportFileError, match="not as it was exported, or missing"):
        import_files(folder, [tmp_path / "out"], tmp_path / "b.db", at_ms=1)
    with pytest.raises(ImportFileError, match="this folder is not an export"):
        import_files(folder, [folder], tmp_path / "b.db", format="dialometer", at_ms=1)


def test_folder_and_file_of_one_export_are_the_same_data(collect, tmp_path):
    database = str(tmp_path / "a.db")
    study, folder = collect("strategies", database, n_raters=2)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
    import_files(folder, [tmp_path / "out"], tmp_path / "b.db", at_ms=1)
    with pytest.raises(ImportFileError, match="imported before, as 'out'"):
        import_files(folder, [tmp_path / "out" / "judgments.csv"], tmp_path / "b.db", at_ms=1)


def test_pseudonyms_of_two_exports_are_different_people(collect, tmp_path):
    study, folder = collect("strategies", str(tmp_path / "a.db"), n_raters=2, name="one")
    collect("strategies", str(tmp_path / "b.db"), n_raters=3, name="two")
    for name in ("a", "b"):
        with Store.open(tmp_path / f"{name}.db") as store:
            export_study(study, store, tmp_path / name)
    import_files(folder, [tmp_path / "a", tmp_path / "b"], tmp_path / "c.db", at_ms=1)
    with Store.open(tmp_path / "c.db") as store:
        sessions = store.sessions.all()
        assert len({session.rater_id for session in sessions}) == len(sessions) == 5
        assert {session.source for session in sessions} == {"simulated"}, "nobody takes them for people"


@pytest.fixture(scope="module")
def exported_once(tmp_path_factory, collect_into) -> tuple[Path, pl.DataFrame]:
    """A study of pairs and its table of judgments, all texts."""
    folder = tmp_path_factory.mktemp("tampered")
    study, path = collect_into(folder / "study", "strategies", str(folder / "a.db"), n_raters=1)
    with Store.open(folder / "a.db") as store:
        export_study(study, store, folder / "out", format="parquet")
    return path, pl.read_parquet(folder / "out" / "judgments.parquet").with_columns(pl.all().cast(pl.String))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("answer", "{", "'answer' is not valid JSON"),
        ("answer", '"nobody"', "does not fit the scale"),
        ("scale", "likert", "answered on a scale of type likert, but the study asks for pairwise"),
        ("position", "first", "'position' should be a whole number"),
        ("is_late", "perhaps", "'is_late' should be true or false"),
        ("shown_at", "noon", "'noon' is not a time"),
        ("rater", "", "the rater is missing"),
        ("order", "control|other", "the study has no system 'other'"),
        ("block", "nowhere", "the study has no block 'nowhere'"),
        ("item", "nothing", "the study has no item 'nothing'"),
    ],
)
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_rows_that_were_tampered_with_are_told(exported_once, tmp_path, column, value, message, format):
    folder, table = exported_once
    frame = table.with_columns(
        pl.when(pl.int_range(pl.len()) == 4).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )
    path = tmp_path / f"judgments.{format}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[format](path)
    with pytest.raises(ImportFileError) as caught:
        import_files(folder, [path], tmp_path / "b.db", format="dialometer", at_ms=1)
    assert len(caught.value.problems) == 1
    assert message in caught.value.problems[0].message
    assert caught.value.problems[0].line == (6 if format == "csv" else 5)
