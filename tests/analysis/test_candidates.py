"""Judged candidates: truth comes out of simulated studies, the numbers are those of plain definitions, thin data give sentences."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse, families
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.candidates.agreement import bare, order_agreement, rating_columns
from dialometer.analysis.families.candidates.first_answers import first_answers, system_differences
from dialometer.analysis.families.candidates.gold_loss import APPROVED_BY_RULE, approves_gold, gold_rules
from dialometer.analysis.families.candidates.pool import pool_of
from dialometer.analysis.families.candidates.report import Candidates
from dialometer.analysis.families.candidates.retrieval import (
    CROWD,
    crowd_as_retriever,
    judges_of_pool,
    relevant_ranks_of_pool,
    retrieval_scores,
    success_bounds,
)
from dialometer.analysis.families.candidates.versatile import set_sizes, variation
from dialometer.analysis.shared.ranking import adjusted_pairs
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.model.estimate import Estimate
from dialometer.retrieval.evaluation import CUTOFFS, unknown_because
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import candidate_quality, draw_truth
from dialometer.stats.retrieval.metrics import average_precision, reciprocal_rank
from dialometer.stats.retrieval.versatility import versatility
from dialometer.storage.store import Store
from report_parts import section_of, table_of

START_MS = 1_800_000_000_000
OPTIONS = Options(confidence=0.95, n_resamples=400, seed=3, correction="holm")
SYSTEMS = ("TF-IDF", "BM25", "Sentence encoder", "Chance")


def simulated(folder, *, n_raters, seed, habits):
    copy_template("avatar", folder)
    study = load_study(folder)
    truth = draw_truth(study, seed)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store, clock=lambda: START_MS)
        simulate(study, EngineAccess(flow), truth, n_raters=n_raters, seed=seed, start_ms=START_MS, habits=habits)
        return study, truth, load_data(study, store)


@pytest.fixture(scope="module")
def careful(tmp_path_factory):
    """Raters without leniency and without carelessness: what they give is what is true."""
    habits = Habits(careless_share=0, bias_sd=0.0)
    return simulated(tmp_path_factory.mktemp("careful") / "avatar", n_raters=40, seed=11, habits=habits)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Some raters answer at random and are caught by the gold rule."""
    habits = Habits(careless_share=0.4)
    return simulated(tmp_path_factory.mktemp("mixed") / "avatar", n_raters=40, seed=12, habits=habits)


@pytest.fixture
def pool(careful):
    study, _, data = careful
    return pool_of(data, "fit", study.spec.scales["fit_5"])


def column(shown, name):
    return {row[0]: row[[c.name for c in shown.columns].index(name)] for row in shown.rows}


def expected_rating(truth, item):
    """Mean of the rounded and clipped rating of one candidate under the simulation's formula, by fine quadrature."""
    quality = candidate_quality(truth, item, "fit")
    noise = stats.norm.ppf((np.arange(4000) + 0.5) / 4000) * Habits().noise_sd
    return float(np.clip(np.round(3 + quality + noise), 1, 5).mean())


def test_the_family_fits_candidates_only(careful):
    study, _, _ = careful
    assert any(isinstance(one, Candidates) for one in families(study))
    assert not Candidates().fits(replace(study, spec=study.spec.model_copy(update={"criteria": []})))


def test_truth_is_recovered_for_every_system(careful, pool):
    study, truth, _ = careful
    found = first_answers(pool, OPTIONS)
    for name, label in zip(pool.systems, pool.labels, strict=True):
        first = [item for item in study.rated_items if item.ranks.get(name) == 1]
        expected = np.mean([expected_rating(truth, item) for item in first])
        assert found.means[label].low <= expected <= found.means[label].high
        assert found.means[label].value == pytest.approx(expected, abs=0.2)
    gold = np.mean([expected_rating(truth, item) for item in study.rated_items if item.is_gold])
    assert found.gold.value == pytest.approx(gold, abs=0.1)
    for label in SYSTEMS:
        assert found.shares[label].value == pytest.approx(found.means[label].value / found.gold.value)


def test_means_are_plain_means_over_questions(careful, pool):
    """Every question counts alike: the mean over questions of the mean rating of the first answer."""
    study, _, data = careful
    found = first_answers(pool, OPTIONS)
    by_item = dict(data.judgments.group_by("item").agg(pl.col("value").mean()).iter_rows())
    for name, label in zip(pool.systems, pool.labels, strict=True):
        values = [by_item[item.id] for item in study.rated_items if item.ranks.get(name) == 1 and item.id in by_item]
        assert found.means[label].value == pytest.approx(np.mean(values))
    gold = {}
    for item in study.rated_items:
        if item.is_gold and item.id in by_item:
            gold.setdefault(item.metadata["question"], []).append(by_item[item.id])
    assert found.gold.value == pytest.approx(np.mean([np.mean(values) for values in gold.values()]))


def test_differences_are_paired_by_question(careful, pool):
    study, _, data = careful
    by_item = dict(data.judgments.group_by("item").agg(pl.col("value").mean()).iter_rows())
    first = {
        name: {i.metadata["question"]: by_item.get(i.id) for i in study.rated_items if i.ranks.get(name) == 1}
        for name in ("tfidf", "encoder")
    }
    gaps = [first["tfidf"][q] - first["encoder"][q] for q in first["tfidf"]]
    pair = tuple(label for label in pool.labels if label in ("TF-IDF", "Sentence encoder"))
    sign = 1 if pair[0] == "TF-IDF" else -1
    found = first_answers(pool, OPTIONS, declared=adjusted_pairs(system_differences(pool, OPTIONS), "holm"))
    assert sign * found.declared[pair].value == pytest.approx(np.mean(gaps))
    assert found.declared[pair].n == 30
    raw = [found.declared[pair].p_value for pair in found.declared]
    corrected = [found.declared[pair].details["p_adjusted"] for pair in found.declared]
    assert len(found.declared) == 6
    assert not found.others
    assert all(p <= q or np.isnan(p) for p, q in zip(raw, corrected, strict=True))
    assert {one.details["n_tests"] for one in found.declared.values()} == {6}


def test_only_the_declared_systems_are_confirmatory(careful):
    study, _, data = careful
    comparison = study.spec.analysis.comparisons[0].model_copy(update={"levels": ["tfidf", "bm25"], "expected": ""})
    analysis = study.spec.analysis.model_copy(update={"comparisons": [comparison]})
    own = replace(data, study=replace(study, spec=study.spec.model_copy(update={"analysis": analysis})))
    findings = Candidates().run(own, OPTIONS)
    section = findings.sections[0]
    confirmatory, others = (part for part in section.parts if part.name.endswith("pairs"))
    assert [set(row[:2]) for row in confirmatory.rows] == [{"TF-IDF", "BM25"}]
    assert confirmatory.is_confirmatory
    assert not others.is_confirmatory
    assert len(others.rows) == 5
    assert confirmatory.rows[0][2].details["n_tests"] == 1
    assert "those of confirmatory comparisons among their own tests" in section.paragraphs[1]
    assert not findings.answer  # who comes first of all systems is exploratory


def test_each_hypothesis_is_tested_on_its_own_criterion(careful):
    """Ratings on a second criterion that are those of the first the other way round: so is every difference."""
    study, _, data = careful
    criterion = study.spec.criteria[0].model_copy(update={"name": "style", "label": "Style"})
    primary = study.spec.analysis.comparisons[0]
    chosen = {"levels": ["tfidf", "random"], "expected": "", "name": "style", "criteria": ["style"]}
    both = {"levels": ["encoder", "random"], "expected": "", "name": "both", "criteria": ["fit", "style"]}
    comparisons = [primary, primary.model_copy(update=chosen), primary.model_copy(update=both)]
    analysis = study.spec.analysis.model_copy(update={"comparisons": comparisons})
    changes = {"criteria": [*study.spec.criteria, criterion], "analysis": analysis}
    turned = data.judgments.with_columns(criterion=pl.lit("style"), value=6 - pl.col("value"))
    own = replace(
        data,
        study=replace(study, spec=study.spec.model_copy(update=changes)),
        judgments=pl.concat([data.judgments, turned]),
    )
    fit = Candidates().primary_tests(own, primary, OPTIONS)["Fit: Chance against TF-IDF"]
    style = Candidates().primary_tests(own, comparisons[1], OPTIONS)
    assert list(style) == ["Style: Chance against TF-IDF"]
    assert style["Style: Chance against TF-IDF"].value == pytest.approx(-fit.value)
    two = Candidates().primary_tests(own, comparisons[2], OPTIONS)
    assert [test.details["about"] for test in two.values()] == ["Fit", "Style"]
    sections = {section.name: section for section in Candidates().run(own, OPTIONS).sections}
    [table] = [part for part in sections["style_first_answers"].parts if part.name == "style_first_answers_pairs"]
    shown = {frozenset(row[:2]): row[2].details["p_adjusted"] for row in table.rows}
    assert shown[frozenset(("TF-IDF", "Chance"))] == style["Style: Chance against TF-IDF"].details["p_adjusted"]
    # corrected over both criteria, as in its verdict
    assert (
        shown[frozenset(("Sentence encoder", "Chance"))]
        == two["Style: Chance against Sentence encoder"].details["p_adjusted"]
    )


def test_questions_declared_as_fixed_are_no_sample(careful):
    study, _, data = careful
    primary = study.spec.analysis.comparisons[0]
    sample = Candidates().primary_tests(data, primary, OPTIONS)
    fixed = Candidates().primary_tests(data, primary, replace(OPTIONS, has_fixed_items=True))
    for label, test in sample.items():
        assert fixed[label].value == test.value
        assert fixed[label].high - fixed[label].low < test.high - test.low
    section = Candidates().run(data, replace(OPTIONS, has_fixed_items=True)).sections[0]
    assert "confidence intervals draw raters." in section.paragraphs[0]
    assert "these questions, as declared" in section.parts[-1].notes[0]


def by_hand(pool, marks, rank):
    """Measures written out question by question."""
    values = {"MRR": [], "MAP": [], **{f"R@{k}": [] for k in CUTOFFS}, **{f"SR@{k}": [] for k in CUTOFFS}}
    for question in range(len(pool.questions)):
        own = pool.question == question
        right = np.flatnonzero(own & marks)
        if not len(right):
            continue
        places = sorted(rank[k] for k in right if not np.isnan(rank[k]))
        values["MRR"].append(1 / places[0] if places else 0.0)
        values["MAP"].append(sum((i + 1) / place for i, place in enumerate(places)) / len(right))
        for k in CUTOFFS:
            n = sum(place <= k for place in places)
            values[f"R@{k}"].append(n / len(right))
            values[f"SR@{k}"].append(float(n > 0))
    return {name: np.mean(given) for name, given in values.items()}


def test_measures_equal_their_definitions(pool):
    found = retrieval_scores(pool, OPTIONS)
    for judged in found.judged:
        for ranking in found.lists:
            expected = by_hand(pool, judged.judge.relevant, ranking.rank)
            for measure, value in expected.items():
                estimate = judged.answerable(ranking.label, measure)
                if unknown_because(measure, ranking.depth):
                    assert not estimate.is_known
                else:
                    assert estimate.value == pytest.approx(value), (judged.judge.name, ranking.label, measure)
                    assert estimate.low <= estimate.value <= estimate.high


def test_lists_known_to_rank_one_claim_nothing_deeper(pool):
    found = retrieval_scores(pool, OPTIONS)
    for judged in found.judged:
        for measure in ("R@2", "SR@10", "MRR", "MAP"):
            estimate = judged.answerable("Chance", measure)
            assert not estimate.is_known
            assert "rank 1 only" in estimate.notes[0]
        assert not any("Chance" in pair for pair in judged.pairs["MRR"])


def test_questions_without_a_right_answer_count_both_ways(pool):
    """Leaving them out and counting them as failures differ by just their share."""
    harsh = replace(pool, value=np.where(pool.question[pool.candidate] < 5, 1.0, pool.value))
    crowd = next(one for one in retrieval_scores(harsh, OPTIONS).judged if one.judge.name == "crowd")
    assert crowd.n_unanswerable >= 5
    n = len(pool.questions)
    for label in SYSTEMS:
        with_right, all_ = crowd.answerable(label, "SR@1"), crowd.scores[label].everything["SR@1"]
        assert with_right.n == n - crowd.n_unanswerable
        assert all_.n == n
        assert all_.value * n == pytest.approx(with_right.value * with_right.n)
        assert any("counted as 0" in note for note in all_.notes)


def test_the_crowd_as_retriever_orders_by_mean_rating(pool):
    rank = crowd_as_retriever(pool, seed=1)
    for question in range(len(pool.questions)):
        own = np.flatnonzero(pool.question == question)
        means = pool.mean[own][np.argsort(rank[own])]
        assert np.all(np.diff(means) <= 0)
        assert sorted(rank[own]) == list(range(1, len(own) + 1))
    found = retrieval_scores(pool, OPTIONS)
    crowd = next(one for one in found.judged if one.judge.name == "crowd")
    assert crowd.answerable(CROWD, "SR@1").value == 1.0  # by construction, as the report says


def test_unjudged_answers_bound_the_success_rate(pool):
    """Half the candidates lose their ratings: the bounds contain what full judging gives."""
    full = retrieval_scores(pool, OPTIONS)
    truth = {
        (one.system, one.k): one.least.value
        for one in success_bounds(full, next(j for j in full.judged if j.judge.name == "crowd").judge, OPTIONS)
    }
    kept = pool.candidate % 2 == 0
    thin = replace(pool, value=pool.value[kept], rater=pool.rater[kept], candidate=pool.candidate[kept])
    found = retrieval_scores(thin, OPTIONS)
    crowd = next(one for one in found.judged if one.judge.name == "crowd")
    bounds = success_bounds(found, crowd.judge, OPTIONS)
    assert all(crowd.judge.has_judged)
    assert any(one.whole.value < 1 for one in bounds if one.k == 1)
    for one in bounds:
        assert one.least.value <= truth[one.system, one.k] <= one.most.value


def test_both_labels_together_are_the_union(mixed):
    study, _, data = mixed
    harsh = pool_of(data, "fit", study.spec.scales["fit_5"])
    harsh = replace(harsh, value=np.where(harsh.is_gold[harsh.candidate], 2.0, harsh.value))
    maker, crowd, either = judges_of_pool(harsh)
    assert np.array_equal(either.relevant, maker.relevant | crowd.relevant)
    assert np.array_equal(crowd.relevant, harsh.is_judged & (np.nan_to_num(harsh.mean) >= 3.5))


def test_order_agreement_counts_pairs_within_questions(pool):
    for system in (pool.labels.index(label) for label in ("TF-IDF", "BM25", "Sentence encoder")):
        agree, n = 0.0, 0
        for question in range(len(pool.questions)):
            own = np.flatnonzero((pool.question == question) & ~np.isnan(pool.rank[:, system]))
            for a in own:
                for b in own:
                    if pool.rank[a, system] < pool.rank[b, system]:
                        n += 1
                        agree += 1.0 if pool.mean[a] > pool.mean[b] else 0.5 if pool.mean[a] == pool.mean[b] else 0.0
        found = order_agreement(pool, system, OPTIONS)
        assert found.value == pytest.approx(agree / n)
        assert found.n == n


def test_versatile_sets_match_the_statistic(pool):
    columns = rating_columns(pool, 3)
    candidate, place = np.nonzero(~np.isnan(columns))
    found = versatility(
        [pool.questions[k] for k in pool.question[candidate]],
        [pool.answers[k] for k in pool.answer[candidate]],
        columns[candidate, place].tolist(),
    )
    cov = variation(columns)
    assert set_sizes(cov, pool.question) == (len(found.questions.versatile), len(found.questions.one_sided))
    assert np.nanmedian(cov) == pytest.approx(found.median)


def test_agreement_stands_beside_its_null(careful):
    _, _, data = careful
    findings = Candidates().run(data, OPTIONS)
    shown = table_of(findings, "candidate_agreement")
    kappa, null = column(shown, "kappa"), column(shown, "null")
    assert list(kappa) == ["closest two", "lowest two", "highest two", "random two"]
    assert null["closest two"].value > 0.2 > abs(null["random two"].value)
    assert all(kappa[name].value > null[name].value for name in kappa)
    assert any("by construction" in text for text in section_of(findings, "candidate_agreement").paragraphs)


def test_what_the_gold_rule_makes_so_is_called_so(careful):
    """Raters who rated a gold answer below 4 are excluded, so that the others all call gold answers right."""
    _, _, data = careful
    findings = Candidates().run(data, OPTIONS)
    assert any(APPROVED_BY_RULE in text for text in section_of(findings, "retrieval").paragraphs)
    assert any(APPROVED_BY_RULE in text for text in section_of(findings, "disagreements").paragraphs)
    assert findings.figure.alt.count("Gold answers: ") == 1
    pool = pool_of(data, "fit", data.study.spec.scales["fit_5"])
    assert approves_gold(data, pool)
    (rule,) = gold_rules(data)
    lenient = rule.model_copy(update={"n_allowed_failures": 1})
    spec = data.study.spec.model_copy(update={"quality": [lenient]})
    assert not approves_gold(replace(data, study=replace(data.study, spec=spec)), pool)


def test_kappas_have_one_method_and_say_why_they_have_no_interval(careful):
    _, _, data = careful
    findings = Candidates().run(data, OPTIONS)
    kappas = column(table_of(findings, "candidate_agreement"), "kappa")
    assert {kappa.method for kappa in kappas.values()} == {"Cohen's kappa of two ratings, linear weights"}
    same = Estimate(1.0, 29, "kappa", notes=("no confidence interval: every resample gave the same value",))
    assert bare(same).notes == ("all pairs are equal: no confidence interval",)
    sizes = table_of(findings, "versatile")
    assert column(sizes, "versatile_chance")["questions"].n == len(
        {item.metadata["question"] for item in data.study.rated_items}
    )


def test_raters_at_random_agree_no_better_than_the_null(careful):
    """The closest two of ratings dealt out by lot look fine, and the p-value says that they mean nothing."""
    _, _, data = careful
    rng = np.random.default_rng(5)
    lot = data.judgments.with_columns(pl.Series("value", rng.permutation(data.judgments["value"].to_numpy())))
    findings = Candidates().run(replace(data, judgments=lot), OPTIONS)
    shown = table_of(findings, "candidate_agreement")
    assert column(shown, "kappa")["closest two"].value > 0.2
    assert column(shown, "p")["closest two"] > 0.01
    assert column(shown, "p")["random two"] > 0.01


def test_the_gold_rule_is_set_against_its_absence(mixed):
    study, _, data = mixed
    assert len(data.set_aside)
    findings = Candidates().run(data, OPTIONS)
    shown = table_of(findings, "gold_rule")
    kept, given = column(shown, "with_rule"), column(shown, "without_rule")
    assert kept["Gold answers"].value > given["Gold answers"].value
    gold = {item.id for item in study.rated_items if item.is_gold}
    everything = pl.concat([data.judgments, data.set_aside]).filter(pl.col("item").is_in(gold))
    by_item = dict(everything.group_by("item").agg(pl.col("value").mean()).iter_rows())
    questions = {}
    for item in study.rated_items:
        if item.id in by_item:
            questions.setdefault(item.metadata["question"], []).append(by_item[item.id])
    assert given["Gold answers"].value == pytest.approx(np.mean([np.mean(v) for v in questions.values()]))
    n_lost, n_all = len(data.set_aside), len(data.set_aside) + len(data.judgments)
    assert f"{n_lost} ratings of {n_all}" in section_of(findings, "gold_rule").paragraphs[0]


def test_the_whole_report_has_no_problem_and_names_the_judges(careful):
    study, _, data = careful
    report = analyse(study, data, n_resamples=200)
    own = [
        one
        for one in report.sections
        if one.name in ("first_answers", "retrieval", "rankings", "versatile", "gold_rule")
    ]
    assert len(own) == 5
    assert not any(one.problem for one in own)
    assert "first answers of" in report.summary.answer
    assert all(headline.is_confirmatory for headline in report.summary.headlines)
    assert report.summary.figure is not None
    names = [one.name for one in report.tables()]
    assert len(names) == len(set(names))
    definitions = next(one for one in report.tables() if one.name == "retrieval_definitions")
    assert {row[0] for row in definitions.rows} == {"Recall@k", "MRR", "MAP", "Success Rate@k"}


def test_measures_of_the_paper_are_the_library_measures(pool):
    """The per-question values behind the tables are those of stats.ir_measures on the same ranks."""
    found = retrieval_scores(pool, OPTIONS)
    maker = found.judged[0]
    ranks = relevant_ranks_of_pool(pool, maker.judge, pool.rank[:, pool.labels.index("TF-IDF")])
    assert np.allclose(maker.scores["TF-IDF"].values["MRR"], reciprocal_rank(ranks), equal_nan=True)
    assert np.allclose(maker.scores["TF-IDF"].values["MAP"], average_precision(ranks), equal_nan=True)
