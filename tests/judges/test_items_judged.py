"""A model judges a study's items: both orders, samples, what real models reply, budgets, kills and batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import polars as pl
import pytest
from model_on_loopback import Model, obedient

from commands import result_of
from dialometer.design.load import load_study
from dialometer.storage.store import Store
from dialometer.storage.table import long_table
from fake_models import Said, fake_models

N_ITEMS = 4
"""Pairs that the tests leave in the study."""


def table_of(folder):
    with Store.open(folder / "study.db") as store:
        return long_table(store.records.judgment_batches())


def answers_of(folder, part):
    with Store.open(folder / "study.db") as store:
        return {answer.question: answer.value for answer in store.records.answers() if answer.part == part}


@pytest.fixture
def pairs(make_study):
    return make_study("acute", n_items=N_ITEMS, design={"items_per_rater": "all"})


def one(told):
    [judge] = told["judges"]
    return judge


def test_every_item_is_judged_in_both_orders(pairs, judge):
    with Model() as model:
        told = one(judge(pairs, model))
    table = table_of(pairs)
    n_criteria = table["criterion"].n_unique()
    assert told["n_judgments"] == len(table) == 2 * N_ITEMS * n_criteria
    assert set(table["source"]) == {"model"}
    by_pair = table.group_by("item", "criterion").agg(pl.col("order").n_unique(), pl.col("choice").n_unique())
    assert by_pair["order"].to_list() == [2] * len(by_pair)
    assert by_pair["choice"].to_list() == [2] * len(by_pair), "this model takes whatever stands first"
    reasons = answers_of(pairs, "reasons")
    assert set(reasons.values()) == {"No remarks."}
    about = answers_of(pairs, "model")
    assert (about["name"], about["tokens_in"]) == ("little", 100 * len(model.requests) // 2)
    prompt = model.requests[0]["messages"][-1]["content"]
    assert prompt.index('"reasons"') < prompt.index('"engagingness"'), "reasons come before the verdict"
    assert "seed" not in model.requests[0]
    with Model() as model:
        again = one(judge(pairs, model))
    assert (again["n_judgments"], again["n_known"], len(model.requests)) == (0, told["n_questions"], 0)


def test_one_order_and_several_samples(pairs, judge):
    with Model() as model:
        told = one(judge(pairs, model, "--orders", "one", "--samples", 3, "--temperature", 1, "--seed", 10))
    assert told["n_questions"] == 3 * N_ITEMS
    assert {request["seed"] for request in model.requests} == {11, 12, 13}
    table = table_of(pairs)
    assert table.group_by("item").agg(pl.col("order").n_unique())["order"].to_list() == [1] * N_ITEMS
    assert table["rater"].n_unique() == 3


def test_a_refusal_is_missing_with_its_reason_and_stops_nothing(pairs, judge, dialometer):
    def say(request):
        if len(model.requests) == 2:
            return None
        return obedient(request["messages"][-1]["content"])

    with Model(say) as model:
        told = one(judge(pairs, model))
        n_asked = len(model.requests)
        assert told["missing"] == {"the model declined: the response is empty": 1}
        assert n_asked == 2 * N_ITEMS, "it is not asked again"
        assert list(answers_of(pairs, "missing").values()) == ["the model declined: the response is empty"]
        later = one(judge(pairs, model))
        assert (len(model.requests), later["n_judgments"]) == (n_asked, 0)
        model.say = lambda request: obedient(request["messages"][-1]["content"])
        assert one(judge(pairs, model, "--again"))["n_judgments"] > 0
        assert len(model.requests) == n_asked + 1


def test_replies_that_could_not_be_used_have_cost_tokens_too(pairs, judge):
    def say(request):
        is_bad = "little" in request["model"] and len(model.requests) <= 3
        return "I would rather not say." if is_bad else obedient(request["messages"][-1]["content"])

    with Model(say) as model:
        told = one(judge(pairs, model, "--orders", "one", "--parallel", "1"))
        assert sum(told["missing"].values()) == 1, "three tries on the first item"
        assert len(model.requests) == N_ITEMS + 2
        assert answers_of(pairs, "model")["tokens_in"] == 100 * len(model.requests)


def test_where_nothing_is_judged_the_command_fails(pairs):
    with Model(lambda request: None) as model:
        done = result_of("judge", pairs, "--endpoint", model.endpoint, "--model", "little")
    assert done.exit_code == 1
    assert "the model declined" in done.output
    assert "0 judgments stored" in done.output


@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_without_schemas_is_asked_without(pairs, judge, status):
    def say(request):
        if "response_format" in request:
            return status, {}, "response_format is not supported"
        return obedient(request["messages"][-1]["content"])

    with Model(say) as model:
        told = one(judge(pairs, model))
    assert told["n_judgments"] > 0
    assert "response_format is not supported" in told["schema_refused"]
    assert sum("response_format" in request for request in model.requests) == 1, "it is tried once"


@pytest.mark.parametrize(
    ("status", "remedy"), [(400, "check its options"), (401, "check its key"), (422, "check its options")]
)
def test_what_the_provider_says_is_shown_and_what_to_do(pairs, dialometer, status, remedy):
    with Model(lambda request: (status, {}, "Unsupported parameter: use max_completion_tokens")) as model:
        told = dialometer("judge", pairs, "--endpoint", model.endpoint, "--model", "little", fails=True)
    assert f"status {status} (Unsupported parameter: use max_completion_tokens)" in told
    assert remedy in told


def test_parameters_are_free(pairs, judge, dialometer):
    with Model() as model:
        judge(
            pairs, model, "--extra", "max_completion_tokens=300", "--extra", "user=lab", "--extra", "temperature=null"
        )
        sent = model.requests[0]
        assert (sent["max_completion_tokens"], sent["user"]) == (300, "lab")
        assert "temperature" not in sent
        words = ("judge", pairs, "--endpoint", model.endpoint, "--model", "little")
        assert "is not of the form key=value" in dialometer(*words, "--extra", "top_p", fails=True)


def test_an_item_that_the_endpoint_refuses_is_missing_and_the_others_are_judged(pairs, judge):
    def say(request):
        if len(model.requests) in (3, 4):
            return 400, {}, "maximum context length exceeded"
        return obedient(request["messages"][-1]["content"])

    with Model(say) as model:
        told = one(judge(pairs, model, "--no-json-schema"))
    [(reason, n)] = told["missing"].items()
    assert "status 400" in reason
    assert n == 2


def test_a_budget_stops_and_what_was_answered_is_kept(pairs):
    prices = ("--price-in", 10_000, "--price-out", 0)  # a request costs 1
    with Model() as model:
        words = ("judge", pairs, "--endpoint", model.endpoint, "--model", "little", "--json", *prices)
        done = result_of(*words, "--budget", 3)
        assert done.exit_code == 1
        told = one(json.loads(done.stdout))
        assert "the budget of this run is spent" in told["stopped"]
        assert (told["cost"], len(model.requests)) == (3, 3)
        assert len(table_of(pairs)) == told["n_judgments"] > 0
        later = one(json.loads(result_of(*words, "--budget", 100).stdout))
        assert len(model.requests) == later["n_questions"], "nothing is asked twice"
        assert len(table_of(pairs)) == told["n_judgments"] + later["n_judgments"]


def test_a_killed_run_goes_on_and_nothing_is_paid_twice(pairs, judge):
    """A process that is killed in the middle of a request loses that request and nothing else."""

    is_killed = threading.Event()

    def say(request):
        if len(model.requests) == 4:
            is_killed.wait(120)
        return obedient(request["messages"][-1]["content"])

    with Model(say) as model:
        words = ("judge", pairs, "--endpoint", model.endpoint, "--model", "little")
        command = [sys.executable, "-m", "dialometer", *map(str, words)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
        while len(model.requests) < 4:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        is_killed.set()
        model.say = lambda request: obedient(request["messages"][-1]["content"])
        told = one(judge(pairs, model))
    assert told["spent"]["n_cached"] == 3
    assert told["spent"]["n_requests"] == told["n_questions"] - 3
    assert len(table_of(pairs)) == told["n_judgments"]
    asked = [json.dumps(request["messages"]) for request in model.requests]
    assert len(asked) - len(set(asked)) == 1, "only the request that was killed is sent again"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_batch_is_written_and_its_answers_are_read(pairs, dialometer, provider, tmp_path):
    file, results = tmp_path / "batch.jsonl", tmp_path / "results.jsonl"
    words = ("judge", pairs, "--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--provider", provider)
    assert f"{2 * N_ITEMS} questions written" in dialometer(*words, "--write-batch", file)
    if provider == "openai":
        requests = [json.loads(line) for line in file.read_text().splitlines()]
        assert {(r["method"], r["url"]) for r in requests} == {("POST", "/v1/chat/completions")}
        rows = [{"custom_id": r["custom_id"], "response": openai_answer(r["body"])} for r in requests]
        rows[0] = {"custom_id": requests[0]["custom_id"], "response": None, "error": {"message": "expired"}}
    else:
        requests = json.loads(file.read_text())["requests"]
        assert max(len(r["custom_id"]) for r in requests) <= 64
        rows = [{"custom_id": r["custom_id"], "result": anthropic_answer(r["params"])} for r in requests]
        rows[0]["result"] = {"type": "errored", "error": {"type": "error", "error": {"message": "expired"}}}
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = json.loads(dialometer(*words, "--read-batch", results, "--json"))["judges"][0]
    assert told["batch"] == {"n_read": 2 * N_ITEMS - 1, "failed": {"expired": 1}}
    assert told["n_unanswered"] == 1
    assert len(table_of(pairs)) == told["n_judgments"] > 0
    assert "1 questions written" in dialometer(*words, "--write-batch", file)
    results.write_text("{}\n")
    assert "results.jsonl:1: this line is not a result" in dialometer(*words, "--read-batch", results, fails=True)


def openai_answer(body):
    message = {"role": "assistant", "content": obedient(body["messages"][-1]["content"])}
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return {"status_code": 200, "body": {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}}


def anthropic_answer(params):
    assert params["tool_choice"] == {"type": "tool", "name": "answers"}
    answers = json.loads(obedient(params["messages"][-1]["content"]))
    block = {"type": "tool_use", "name": "answers", "input": answers}
    usage = {"input_tokens": 9, "output_tokens": 3}
    message = {"role": "assistant", "content": [block], "stop_reason": "tool_use", "usage": usage}
    return {"type": "succeeded", "message": message}


def test_several_models_at_once_and_judges_of_the_study_file(make_study, dialometer):
    with fake_models() as models:
        models.answers = [lambda body: Said([obedient(body["messages"][-1]["content"])])]
        agent = {"type": "anthropic", "options": {"base_url": f"{models.url}/v1", "model": "b"}}
        declared = [{"name": "strict", "kind": "model", "agent": agent, "orders": "one"}]
        folder = make_study("acute", n_items=2, judges=declared, design={"items_per_rater": "all"})
        options = ("judge", folder, "--endpoint", f"{models.url}/v1", "--json")
        told = json.loads(dialometer(*options, "--model", "m-1", "--model", "org/m-2"))["judges"]
        assert [(judge["judge"], judge["n_questions"]) for judge in told] == [("m-1", 4), ("org/m-2", 4)]
        told = json.loads(dialometer("judge", folder, "--json"))["judges"]
        assert [(judge["judge"], judge["n_questions"]) for judge in told] == [("strict", 2)]
        assert models.requests[-1][0] == "/v1/messages"
        assert "no language model 'strikt'" in dialometer("judge", folder, "--judge", "strikt", fails=True)


def test_live_dialogues_need_a_rater(make_study, dialometer):
    folder = make_study("chat")
    words = ("judge", folder, "--endpoint", "http://127.0.0.1:9/v1", "--model", "m")
    assert "--raters" in dialometer(*words, fails=True)


def test_rubric_and_examples_of_the_study_file(make_study, dialometer):
    with fake_models() as models:
        models.answers = [lambda body: Said([obedient(body["messages"][-1]["content"])])]
        folder = make_study("acute", n_items=3, design={"items_per_rater": "all"})
        ids = [json.loads(line)["id"] for line in (folder / "items.jsonl").read_text().splitlines()]
        spec = (folder / "study.yaml").read_text()
        example = {"item": ids[1], "answers": {"engagingness": "SYSTEM"}, "reasons": "It asks back."}
        judge = {"name": "j", "kind": "model", "rubric": "Look for questions.", "examples": [example]}
        chosen = load_study(folder).items_by_id[ids[1]].systems[1]

        def declare(system):
            judge["examples"][0]["answers"]["engagingness"] = system
            (folder / "study.yaml").write_text(spec + f"\njudges: {json.dumps([judge])}\n")

        declare(chosen)
        words = ("judge", folder, "--judge", "j", "--endpoint", f"{models.url}/v1", "--model", "m", "--json")
        told = one(json.loads(dialometer(*words)))
        assert told["n_questions"] == 2 * 2, "the example is not judged"
        system = models.requests[0][1]["messages"][0]["content"]
        assert "Look for questions." in system
        assert 'The answer: {"reasons": "It asks back.", "engagingness": "2"}' in system
        assert f'"{chosen}"' not in system
        declare("nobody")
        assert "judges.j.examples.0: the answer to 'engagingness'" in dialometer(*words, fails=True)
        judge["examples"][0]["item"] = "nothing"
        declare(chosen)
        assert "nothing" in dialometer(*words, fails=True)
