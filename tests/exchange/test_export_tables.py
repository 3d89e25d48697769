"""What an export holds: every row, no identifier, the same bytes each time, and a dictionary for every column."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from dialometer.errors import DialometerError
from dialometer.exchange.exports import export as export_module
from dialometer.exchange.exports import export_tables as rows_module
from dialometer.exchange.exports.export import CsvWriter, export_study
from dialometer.flow.engine import Flow
from dialometer.flow.submissions import Timing
from dialometer.model.session import Answer, Judgment
from dialometer.storage.records import Records
from dialometer.storage.rows import token_hash
from dialometer.storage.store import Store
from dialometer.storage.table import COLUMNS, long_table


def bytes_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_every_table_has_every_row(collect, database_url, tmp_path, rows):
    study, _ = collect("likert", database_url, n_raters=4, careless_share=0.6)
    with Store.open(database_url) as store:
        done = export_study(study, store, tmp_path / "out")
        judgments = [j for j in store.records.judgments() if not j.is_practice]
        table = long_table(store.records.judgment_batches()).filter(~pl.col("is_practice"))
        sessions = store.sessions.all()
        counts = {
            "judgments.csv": len(judgments),
            "answers.csv": len(list(store.records.answers())),
            "screens.csv": len(list(store.records.visits())),
            "flags.csv": len(list(store.records.findings())),
            "sessions.csv": len(sessions),
        }
        reasons = {entry.session_id: entry.reason for entry in store.exclusions.log()}
    assert {name: len(rows(tmp_path / "out" / name)) for name in counts} == counts == done.n_rows
    assert counts["flags.csv"] > 0, "the case should have flags"
    written = rows(tmp_path / "out" / "judgments.csv")
    assert list(written[0]) == list(COLUMNS)
    assert [row["judgment"] for row in written] == [str(n) for n in sorted(table["judgment"])]
    assert [float(row["value"]) for row in written] == table.sort("judgment")["value"].to_list()
    of_session = rows(tmp_path / "out" / "sessions.csv")
    assert [row["rater"] for row in of_session] == [f"R{session.ordinal:04d}" for session in sessions]
    assert [row["is_excluded"] == "true" for row in of_session] == [session.is_excluded for session in sessions]
    assert [row["exclusion_reason"] for row in of_session] == [reasons.get(s.id, "") for s in sessions]
    n_by_rater = {row["rater"]: sum(j["rater"] == row["rater"] for j in written) for row in of_session}
    assert {row["rater"]: int(row["n_judgments"]) for row in of_session} == n_by_rater
    for row, session in zip(of_session, sessions, strict=True):
        assert float(row["duration_s"]) == (session.finished_at_ms - session.started_at_ms) / 1000
        assert row["consent_version"] == session.consent_version != ""


def test_conditions_are_columns_in_both_tables(collect, tmp_path, rows):
    database = str(tmp_path / "a.db")
    study, _ = collect("anchoring", database, n_raters=4)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
        conditions = {f"R{s.ordinal:04d}": s.condition for s in store.sessions.all()}
    for name in ("judgments.csv", "sessions.csv"):
        for row in rows(tmp_path / "out" / name):
            told = {"anchor": row["factor_anchor"], "layout": row["factor_layout"]}
            assert told == conditions[row["rater"]]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_no_identifier_leaves_the_database(collect, database_url, tmp_path, format):
    study, _ = collect("chat", database_url, n_raters=2)
    with Store.open(database_url) as store:
        flow = Flow(study, store)
        arrival = flow.arrive(platform="prolific", external_id="5f3a-person", params={"STUDY_ID": "77-study"})
        first = {"writes_english": "Yes"}
        flow.submit(arrival.session.id, flow.screen(arrival.session).key, first, Timing(1, 2), "tok-1")
        secret = [arrival.token, token_hash(arrival.token), "77-study", "tok-1"]
        for session in store.sessions.all():
            secret += [session.id, session.rater_id, store.sessions.person(session.id).external_id]
        assert len(secret) == 13
        assert all(len(text) >= 5 for text in secret)
        folder = export_study(study, store, tmp_path / "out", format=format).folder
    sizes = {path.stem: path.stat().st_size for path in folder.iterdir()}
    assert min(sizes[name] for name in ("judgments", "answers", "sessions", "screens", "chat_turns")) > 0
    for path in folder.iterdir():
        content = path.read_bytes()
        if path.suffix == ".parquet":  # compressed: look at the values
            content += pl.read_parquet(path).write_csv().encode()
        for text in secret:
            assert text.encode() not in content, f"{text} is in {path.name}"


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_the_same_database_gives_the_same_bytes(collect, tmp_path, monkeypatch, format):
    database = str(tmp_path / "a.db")
    study, _ = collect("strategies", database, n_raters=3)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "one", format=format)
        export_study(study, store, tmp_path / "two", format=format)
        monkeypatch.setattr(rows_module, "N_PER_FRAME", 7)
        export_study(study, store, tmp_path / "three", format=format)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")
    if format != "parquet":  # the size of parts must not show either
        assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "three")


def test_both_databases_give_the_same_bytes(collect, tmp_path, postgres_url):
    """A copy of the data in the other database is exported as the same file."""
    study, _ = collect("strategies", str(tmp_path / "a.db"), n_raters=3, name="one")
    collect("strategies", postgres_url, n_raters=3, name="two")
    for database, name in ((str(tmp_path / "a.db"), "sqlite"), (postgres_url, "postgresql")):
        with Store.open(database) as store:
            export_study(study, store, tmp_path / name)
    one, two = bytes_of(tmp_path / "sqlite"), bytes_of(tmp_path / "postgresql")
    assert one == two


def test_all_formats_hold_the_same(collect, tmp_path):
    database = str(tmp_path / "a.db")
    study, _ = collect("best-worst", database, n_raters=3)
    with Store.open(database) as store:
        for format in ("csv", "jsonl", "parquet"):
            export_study(study, store, tmp_path / format, format=format)
    for name in ("judgments", "answers", "sessions", "screens", "flags"):
        parquet = pl.read_parquet(tmp_path / "parquet" / f"{name}.parquet")
        # Texts only: both sides are written down by the same rule and must then be equal.
        csv = pl.read_csv(tmp_path / "csv" / f"{name}.csv", infer_schema=False)
        again = pl.read_csv(parquet.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.3fZ").encode(), infer_schema=False)
        assert csv.equals(again)
        lines = (tmp_path / "jsonl" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == parquet.height
        for line, row in zip(lines, parquet.iter_rows(named=True), strict=True):
            told = json.loads(line)
            for key, value in row.items():
                if hasattr(value, "isoformat"):
                    assert told[key] == value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
                else:
                    assert told[key] == value


def corrected(study, store) -> tuple[int, int]:
    """One judgment and one answer corrected; their numbers."""
    judgment = next(j for j in store.records.judgments() if not j.is_practice)
    answer = next(iter(store.records.answers()))
    fields = {name: getattr(judgment, name) for name in Judgment.__dataclass_fields__}
    store.submissions.correct(Judgment(**{**fields, "id": None, "replaces": judgment.id, "corrected_by": "rater"}))
    fields = {name: getattr(answer, name) for name in Answer.__dataclass_fields__}
    store.submissions.correct(Answer(**{**fields, "id": None, "replaces": answer.id, "corrected_by": "rater"}))
    return judgment.id, answer.id


def test_practice_and_corrected_only_on_request(collect, database_url, tmp_path, rows):
    study, _ = collect("likert", database_url, n_raters=2)
    with Store.open(database_url) as store:
        before = export_study(study, store, tmp_path / "before")
        judgment, answer = corrected(study, store)
        plain = export_study(study, store, tmp_path / "plain")
        whole = export_study(study, store, tmp_path / "whole", include_practice=True, include_corrected=True)
        n_practice = sum(j.is_practice for j in store.records.judgments())
    assert before.n_practice_left_out == plain.n_practice_left_out == n_practice > 0
    assert plain.n_rows["judgments.csv"] == before.n_rows["judgments.csv"]
    assert whole.n_rows["judgments.csv"] == before.n_rows["judgments.csv"] + n_practice + 1
    assert whole.n_rows["answers.csv"] == plain.n_rows["answers.csv"] + 1
    assert not any(row["is_practice"] == "true" for row in rows(tmp_path / "plain" / "judgments.csv"))
    assert str(judgment) not in [row["judgment"] for row in rows(tmp_path / "plain" / "judgments.csv")]
    replaced = [row["replaces"] for row in rows(tmp_path / "whole" / "judgments.csv") if row["replaces"]]
    assert replaced == [str(judgment)]
    assert [row["replaces"] for row in rows(tmp_path / "whole" / "answers.csv") if row["replaces"]] == [str(answer)]
    # What counts is the same however much is written.
    counts = [
        [row["n_judgments"] for row in rows(tmp_path / name / "sessions.csv")] for name in ("before", "plain", "whole")
    ]
    assert counts[0] == counts[1] == counts[2]


def test_the_dictionary_explains_every_column_of_every_file(collect, tmp_path):
    database = str(tmp_path / "a.db")
    study, _ = collect("chat", database, n_raters=2)
    with Store.open(database) as store:
        done = export_study(study, store, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "data_dictionary.json").read_text(encoding="utf-8"))
    markdown = (tmp_path / "out" / "data_dictionary.md").read_text(encoding="utf-8")
    assert set(told["files"]) == set(done.n_rows)
    for file, about in told["files"].items():
        header = (tmp_path / "out" / file).read_text(encoding="utf-8").splitlines()[0].split(",")
        assert [column["name"] for column in about["columns"]] == header
        assert all(column["meaning"] and column["type"] for column in about["columns"])
        assert f"## {file}" in markdown
        assert all(f"| `{column}` |" in markdown for column in header)
    spec = study.spec
    assert [one["name"] for one in told["criteria"]] == [criterion.name for criterion in spec.criteria]
    for criterion in told["criteria"]:
        scale = spec.scales[study.criteria_by_name[criterion["name"]].scale]
        assert criterion["scales"][0]["values"] == scale.categories()
        assert criterion["scales"][0]["type"] == scale.type
    columns = {column["name"]: column["values"] for column in told["files"]["judgments.csv"]["columns"]}
    assert columns["system"] == [system.name for system in spec.systems]
    assert columns["criterion"] == [criterion.name for criterion in spec.criteria]
    asked = [q.name for q in (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire)]
    assert [one["name"] for one in told["questions"]][: len(asked)] == asked
    assert told["study"]["fingerprint"] == done.manifest["study"]["fingerprint"]


@pytest.mark.parametrize("template", ["acute", "best-worst"])
def test_exported_values_are_among_those_the_dictionary_allows(collect, tmp_path, rows, template):
    database = str(tmp_path / "a.db")
    study, _ = collect(template, database, n_raters=5, careless_share=0.5)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "data_dictionary.json").read_text(encoding="utf-8"))
    n_checked = 0
    for file, about in told["files"].items():
        for column in about["columns"]:
            if column["values"] and column["name"] != "value":
                seen = {row[column["name"]] for row in rows(tmp_path / "out" / file)} - {""}
                assert seen <= set(column["values"]), (file, column["name"])
                n_checked += len(seen)
    assert n_checked > 20
    allowed = {column["name"]: column["values"] for column in told["files"]["judgments.csv"]["columns"]}
    assert allowed["choice"] == [system.name for system in study.spec.systems]


def test_the_manifest_names_version_and_hashes(collect, tmp_path):
    from datetime import UTC, datetime

    from dialometer.design.load import load_study
    from dialometer.design.lock import fingerprint, freeze

    database = str(tmp_path / "a.db")
    study, folder = collect("strategies", database, n_raters=2)
    freeze(study, folder, datetime(2025, 1, 2, tzinfo=UTC))
    with Store.open(database) as store:
        done = export_study(load_study(folder), store, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "export.json").read_text(encoding="utf-8"))
    assert manifest == done.manifest
    assert manifest["study"]["version"] == 1
    assert manifest["study"]["frozen_at"].startswith("2025-01-02")
    assert manifest["study"]["fingerprint"] == fingerprint(study)
    assert manifest["study"]["collected_under"] == [{"study_version": 1, "fingerprint": fingerprint(study)}]
    hashes = bytes_of(tmp_path / "out")
    del hashes["export.json"]
    assert {name: about["sha256"] for name, about in manifest["files"].items()} == hashes


def test_a_study_nobody_took_part_in_is_exported_empty(tmp_path, database_url, rows):
    from dialometer.design.load import load_study
    from dialometer.design.templates import copy_template

    copy_template("strategies", tmp_path / "study")
    study = load_study(tmp_path / "study")
    for format in ("csv", "jsonl", "parquet"):
        with Store.open(database_url) as store:
            done = export_study(study, store, tmp_path / format, format=format)
        assert set(done.n_rows.values()) == {0}
    assert (tmp_path / "csv" / "judgments.csv").read_text().startswith("judgment,rater,session,source")
    assert pl.read_parquet(tmp_path / "parquet" / "judgments.parquet").columns[:2] == ["judgment", "rater"]


def test_raters_who_arrive_meanwhile_are_in_the_sessions(collect, tmp_path, monkeypatch, rows):
    database = str(tmp_path / "a.db")
    study, _ = collect("strategies", database, n_raters=2)
    with Store.open(database) as store:
        flow = Flow(study, store)
        screens = export_module.screen_frames

        def arrive_first(*arguments):
            arrival = flow.arrive(external_id="late-comer")
            timing = Timing(1, 2)
            first = {"adult": "Yes", "reads_english": "Yes"}
            flow.submit(arrival.session.id, flow.screen(arrival.session).key, first, timing, "t1")
            flow.submit(arrival.session.id, "consent", {"consent": "agree"}, timing, "t2")
            return screens(*arguments)

        monkeypatch.setattr(export_module, "screen_frames", arrive_first)
        done = export_study(study, store, tmp_path / "out")
    assert [row["rater"] for row in rows(tmp_path / "out" / "sessions.csv")] == ["R0001", "R0002", "R0003"]
    assert rows(tmp_path / "out" / "screens.csv")[-1]["rater"] == "R0003"
    assert done.states == {"completed": 2, "active": 1}


def test_rows_are_read_and_written_in_parts(collect, tmp_path, monkeypatch):
    """Memory stays bounded because no part is long and none is read before the one before it was written."""
    database = str(tmp_path / "a.db")
    study, _ = collect("strategies", database, n_raters=3)
    monkeypatch.setattr(rows_module, "N_PER_FRAME", 7)
    events = []
    batches, write = Records.judgment_batches, CsvWriter.write

    def read_part(self, **options):
        for batch in batches(self, **options):
            events.append(("read", len(batch["id"])))
            yield batch

    def write_part(self, frame):
        events.append(("write", frame.height))
        write(self, frame)

    monkeypatch.setattr(Records, "judgment_batches", read_part)
    monkeypatch.setattr(CsvWriter, "write", write_part)
    with Store.open(database) as store:
        export_study(study, store, tmp_path / "out")
    assert max(height for _, height in events) == 7
    n_parts = sum(kind == "read" for kind, _ in events)
    assert n_parts > 5
    assert [kind for kind, _ in events[: 2 * n_parts]] == ["read", "write"] * n_parts


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(DialometerError, match="did you mean 'parquet'"):
        export_study(None, None, tmp_path / "out", format="parqet")  # type: ignore[arg-type]
