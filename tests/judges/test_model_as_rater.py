"""A model takes part by the same screens as people: it is randomised as they are, marked, re-asked, cached and resumed."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest
from model_on_loopback import Model, obedient

from commands import result_of
from dialometer.analysis.base.data import load_data
from dialometer.design.load import load_study
from dialometer.exchange.exports.export import export_study
from dialometer.storage.store import Store
from dialometer.storage.table import long_table
from fake_models import Said, fake_models

TEMPLATES = ("acute", "anchoring", "best-worst", "likert", "strategies", "chat", "arena")


def table_of(folder):
    with Store.open(folder / "study.db") as store:
        return long_table(store.records.judgment_batches()).filter(~pl.col("is_practice"))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_model_walks_through_every_kind_of_study(make_study, judge, template):
    folder = make_study(template, n_items=8 if template == "anchoring" else None)
    with Model() as model:
        told = judge(folder, model, "--raters", 2)
    assert sum(told["states"].values()) == 2, told
    assert "given up" not in told["states"], told["given_up"]
    assert told["spent"]["n_unusable"] == 0
    assert told["spent"]["n_tokens_in"] == 100 * told["spent"]["n_requests"]
    table = table_of(folder)
    assert len(table) > 0
    assert table["source"].unique().to_list() == ["model"]
    study = load_study(folder)
    names = [system.name for system in study.spec.systems]
    for request in model.requests:
        said = " ".join(message["content"] for message in request["messages"])
        for system in study.spec.systems:
            assert f'"{system.name}"' not in said, "a model never reads a system's name"
    assert names


def test_conditions_orders_and_sides_are_drawn_as_for_people(make_study, judge):
    folder = make_study("anchoring", n_items=4)
    with Model() as model:
        judge(folder, model, "--raters", 8)
    table = table_of(folder)
    cells = table.select("rater", "factor_anchor", "factor_layout").unique()
    assert cells.group_by("factor_anchor", "factor_layout").len()["len"].to_list() == [2, 2, 2, 2]
    assert table["order"].n_unique() > 1
    assert table.group_by("rater").agg(pl.col("item").unique(maintain_order=True))["item"].n_unique() > 1
    with_number = [
        r for r in model.requests if "The value of the standard on readability: 100." in r["messages"][-1]["content"]
    ]
    assert 0 < len(with_number) < len(model.requests), "only those who should see the anchor do"


def test_its_bias_is_measured_by_the_same_report(make_study, judge, dialometer):
    folder = make_study("strategies")
    with Model() as model:
        judge(folder, model, "--raters", 6)
    table = table_of(folder).filter(pl.col("scale") == "pairwise")
    assert (table["side"] == 1).all(), "this model always takes the first"
    told = json.loads(
        dialometer("report", folder, "--source", "model", "--format", "json", "--resamples", 100, "--json")
    )
    assert told["provenance"]["sources"] == "model"
    assert any("programs, not human raters" in warning for warning in told["warnings"])


def test_a_model_is_marked_in_every_table_and_stays_out_of_the_report_on_people(
    make_study, judge, dialometer, tmp_path
):
    folder = make_study("acute")
    dialometer("simulate", folder, "--raters", 3, "--json")
    with Model() as model:
        judge(folder, model, "--raters", 1)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        export_study(study, store, tmp_path / "out")
        data = load_data(study, store)
    assert set(data.judgments["source"]) == {"simulated"}
    for name in ("judgments", "answers", "sessions", "screens"):
        frame = pl.read_csv(tmp_path / "out" / f"{name}.csv")
        assert "model" in frame["source"].to_list(), name
    sessions = pl.read_csv(tmp_path / "out" / "sessions.csv")
    assert sessions.filter(pl.col("source") == "model")["program"].to_list() == ["little"]
    assert sessions.filter(pl.col("source") != "model")["program"].null_count() == 3


def test_an_unusable_answer_is_asked_again_with_what_was_wrong(make_study, judge):
    folder = make_study("acute")
    n_bad = 0

    def say(request):
        nonlocal n_bad
        good = obedient(request["messages"][-1]["content"])
        if "cannot be used" in request["messages"][-1]["content"]:
            return obedient(request["messages"][1]["content"])
        if "engagingness" in good and n_bad < 3:
            n_bad += 1
            return ["I think the first one.", '{"engagingness": "3"}', good[:-1] + ', "stray": 1}'][n_bad - 1]
        return good

    with Model(say) as model:
        told = judge(folder, model, "--raters", 1)
    assert told["spent"]["n_unusable"] == 3
    assert told["states"].get("given up") is None
    complaints = [r["messages"][-1]["content"] for r in model.requests if len(r["messages"]) > 2]
    assert any("it holds no JSON object" in one for one in complaints)
    assert any("Please choose one of the two" in one and "this key is missing" in one for one in complaints)
    assert any("stray: this key is not asked for" in one for one in complaints)


def test_a_model_that_never_answers_properly_is_given_up_on_and_stores_nothing_of_that_screen(make_study, judge):
    folder = make_study("acute")
    with Model(lambda request: "no") as model:
        words = (
            "judge",
            folder,
            "--endpoint",
            model.endpoint,
            "--model",
            "little",
            "--raters",
            1,
            "--asks",
            2,
            "--json",
        )
        done = result_of(*words)
    told = json.loads(done.stdout)
    assert done.exit_code == 1, "a run that judged nothing has failed"
    assert told["states"] == {"given up": 1}
    assert "in 2 tries" in told["given_up"][0]
    assert told["n_judgments"] == 0
    assert len(table_of(folder)) == 0


def test_an_interrupted_run_goes_on_and_asks_nothing_twice(make_study, judge, dialometer):
    folder = make_study("anchoring", n_items=4)
    with Model() as model:
        whole = judge(folder, model, "--raters", 3)
        asked = [json.dumps(r["messages"]) for r in model.requests]
    again = folder.parent / "again"
    shutil.copytree(folder, again, ignore=shutil.ignore_patterns("study.db*", "judge"))
    n_before = len(asked) // 2
    count = 0

    def fails_later(request):
        nonlocal count
        count += 1
        if count > n_before:
            return 400, {}, "out of credit"
        return obedient(request["messages"][-1]["content"])

    with Model(fails_later) as model:
        told = dialometer("judge", again, "--endpoint", model.endpoint, "--model", "little", "--raters", 3, fails=True)
        assert "status 400" in told
        first = [json.dumps(r["messages"]) for r in model.requests][:n_before]
        model.say = lambda request: obedient(request["messages"][-1]["content"])
        n_sent = len(model.requests)
        second_run = judge(again, model, "--raters", 3)
        second = [json.dumps(r["messages"]) for r in model.requests][n_sent:]
    assert first + second == asked, "the same questions, each once"
    assert second_run["spent"]["n_cached"] == 0
    kept = ["rater", "item", "system", "criterion", "value", "order", "position", "factor_anchor"]
    assert table_of(again).select(kept).equals(table_of(folder).select(kept))
    with Model() as model:
        third = judge(folder, model, "--raters", 3)
    assert third["states"] == whole["states"]
    assert (third["n_judgments"], len(model.requests)) == (0, 0)


def test_replies_are_kept_and_every_request_is_logged_with_its_tokens(make_study, judge, tmp_path):
    folder = make_study("acute")
    with Model() as model:
        told = judge(folder, model, "--raters", 1, "--price-in", 2, "--price-out", 10)
        n = told["spent"]["n_requests"]
        assert told["cost"] == pytest.approx((100 * n * 2 + 7 * n * 10) / 1e6)
        log = [json.loads(line) for line in (folder / "judge" / "requests.jsonl").read_text().splitlines()]
        assert len(log) == n
        assert {entry["rater"] for entry in log} == {"little#1"}
        with Store.open(folder / "study.db", create=False) as store:
            assert {entry["screen"] for entry in log} <= {visit.screen for visit in store.records.visits()}
        # The database is lost, the replies are not; and a line that was cut off by a crash harms nothing.
        for file in folder.glob("study.db*"):
            file.unlink()
        replies = folder / "judge" / "replies.jsonl"
        replies.write_text(replies.read_text() + '{"key": "cut o')
        n_sent = len(model.requests)
        again = judge(folder, model, "--raters", 1)
    assert again["spent"]["n_cached"] == n
    assert len(model.requests) == n_sent


def test_settings_reach_the_endpoint_and_the_key_stays_in_the_environment(make_study, judge, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    folder = make_study("acute")
    with Model() as model:
        judge(
            folder,
            model,
            "--raters",
            1,
            "--temperature",
            0.5,
            "--max-tokens",
            50,
            "--extra",
            'response_format={"type": "json_object"}',
            "--no-json-schema",
            "--api-key-env",
            "MY_KEY",
            "--persona",
            "You are strict.",
        )
    request = model.requests[0]
    assert request["authorization"] == "Bearer sk-secret"
    assert (request["temperature"], request["max_tokens"]) == (0.5, 50)
    assert request["response_format"] == {"type": "json_object"}
    assert "You are strict." in request["messages"][0]["content"]
    for path in folder.rglob("*"):
        assert path.is_dir() or b"sk-secret" not in path.read_bytes()


def test_busy_endpoints_are_asked_again(make_study, judge, monkeypatch):
    monkeypatch.setattr("dialometer.agents.tries.FIRST_PAUSE_S", 0.01)
    folder = make_study("acute")
    busy = [(429, {"retry-after": "0"}, "slow down"), (503, {}, "busy")]

    def say(request):
        return busy.pop() if busy else obedient(request["messages"][-1]["content"])

    with Model(say) as model:
        told = judge(folder, model, "--raters", 1)
    assert told["states"].get("given up") is None
    assert busy == []


def test_raters_side_by_side_give_what_they_would_one_after_the_other(make_study, judge):
    folder = make_study("anchoring", n_items=4)
    again = folder.parent / "again"
    shutil.copytree(folder, again)
    with Model() as model:
        one = judge(folder, model, "--raters", 6)
        many = judge(again, model, "--raters", 6, "--parallel", 4)
    assert many["states"] == one["states"]
    assert many["spent"] == one["spent"]
    kept = ["rater", "item", "system", "criterion", "value", "order", "position", "factor_anchor"]
    first, second = (table_of(one).select(kept).sort(kept) for one in (folder, again))
    assert first.equals(second)
    log = (again / "judge" / "requests.jsonl").read_text().splitlines()
    assert len([json.loads(line) for line in log]) == many["spent"]["n_requests"]


def test_a_running_server_shows_a_model_the_same_screens(make_study, judge, dialometer):
    sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
    from taking_part import running

    from dialometer.web.server.settings import Settings
    from dialometer.web.server.turns import TurnTakingStore
    from dialometer.web.study_app import create_app

    here = make_study("likert")
    there = here.parent / "there"
    shutil.copytree(here, there)
    with Model() as model:
        judge(here, model, "--raters", 2)
        local = [json.dumps(r["messages"]) for r in model.requests]
        store = TurnTakingStore.open(there / "study.db")
        with running(create_app(load_study(there), store, settings=Settings(api_key="the-key"))) as url:
            judge(there, model, "--raters", 2, "--url", url, "--api-key", "the-key")
            assert dialometer(
                "judge",
                there,
                "--endpoint",
                model.endpoint,
                "--model",
                "little",
                "--url",
                url,
                "--api-key",
                "wrong",
                fails=True,
            )
        store.close()
        served = [json.dumps(r["messages"]) for r in model.requests][len(local) :]
    assert served == local


def test_a_budget_ends_a_run_and_the_next_one_continues(make_study, judge, dialometer):
    folder = make_study("acute")
    with Model() as model:
        prices = ("--price-in", 10_000, "--price-out", 0)  # a request costs 1
        words = ("judge", folder, "--endpoint", model.endpoint, "--model", "little", "--raters", 1)
        assert "a budget needs prices" in dialometer(*words, "--budget", 2, fails=True)
        assert "the budget of this run is spent: 2.0000 of 2" in dialometer(*words, *prices, "--budget", 2, fails=True)
        assert len(model.requests) == 2
        told = judge(folder, model, "--raters", 1, *prices, "--budget", 1000)
        assert told["spent"]["n_requests"] == len(model.requests) - 2
        assert sum(told["states"].values()) == 1


def test_a_judge_behind_another_provider(make_study, dialometer):
    folder = make_study("acute")

    def says(body):
        return Said([obedient(body["messages"][-1]["content"])])

    with fake_models() as models:
        models.answers = [says]
        options = ("--endpoint", f"{models.url}/v1", "--model", "m", "--provider", "anthropic", "--raters", 1, "--json")
        told = json.loads(dialometer("judge", folder, *options))
        assert told["spent"]["n_tokens_in"] == 9 * told["spent"]["n_requests"] > 0
        assert models.requests[0][0] == "/v1/messages"
        assert "unknown provider 'antropic'" in dialometer(
            "judge", folder, *options, "--provider", "antropic", fails=True
        )


def test_a_model_may_be_held_to_the_form_of_the_answers(make_study, dialometer):
    """What a schema allows is what the scales take, and the model gets it with every screen."""
    folder = make_study("acute")

    def says(body):
        schema = body["response_format"]["json_schema"]["schema"]
        values = {name: (value.get("enum") or ["Fine."])[0] for name, value in schema["properties"].items()}
        assert schema["required"] == list(values)
        return Said([json.dumps(values)])

    with fake_models() as models:
        models.answers = [says]
        options = ("--endpoint", f"{models.url}/v1", "--model", "m", "--raters", 1, "--json-schema", "--json")
        told = json.loads(dialometer("judge", folder, *options))
        assert told["states"] == {"completed": 1}
        assert told["spent"]["n_unusable"] == 0
