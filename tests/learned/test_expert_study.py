"""Expert pairs from start to end: drawn, compared in a study, reported, exported, and read again."""

import json

import polars as pl
import pytest

from commands import invoke
from dialometer.analysis.base.choose import analyse
from dialometer.design.load import load_study
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.exchange.dialogue_pairs import LabelledPair, study_pairs
from dialometer.learned.cmade.materials import expert_split, prepare
from dialometer.learned.data.pairs import DialoguePair, read_pairs
from dialometer.learned.data.rated import read_rated
from dialometer.learned.data.sampled_pairs import PairRules, sample_pairs
from dialometer.storage import Store


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    file = tmp_path_factory.mktemp("expert") / "talks.jsonl"
    invoke("learn", "simulate", str(file), "--dialogues", "300", "--seed", "1")
    return file


@pytest.fixture(scope="module")
def study(talks):
    folder = talks.parent / "experts"
    invoke("learn", "pairs", str(talks), "--n", "60", "--fewest-turns", "8", "--even-gaps", "--out", str(folder))
    invoke("check", str(folder))
    invoke("simulate", str(folder), "--raters", "2", "--seed", "3")
    return folder


def test_pairs_follow_the_declared_rules(talks):
    rated = read_rated(talks)
    rules = PairRules(n_pairs=40, fewest_turns=8, least_gap=2, max_length_difference=2, is_same_system=True, seed=5)
    sampled = sample_pairs(rated, rules)
    assert len({frozenset((a.id, b.id)) for a, b in sampled.pairs}) == 40
    for a, b in sampled.pairs:
        assert a.bot == b.bot
        assert abs(a.rating - b.rating) >= 2
        assert abs(a.n_utterances - b.n_utterances) <= 2
        assert min(a.n_utterances, b.n_utterances) >= 8
    assert sample_pairs(rated, rules) == sampled
    assert sampled.n_eligible + sum(sampled.n_left_out.values()) == len(rated)


def test_topic_and_words_leave_dialogues_out(talks):
    rated = read_rated(talks)
    word = rated[0].dialogue.turns[0].text.split()[0].strip(",.!?")
    on_topic = sample_pairs(rated, PairRules(n_pairs=5, fewest_turns=2, topic=word))
    without = sample_pairs(rated, PairRules(n_pairs=5, fewest_turns=2, without=(word,)))
    assert on_topic.n_eligible + without.n_eligible == len(rated)
    assert all(
        word.lower() in " ".join(t.text for t in row.dialogue.turns).lower() for p in on_topic.pairs for row in p
    )


def test_too_few_pairs_are_refused_with_the_reason(talks):
    with pytest.raises(NotEnoughData, match="with fewer than 200 turns"):
        sample_pairs(read_rated(talks), PairRules(n_pairs=40, fewest_turns=200))


def test_the_study_hides_ratings_and_takes_pairs_of_one_system(study):
    items = [json.loads(line) for line in (study / "items.jsonl").read_text().splitlines()]
    assert any(item["metadata"]["first_system"] == item["metadata"]["second_system"] for item in items)
    assert all(set(item["a"]) == {"system", "turns"} and item["a"]["system"] == "first" for item in items)
    gaps = [abs(item["metadata"]["first_rating"] - item["metadata"]["second_rating"]) for item in items]
    assert {gap: gaps.count(gap) for gap in set(gaps)} == {1.0: 15, 2.0: 15, 3.0: 15, 4.0: 15}


def test_the_report_gives_agreement_labels_and_disagreement_by_gap(study):
    with Store.open(study / "study.db", create=False) as store:
        report = analyse(load_study(study), store)
    tables = {table.name: table for table in report.tables()}
    assert report.summary.answer.startswith("2 raters agree with alpha = ")
    kinds = [(row[1], row[2]) for row in tables["agreement"].rows]
    assert ("all answers", "Cohen's kappa") in kinds
    assert ("without “cannot tell”", "Krippendorff's alpha") in kinds
    assert len(tables["labels"].rows) == 60
    assert [row[1] for row in tables["ratings"].rows] == ["1", "2", "3", "4", "all"]
    assert "leaderboard" not in " ".join(tables).lower()


def test_the_export_is_what_pairs_are_read_from(study, talks, tmp_path):
    invoke("export", str(study), "--out", str(tmp_path / "out"))
    ids = [row.id for row in read_rated(talks)]
    from_file = read_pairs(tmp_path / "out" / "pairs.csv", ids)
    assert from_file == read_pairs(study, ids)
    labels = pl.read_csv(tmp_path / "out" / "pairs.csv")["better"].to_list()
    assert from_file.n_undecided == labels.count("cannot_tell") > 0
    assert len(from_file.pairs) + from_file.n_undecided == 60


def test_majority_decides_and_doubt_does_not():
    pair = LabelledPair("p", "c", "x", "y", 2, 1, 0)
    assert pair.better == "first"
    assert LabelledPair("p", "c", "x", "y", 1, 1, 0).better == "cannot_tell"
    assert LabelledPair("p", "c", "x", "y", 1, 0, 1).better == "cannot_tell"
    assert LabelledPair("p", "c", "x", "y", 0, 2, 1).better == "second"


def test_all_expert_pairs_are_used_and_none_of_their_dialogues_is_trained_on(talks):
    rated = read_rated(talks)
    pairs = [DialoguePair(rated[2 * k].id, rated[2 * k + 1].id, k % 2 == 0) for k in range(60)]
    split = expert_split(rated, pairs, seed=2)
    named = {name for pair in pairs for name in (pair.first, pair.second)}
    assert not named & set(split.train)
    assert len(split.train) == len(rated) - 120
    data = prepare(rated, pairs, seed=2)
    assert data.is_expert
    assert data.test is not None
    sizes = (len(data.development.pairs), len(data.stopping.pairs), len(data.test.pairs))
    assert sum(sizes) == 60
    assert sizes[2] == 30


def test_pairs_that_hang_together_are_refused(talks):
    rated = read_rated(talks)
    chain = [DialoguePair(rated[k].id, rated[k + 1].id, True) for k in range(60)]
    with pytest.raises(NotEnoughData, match="cannot be divided into parts without a common dialogue"):
        expert_split(rated, chain)


def test_a_study_of_systems_is_no_source_of_pairs(tmp_path):
    invoke("new", "acute", str(tmp_path / "acute"))
    with pytest.raises(DialometerError, match="does not compare pairs of dialogues"):
        study_pairs(tmp_path / "acute")


def test_a_pair_must_name_its_dialogues(study, tmp_path):
    for file in study.iterdir():
        if file.suffix in (".yaml", ".md", ".jsonl"):
            (tmp_path / file.name).write_text(file.read_text())
    lines = (tmp_path / "items.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    del first["metadata"]["second"]
    (tmp_path / "items.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]))
    with pytest.raises(DialometerError, match=r"items\.jsonl:1.*the dialogue is not named \(second\)"):
        load_study(tmp_path)


def test_fakes_differ_in_one_utterance_and_come_with_scores(talks):
    shown = json.loads(invoke("learn", "perturb", str(talks), "--n", "3", "--json"))
    assert [record["replaced"] for record in shown] == ["user", "agent"] * 3
    for record in shown:
        real = record["turns"][record["turn"]]
        assert real["role"] == record["replaced"]
        assert real["text"] != record["fake_text"]
    assert invoke("learn", "perturb", str(talks), "--n", "1") == invoke("learn", "perturb", str(talks), "--n", "1")


def test_dialogues_rated_again_are_set_beside_the_users_ratings(talks, tmp_path):
    folder = tmp_path / "again"
    invoke("learn", "rerate", str(talks), "--n", "20", "--experts", "3", "--out", str(folder))
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    assert {item["metadata"]["user_rating"] for item in items} == {5.0}
    invoke("simulate", str(folder), "--raters", "3", "--seed", "1")
    with Store.open(folder / "study.db", create=False) as store:
        report = analyse(load_study(folder), store)
        judgments = [judgment.value for judgment in store.records.judgments()]
    n_lower = sum(value < 5 for value in judgments)
    assert (
        report.summary.answer == f"Raters give {n_lower} of 60 judgments a lower rating than the dialogue's user gave."
    )
    (table,) = [table for table in report.tables() if table.name == "re_rating"]
    assert table.rows[0][:2] == (5.0, 60)
    assert table.rows[0][3] == pytest.approx(n_lower / 60)


def test_media_that_are_left_out_are_said(talks, tmp_path):
    rows = [json.loads(line) for line in talks.read_text().splitlines()]
    for row in rows:
        row["turns"][1]["media"] = [{"path": "plot.png", "alt": "A plot"}]
    file = tmp_path / "with-media.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = invoke("learn", "rerate", str(file), "--n", "3", "--out", str(tmp_path / "again"))
    assert "3 images, sounds and videos are not in the study" in said
    about = invoke(
        "learn", "pairs", str(file), "--n", "2", "--fewest-turns", "4", "--out", str(tmp_path / "p"), "--json"
    )
    assert json.loads(about)["n_media_left_out"] in (3, 4)


def test_too_few_dialogues_to_rate_again_are_refused(talks, tmp_path):
    message = invoke("learn", "rerate", str(talks), "--n", "5000", "--out", str(tmp_path / "x"), fails=True)
    assert "5000 are wanted" in message


@pytest.fixture(scope="module")
def expert_file(talks):
    """A verdict on pairs of neighbours, by their ratings: what an expert who agrees with the users would say."""
    rated = read_rated(talks)
    pairs = [(a, b) for a, b in zip(rated[0:160:2], rated[1:160:2], strict=True) if a.rating != b.rating]
    rows = [f"{a.id},{b.id},{'first' if a.rating > b.rating else 'second'}" for a, b in pairs]
    file = talks.parent / "pairs.csv"
    file.write_text("\n".join(["first,second,better", *rows]))
    return file


@pytest.mark.slow
def test_the_table_of_the_paper_on_all_expert_pairs(talks, expert_file, tiny_encoder_folder, tmp_path):
    words = ["learn", "ablate", str(talks), "--pairs", str(expert_file), "--rows", "pairwise,tfidf-ridge", "--json"]
    words += ["--encoder", str(tiny_encoder_folder), "--pooling", "first", "--group-size", "0", "--k", "10"]
    lines = json.loads(invoke(*words, "--epochs", "1,1,1", "--out", str(tmp_path / "out")))
    assert [line["row"] for line in lines] == ["tfidf-ridge", "pairwise"]
    for line in lines:
        assert next(iter(line["accuracy"])) == "experts"
        assert line["kappa_standard_error"] > 0
    splits = json.loads((tmp_path / "out" / "splits.json").read_text())["splits"]
    assert len(splits) == 1


def test_training_reports_pairs_that_nothing_was_chosen_by(talks, expert_file, tiny_encoder_folder, tmp_path):
    words = ["learn", "train", str(talks), "--recipe", "published", "--pairs", str(expert_file), "--json", "--k", "10"]
    words += [
        "--encoder",
        str(tiny_encoder_folder),
        "--epochs",
        "1,1,1",
        "--stages",
        "none",
        "--out",
        str(tmp_path / "ev"),
    ]
    about = json.loads(invoke(*words))
    n_pairs = about["n_development_pairs"] + about["n_stopping_pairs"] + about["test"]["n_pairs"]
    assert n_pairs == len(expert_file.read_text().splitlines()) - 1
    assert 0 <= about["test"]["accuracy"] <= 1


@pytest.mark.slow
def test_the_curve_on_expert_pairs_with_features_trained_without_them(
    talks, expert_file, tiny_encoder_folder, tmp_path
):
    words = ["learn", "curve", str(talks), "--pairs", str(expert_file), "--train", "--epochs", "1,1,1", "--k", "10"]
    words += ["--encoder", str(tiny_encoder_folder), "--neighbours", "1,5", "--json", "--out", str(tmp_path / "curve")]
    report = json.loads(invoke(*words))
    assert "expert pairs" in report["summary"]["certainty"]
    assert (tmp_path / "curve" / "encoder-experts-1").is_dir()
