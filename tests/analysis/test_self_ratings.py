"""Self-ratings of conversations: truth comes out of simulated studies, and thin data give sentences."""

import csv
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse, families
from dialometer.analysis.base.data import ANSWER_COLUMNS, answer_row, load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import asked_criteria
from dialometer.analysis.families.conversations.comparison import (
    OTHER_TASKS,
    compare_systems,
    compared_in,
    scenarios_of,
    system_differences,
)
from dialometer.analysis.families.conversations.conversations import self_ratings_of
from dialometer.analysis.families.conversations.relations import adjusted_for_system, first_to_last
from dialometer.analysis.families.conversations.self_ratings import ConversationRatings
from dialometer.analysis.shared.comparisons import primary_comparison
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.model.analysis_plan import Comparison
from dialometer.report.numbers import write_headline, write_p
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store
from judged_data import judged_data
from report_parts import by_name, said, tables_of

START_MS = 1_800_000_000_000
OPTIONS = Options(confidence=0.95, n_resamples=300, seed=3, correction="holm")


@pytest.fixture(scope="module")
def talked(tmp_path_factory):
    """Sixty raters without carelessness, who talked with both partners."""
    folder = tmp_path_factory.mktemp("talked") / "chat"
    copy_template("chat", folder)
    text = (folder / "study.yaml").read_text().replace("quota: 40", "quota: 60")
    (folder / "study.yaml").write_text(text)
    study = load_study(folder)
    truth = draw_truth(study, 21, spread=0.4)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store, clock=lambda: START_MS)
        habits = Habits(careless_share=0)
        simulate(study, EngineAccess(flow), truth, n_raters=60, seed=21, start_ms=START_MS, habits=habits)
        turns = store.conversations.turns()
        ordinals = {session.id: session.ordinal for session in store.sessions.all()}
        data = load_data(study, store)
    return study, truth, data, turns, ordinals


@pytest.fixture
def study(tmp_path):
    copy_template("chat", tmp_path / "chat")
    return load_study(tmp_path / "chat")


def make_data(study, rows, chats=()):
    """Study data from (rater, item, criterion, value, position); chats from (rater, item, messages, words, seconds)."""
    columns = {
        "rater": [row[0] for row in rows],
        "item": [row[1] for row in rows],
        "system": [row[1].partition("-")[0] for row in rows],
        "criterion": [row[2] for row in rows],
        "value": [float(row[3]) for row in rows],
        "position": [row[4] if len(row) > 4 else 1 for row in rows],
    }
    return judged_data(study, columns, chats)


def ratings_of(data):
    return [self_ratings_of(data, asked) for asked in asked_criteria(data.study)]


def test_the_family_fits_chats_only(study):
    assert any(isinstance(one, ConversationRatings) for one in families(study))
    assert not ConversationRatings().fits(replace(study, spec=study.spec.model_copy(update={"criteria": []})))


def test_truth_is_recovered_on_every_criterion(talked):
    """What simulated raters perceive, within the interval and the rounding of ratings to points."""
    study, truth, data, _, _ = talked
    for one in compare_systems(ratings_of(data), study, OPTIONS):
        juno, tak = (truth.systems[one.ratings.criterion][name] for name in ("juno", "tak"))
        gap = one.pairs["Juno", "Tak"]
        assert gap.low - 0.1 <= juno - tak <= gap.high + 0.1


def test_paired_raters_give_the_paired_t_test(talked):
    """Every rater talked with both partners: the cluster-robust test is ``scipy.stats.ttest_rel`` on raters."""
    study, _, data, _, _ = talked
    wide = data.judgments.filter(pl.col("criterion") == "overall").pivot(on="system", index="rater", values="value")
    found = compare_systems(ratings_of(data), study, OPTIONS)[0]
    peer = stats.ttest_rel(wide["juno"].to_numpy(), wide["tak"].to_numpy())
    assert found.pairs["Juno", "Tak"].p_value == pytest.approx(peer.pvalue)
    interval = peer.confidence_interval(0.95)
    assert found.pairs["Juno", "Tak"].low == pytest.approx(interval.low)
    assert found.pairs["Juno", "Tak"].high == pytest.approx(interval.high)
    sign = np.sign(wide["juno"].to_numpy() - wide["tak"].to_numpy())
    assert found.higher["Juno", "Tak"].value == pytest.approx(np.mean((sign + 1) / 2))
    assert found.flipped["Juno", "Tak"].n == 60


def test_declared_comparisons_are_corrected_in_their_families(talked):
    study, _, data, _, _ = talked
    compared = compare_systems(ratings_of(data), study, OPTIONS)
    sizes = {one.ratings.criterion: one.pairs["Juno", "Tak"].details["n_tests"] for one in compared}
    assert sizes == {"overall": 1, "understood": 2, "willing": 2}
    assert all(one.is_declared for one in compared)
    bare = study.spec.model_copy(update={"analysis": study.spec.analysis.model_copy(update={"comparisons": []})})
    open_ = compare_systems(ratings_of(data), replace(study, spec=bare), OPTIONS)
    assert {one.pairs["Juno", "Tak"].details["n_tests"] for one in open_} == {3}
    assert not any(one.declared for one in open_)


def test_conversations_are_measured_from_their_turns(talked):
    _, _, data, turns, ordinals = talked
    first = data.chats.sort("rater", "item").row(0, named=True)
    own = [t for t in turns if f"R{ordinals[t.session_id]:04d}" == first["rater"] and t.item_id == first["item"]]
    assert first["n_turns_user"] == sum(turn.role == "user" for turn in own) >= 5
    assert first["n_turns_agent"] == sum(turn.role == "agent" for turn in own)
    assert first["n_words_user"] == sum(len(turn.text.split()) for turn in own if turn.role == "user")
    assert first["duration_s"] == pytest.approx((own[-1].at_ms - own[0].at_ms) / 1000)
    assert len(data.chats) == 120


def test_the_whole_report_has_no_problem(talked):
    study, _, data, _, _ = talked
    report = analyse(study, data, n_resamples=200)
    own = by_name(report)
    wanted = {"system_ratings", "rating_shape", "criteria", "length", "order", "experts", "group_chatbot_experience"}
    assert wanted <= set(own)
    assert not any(own[name].problem for name in wanted)
    shown = tables_of(report)
    assert shown["system_ratings_declared"].is_confirmatory
    assert "system_ratings_exploratory" not in shown
    names = [one.name for one in report.tables()]
    assert len(names) == len(set(names))
    assert "expert_pairs.csv" in " ".join(own["experts"].paragraphs)
    assert "learned" not in said(report)


def planted(study, rng, *, n=80, drift=0.0, length_effect=0.0):
    """Two conversations a rater; later ones rated higher by ``drift``, longer ones by ``length_effect`` per message."""
    rows, chats = [], []
    for k in range(n):
        mood = rng.normal(0, 0.5)
        items = ["juno-1", "tak-1"] if k % 2 else ["tak-1", "juno-1"]
        for position, item in enumerate(items, start=1):
            n_messages = int(rng.integers(5, 15))
            base = 3 + mood + drift * (position - 1) + length_effect * (n_messages - 9.5) + 0.6 * (item == "juno-1")
            for criterion in ("overall", "understood", "willing"):
                value = float(np.clip(np.round(base + rng.normal(0, 0.5)), 1, 5))
                rows.append((f"R{k:04d}", item, criterion, value, position))
            chats.append((f"R{k:04d}", item, n_messages, 6 * n_messages, 20.0 * n_messages))
    return make_data(study, rows, chats)


@pytest.mark.slow
def test_the_true_difference_lies_in_the_interval_as_often_as_it_says(study):
    """Raters with moods of their own talk with both systems; the truth is what very many of them would give."""
    truth = compare_systems(ratings_of(planted(study, np.random.default_rng(0), n=4000)), study, OPTIONS)[0]
    expected = truth.pairs["Juno", "Tak"].value
    assert expected == pytest.approx(0.6, abs=0.05)
    hits = 0
    for seed in range(1, 121):
        one = compare_systems(ratings_of(planted(study, np.random.default_rng(seed), n=24)), study, OPTIONS)[0]
        hits += one.pairs["Juno", "Tak"].low <= expected <= one.pairs["Juno", "Tak"].high
    assert 0.89 <= hits / 120 <= 0.99


def test_planted_relations_are_found_and_absent_ones_are_not_claimed(study):
    strong = analyse(study, planted(study, np.random.default_rng(1), drift=0.8, length_effect=0.15), n_resamples=300)
    none = analyse(study, planted(study, np.random.default_rng(2)), n_resamples=300)
    rows = tables_of(strong)["length"].rows
    assert all(row[2].low > 0 for row in rows)
    assert "rises by" in by_name(strong)["order"].paragraphs[0]
    change = tables_of(strong)["order_change"].rows[0][1]
    assert change.low <= 0.8 <= change.high
    assert "no change" in by_name(none)["order"].paragraphs[0]


def test_time_is_freed_from_the_mix_of_systems(study):
    """The better system always comes second: the change over time is none of its doing."""
    rng = np.random.default_rng(4)
    rows = []
    for k in range(60):
        rows.append((f"R{k:04d}", "tak-1", "overall", rng.integers(1, 4), 1))
        rows.append((f"R{k:04d}", "juno-1", "overall", rng.integers(3, 6), 2))
    ratings = ratings_of(
        make_data(study, rows + [(r, i, c, v, p) for r, i, _, v, p in rows for c in ("understood", "willing")])
    )[0]
    found = first_to_last(ratings, adjusted_for_system(ratings), OPTIONS)
    assert abs(found.value) < 1e-9
    assert first_to_last(ratings, ratings.value, OPTIONS).value > 1


def test_criteria_that_are_one_are_called_so(study):
    rng = np.random.default_rng(6)
    rows = []
    for k in range(50):
        for item in ("juno-1", "tak-1"):
            value = rng.integers(1, 6)
            rows += [(f"R{k:04d}", item, "overall", value), (f"R{k:04d}", item, "understood", value)]
            rows.append((f"R{k:04d}", item, "willing", rng.integers(1, 6)))
    report = analyse(study, make_data(study, rows), n_resamples=200)
    shown = {(row[0], row[1]): row for row in tables_of(report)["criteria"].rows}
    assert shown["Overall", "Understood"][2].value == pytest.approx(1)
    assert shown["Overall", "Understood"][3].value == 1
    assert abs(shown["Overall", "Willing to talk again"][2].value) < 0.4
    assert "Nearly the same by Spearman" in said(report)


def test_one_rater(study):
    rows = [("R0001", item, name, 4) for item in ("juno-1", "tak-1") for name in ("overall", "understood", "willing")]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    assert "no test" in said(report)
    assert not by_name(report)["system_ratings"].problem


def test_all_ratings_equal(study):
    rows = [
        (f"R{k:04d}", item, name, 5)
        for k in range(20)
        for item in ("juno-1", "tak-1")
        for name in ("overall", "understood", "willing")
    ]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    shown = tables_of(report)
    assert all(row[2].value == 5 for row in shown["system_ratings"].rows)
    top = shown["rating_shape_overall_shares"].rows[0][5]
    assert top.value == 1
    assert top.low < 1
    assert all(row[5] is None for row in shown["system_ratings_declared"].rows)
    assert "nan" not in said(report).lower()
    assert "too little variation" in said(report)


def test_one_conversation_a_rater(study):
    rng = np.random.default_rng(3)
    rows = [
        (f"R{k:04d}", ("juno-1", "tak-1")[k % 2], name, rng.integers(1, 6))
        for k in range(40)
        for name in ("overall", "understood", "willing")
    ]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    assert "one dialogue" in " ".join(by_name(report)["order"].paragraphs)
    assert by_name(report)["length"].problem
    assert not any(row[7].is_known for row in tables_of(report)["system_ratings_declared"].rows)
    gap = tables_of(report)["system_ratings_declared"].rows[0][4]
    assert gap.has_interval


def test_one_system_and_a_criterion_without_ratings(study):
    rows = [(f"R{k:04d}", "juno-1", "overall", 1 + k % 5) for k in range(20)]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    assert "one system only" in said(report)
    assert by_name(report)["missing_understood"].problem
    assert "Juno" in report.summary.answer


def test_a_number_outside_the_scale_is_named(study):
    rows = [(f"R{k:04d}", "juno-1", "overall", 9) for k in range(5)]
    rows += [(f"R{k:04d}", "juno-1", "willing", 3) for k in range(5)]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    assert "outside the scale" in by_name(report)["missing_overall"].problem


def test_experts_beside_the_ratings(study):
    """A file of verdicts beside the study: experts who see what raters saw disagree less as the gap grows."""
    rng = np.random.default_rng(9)
    rows = [
        (f"R{k:04d}", item, name, rng.integers(1, 6))
        for k in range(60)
        for item in ("juno-1", "tak-1")
        for name in ("overall", "understood", "willing")
    ]
    data = make_data(study, rows)
    value = {f"{rater}/{item}": given for rater, item, name, given in rows if name == "overall"}
    names = list(value)
    path = study.folder / "expert_pairs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["first", "second", "better", "expert"])
        for _ in range(300):
            one, two = rng.choice(names, 2, replace=False)
            seen = value[one] - value[two] + rng.normal(0, 2)
            writer.writerow([one, two, "first" if seen > 0 else "second", "e1"])
    report = analyse(study, data, n_resamples=200)
    own = by_name(report)["experts"]
    assert not own.problem
    rows = [row for row in tables_of(report)["experts"].rows if row[0] == "Overall"]
    shares = [row[2].value for row in rows if row[1] != "all"]
    assert shares[0] > shares[-1]
    assert "falls by" in " ".join(own.paragraphs)
    path.write_text("first,second\nR0001/juno-1,R0002/juno-1\n")
    broken = by_name(analyse(study, data, n_resamples=200))["experts"]
    assert "better" in broken.problem


def overall_of(data):
    asked = next(one for one in asked_criteria(data.study) if one.criterion.name == "overall")
    return self_ratings_of(data, asked)


def test_the_declared_test_is_the_reports(study):
    rng = np.random.default_rng(4)
    rows = [(f"R{k:04d}", item, "overall", int(rng.integers(1, 6))) for k in range(12) for item in ("juno-1", "tak-1")]
    data = make_data(study, rows)
    rated = overall_of(data)
    report = system_differences(rated, study, OPTIONS)
    tests = ConversationRatings().primary_tests(data, primary_comparison(study), OPTIONS)
    assert [(test.value, test.p_value) for test in tests.values()] == [(g.value, g.p_value) for g in report.values()]
    assert all("cluster-robust by rater" in gap.method for gap in report.values())


def test_several_tasks_are_a_sample_of_tasks(study):
    """A task that favours a system by chance is no proof: with eight tasks the difference must hold over tasks."""
    rng = np.random.default_rng(5)
    rows = [(f"R{k:04d}", item, "overall", int(rng.integers(1, 6))) for k in range(64) for item in ("juno-1", "tak-1")]
    rated = overall_of(make_data(study, rows))
    assert len(set(scenarios_of(rated, study))) == 1  # both items of the template set the same task
    task = np.array([int(name[1:]) % 8 for name in rated.rater])
    value = rng.normal(0, 1, (8, 2))[task, (rated.system == rated.systems[0]).astype(int)] + rng.normal(0, 0.1, 128)
    several = replace(rated, item=np.array([f"task{k}" for k in task], dtype=object), value=value)
    gap = next(iter(system_differences(several, study, OPTIONS).values()))
    narrow = next(iter(system_differences(replace(several, item=rated.item), study, OPTIONS).values()))
    assert "raters and tasks" in gap.method
    assert gap.value == pytest.approx(narrow.value)
    assert gap.details["n_items"] == 8
    assert gap.high - gap.low > 2 * (narrow.high - narrow.low)


def wizard_data(tmp_path, n_raters=12):
    """Ratings of the wizard template: each strategy against the control in its own block."""
    copy_template("wizard", tmp_path / "wizard")
    study = load_study(tmp_path / "wizard")
    rng = np.random.default_rng(8)
    columns = {name: [] for name in ("rater", "item", "system", "criterion", "value", "position")}
    for rater in range(n_raters):
        for place, item in enumerate(study.rated_items, start=1):
            for criterion in study.spec.criteria:
                level = 3 + (item.systems[0] != "control") + (item.block == "facing")
                row = (f"R{rater:04d}", item.id, item.systems[0], criterion.name, level + rng.integers(-1, 2), place)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    columns["value"] = [float(value) for value in columns["value"]]
    return study, judged_data(study, columns, ())


def test_a_declared_comparison_is_about_its_blocks(tmp_path):
    study, data = wizard_data(tmp_path)
    rated = ratings_of(data)[0]
    inside = compared_in(rated, study, Comparison(name="x", blocks=["facing"]), OPTIONS)
    assert set(inside) == {("Control", "Facing")}
    of = {
        system: rated.value[
            [
                study.items_by_id[i].block == "facing" and s == system
                for i, s in zip(rated.item, rated.system, strict=True)
            ]
        ].mean()
        for system in ("Control", "Facing")
    }
    assert inside["Control", "Facing"].value == pytest.approx(of["Control"] - of["Facing"])


def test_systems_without_a_common_task_are_not_compared(tmp_path):
    """Each strategy of the wizard has a task of its own; free dialogues, without any task, are compared as before."""
    study, data = wizard_data(tmp_path)
    rated = ratings_of(data)[0]
    gaps = system_differences(rated, study, OPTIONS)
    assert gaps["Control", "Empathy"].is_known
    assert gaps["Empathy", "Facing"].notes == (OTHER_TASKS,)
    compared = compare_systems(ratings_of(data), study, OPTIONS)
    assert all(one.overall is None for one in compared)
    assert not compared[0].flipped["Empathy", "Facing"].is_known
    report = analyse(study, data, n_resamples=100)
    assert "system_ratings_others" not in by_name(report)
    assert "had no task in common are not compared" in " ".join(by_name(report)["system_ratings"].paragraphs)
    assert any("say nothing about other tasks" in warning for warning in report.summary.warnings)
    without = replace(study, items=tuple(replace(item, scenario="") for item in study.items))
    assert system_differences(rated, without, OPTIONS)["Empathy", "Facing"].is_known


def test_averages_that_are_not_what_is_compared_are_said_to_be(tmp_path):
    study, data = wizard_data(tmp_path)
    bare = study.spec.model_copy(update={"analysis": study.spec.analysis.model_copy(update={"comparisons": []})})
    report = analyse(replace(study, spec=bare), replace(data, study=replace(study, spec=bare)), n_resamples=100)
    words = by_name(report)["system_ratings"].paragraphs[0]
    assert "All systems together" not in words
    assert "not by these averages" in words


def test_a_comparison_of_some_systems_counts_their_dialogues_and_groups_have_a_method(tmp_path):
    """Twelve raters talk ten times each, twice of them about empathy."""
    study, data = wizard_data(tmp_path)
    report = analyse(study, data, n_resamples=100)
    assert "Based on 24 dialogues of 12 raters" in report.summary.certainty
    assert "Subgroups of raters" in [method.what for method in report.methods]


def test_of_many_systems_the_declared_differences_are_shown_by_group(tmp_path):
    study, data = wizard_data(tmp_path)
    answers = [answer_row(f"R{k:04d}", "post", "gender", ("Woman", "Man")[k % 2]) for k in range(12)]
    data = replace(data, answers=pl.DataFrame(answers, schema=ANSWER_COLUMNS, orient="row"))
    table = tables_of(analyse(study, data, n_resamples=100))["group_gender"]
    shown = {row[1] for row in table.rows}
    assert {name for name in shown if "−" in name} == {
        f"{name} − Control" for name in ("Empathy", "Formality", "Facing", "Vocabulary", "Alignment")
    }, "the way round in which they are expected, as in the comparison of the systems"


def test_a_drift_over_the_study_is_said(study):
    """Raters come one after the other, and each later one rates higher: no rater changes, the study does."""
    rows = [
        (f"R{k:04d}", item, name, 1 + k // 12 + (k + j) % 2, place)
        for k in range(40)
        for j, name in enumerate(("overall", "understood", "willing"))
        for place, item in enumerate(("juno-1", "tak-1"), start=1)
    ]
    data = make_data(study, rows)
    when = pl.col("rater").str.slice(1).cast(pl.Int64) * 60_000_000
    data = replace(
        data, judgments=data.judgments.with_columns(answered_at=when.cast(data.judgments.schema["answered_at"]))
    )
    section = by_name(analyse(study, data, n_resamples=200))["order"]
    assert "cannot be tested yet" in section.paragraphs[0]  # all raters change alike
    assert "In the course of the study" in section.paragraphs[0]
    assert "not corrected" in section.paragraphs[0]


def test_verdict_tile_and_table_have_one_corrected_p_value(tmp_path):
    study, data = wizard_data(tmp_path)
    report = analyse(study, data, n_resamples=100)
    table = tables_of(report)["system_ratings_declared"]
    assert {row[0] for row in table.rows} == {"Empathy", "Formality", "Facing", "Vocabulary", "Alignment"}
    options = Options(0.95, 100, study.spec.seed, "holm")
    for comparison in study.spec.analysis.comparisons:
        tests = ConversationRatings().primary_tests(data, comparison, options)
        rows = [row for row in table.rows if row[0].lower() == comparison.name]
        assert [row[6] for row in rows] == pytest.approx([test.details["p_adjusted"] for test in tests.values()])
        assert {(row[2], row[3]) for row in rows} == {(comparison.name.capitalize(), "Control")}, "as expected"
    tiles = report.summary.headlines
    assert tiles[0].label == "Utility: Empathy against Control"
    shown = [row for row in table.rows if row[0] == "Empathy"]
    assert [tile.estimate.value for tile in tiles] == pytest.approx([row[4].value for row in shown])
    assert [write_headline(tile).test for tile in tiles] == [write_p(row[6]) for row in shown]
    assert "Empathy − Control" in report.summary.figure.alt, "the figure shows what the sentence speaks of"


def test_confidence_intervals_end_where_the_scale_ends(study):
    """Three raters at the top of a scale from 1 to 5: Student's t alone would reach beyond it."""
    values = {"juno-1": (5, 5, 4), "tak-1": (1, 1, 5)}
    rows = [
        (f"R{k:04d}", item, name, value)
        for item, given in values.items()
        for k, value in enumerate(given)
        for name in ("overall", "understood", "willing")
    ]
    report = analyse(study, make_data(study, rows), n_resamples=100)
    means = [row[2] for row in tables_of(report)["system_ratings"].rows]
    assert all(1 <= mean.low <= mean.value <= mean.high <= 5 for mean in means)
    assert any(mean.high == 5 and "cut at the ends of the scale" in mean.interval_method for mean in means)
    gap = tables_of(report)["system_ratings_declared"].rows[0][4]
    assert gap.low >= -4
    assert gap.high <= 4
