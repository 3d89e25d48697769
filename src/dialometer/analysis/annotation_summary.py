"""The first screen of a study of candidates: who is best by whose judgment, how sure that is, and the methods used."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dialometer.analysis.candidates import Pool
from dialometer.analysis.family import Options
from dialometer.analysis.first_answers import FirstAnswers
from dialometer.analysis.retrieval_scores import FIRST, Judged, Retrieval
from dialometer.analysis.words import listed, number, percent, with_interval
from dialometer.model.report import Figure, Headline, Method
from dialometer.report.charts import Dot, dot_interval

SOURCE = "Chierici and Habash, HumEval 2021"


@dataclass(frozen=True)
class Judgments:
    """What the summary is made of."""

    pool: Pool
    answers: FirstAnswers
    retrieval: Retrieval

    def by(self, judge: str) -> Judged | None:
        """The measures against one judge's labels."""
        return next((one for one in self.retrieval.judged if one.verdict.name == judge), None)


def answer(main: Judgments) -> str:
    """Who is best by the ratings, by the maker's labels and by the crowd's, in one or two sentences."""
    answers = main.answers
    if answers.lead is None:
        return "No first answer of any system has been rated yet."
    best = answers.lead.best
    rating = f"{number(answers.means[best].value)} on the scale from {main.pool.ends[0]:g} to {main.pool.ends[1]:g}"
    if answers.gold is not None and answers.shares[best].is_known:
        rating += f", {percent(answers.shares[best].value)} of gold"
    text = f"The first answers of {best} are rated best ({rating})."
    if not answers.lead.is_clear and answers.pairs:
        text = f"No system is shown to be best. Rated highest: the first answers of {listed(answers.lead.first)} ({rating})."
    told = []
    for judge in ("maker", "crowd"):
        judged = main.by(judge)
        if judged is not None and judged.lead is not None:
            rate = judged.answerable[judged.lead.best][FIRST]
            each = " each" if judged.lead.shared else ""
            told.append(f"for the {judge}: {listed(judged.lead.first)} ({percent(rate.value)}{each})")
    return f"{text} Most often right {'; '.join(told)}." if told else text


def certainty(main: Judgments, options: Options) -> str:
    """Which of the leads could be chance."""
    answers = main.answers
    if answers.lead is None:
        return "Not enough data."
    if not answers.pairs:
        return "There is one system only, so nothing to compare it with."
    level = [*answers.lead.level, *answers.lead.untested]
    n_questions = len(main.pool.questions)
    where = f"{n_questions:,} questions and {len(main.pool.rater_names):,} raters"
    if answers.lead.is_clear:
        text = (
            f"The lead in ratings over every other system is larger than chance would make it with {where} (all corrected "
            f"p values at most {1 - options.confidence:.2g})."
        )
    elif answers.lead.behind:
        text = (
            f"With {where}, {answers.lead.best} is clearly ahead of {listed(answers.lead.behind)}; that it is better than "
            f"{listed(level)} is not established."
        )
    else:
        text = f"With {where}, the lead in ratings over {listed(level)} could be chance."
    open_ = []
    for judge in ("maker", "crowd"):
        judged = main.by(judge)
        if judged is not None and judged.lead is not None and judged.lead.level:
            open_.append(f"{judged.lead.best} from {listed(judged.lead.level)} for the {judge}")
    return f"{text} By how often they are right one cannot tell {'; '.join(open_)}." if open_ else text


def headlines(main: Judgments) -> tuple[Headline, ...]:
    """The rating of the best first answers, and the share that is right for each judge."""
    answers = main.answers
    lines = []
    if answers.lead is not None:
        best = answers.lead.best
        lines.append(
            Headline(
                f"Average rating, first answers of {best}",
                answers.means[best],
                f"Gold answers get {with_interval(answers.gold)}." if answers.gold is not None else "",
                is_confirmatory=bool(answers.declared),
            )
        )
    for judge, word in (("maker", "maker"), ("crowd", "crowd")):
        judged = main.by(judge)
        if judged is None or judged.lead is None:
            continue
        best = judged.lead.best
        level = judged.lead.level
        who = listed(judged.lead.first)
        sentence = (
            f"{best} cannot be told from {listed(level)}."
            if level
            else "Ahead of every other system."
            if judged.lead.behind
            else ""
        )
        rate = replace(judged.answerable[best][FIRST], unit="share")
        lines.append(Headline(f"Success Rate@1 by the {word}: {who}", rate, sentence))
    return tuple(lines)


def figure(main: Judgments) -> Figure | None:
    """First answers that are right, for the maker and for the crowd."""
    dots = []
    for label in main.pool.labels:
        for judge in ("maker", "crowd"):
            judged = main.by(judge)
            if judged is not None:
                dots.append(Dot(label, judged.answerable[label][FIRST], f"the {judge}"))
    if not dots:
        return None
    told = "; ".join(
        f"{dot.label} by {dot.group} {percent(dot.estimate.value)}" for dot in dots if dot.estimate.is_known
    )
    return Figure(
        "summary_figure",
        "First answers that are right, by whose judgment (Success Rate@1)",
        dot_interval(
            dots,
            value_title="share of questions with a right first answer",
            group_title="right for",
            domain=(0, 1),
            is_percent=True,
        ),
        alt=f"Success Rate at 1: {told}.",
    )


def warnings(main: Judgments) -> tuple[str, ...]:
    """Candidates without ratings, which look like wrong answers in the measures."""
    n_unjudged = int((~main.pool.is_judged).sum())
    if not n_unjudged:
        return ()
    share = percent(n_unjudged / len(main.pool.items))
    return (f"{n_unjudged:,} candidates ({share}) have no rating yet; where they stand in a list they count as wrong.",)


def methods(options: Options) -> tuple[Method, ...]:
    """What was used for what, and why."""
    correction = f", corrected by {options.correction}" if options.correction != "none" else ""
    return (
        Method(
            "average rating and percent of gold",
            "mean over questions; bootstrap that draws raters and questions",
            "ratings of one rater and of one question go together",
            SOURCE,
        ),
        Method(
            "comparisons of first answers and of retrieval measures",
            f"paired permutation test over questions{correction}",
            "all systems answered the same questions; no assumption about the distribution",
            "Smucker, Allan and Carterette, CIKM 2007",
        ),
        Method(
            "agreement",
            "weighted Cohen's kappa of two of the ratings of a candidate, with a permutation null; Krippendorff's alpha",
            "choosing the closest, lowest or highest two makes agreement by itself",
            "Merdivan et al. 2020; " + SOURCE,
        ),
        Method(
            "retrieval measures",
            "Recall@k, MRR, MAP and Success Rate@k; Wilson intervals or bootstrap over questions",
            "published measures, against the maker's and the crowd's labels",
            SOURCE,
        ),
        Method(
            "versatile and one-sided questions",
            "coefficient of variation above the 75th percentile or below the median, with shuffled ratings beside",
            "sets chosen by disagreement arise from noise as well",
            SOURCE,
        ),
    )
