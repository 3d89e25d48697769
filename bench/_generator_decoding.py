"""What decoding does to a bot's responses: diversity, repetition and dullness, for the same contexts and number of words.

With a trained evaluator, what it thinks of each way too (``--decoding FOLDER --judge EVALUATOR``, after the bots have answered).

Distinct-n falls with the number of words, so ways of decoding that make responses of different lengths are compared on equally
many words: those of the first responses, in the order of the contexts.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t, ttest_ind

from dialometer.generators.bot import BOT_FILE, Bot
from dialometer.generators.corpus import Corpus
from dialometer.generators.decoding import Decoding
from dialometer.generators.filters import words_of
from dialometer.generators.measures import asked_about, distinct, is_dull, ngrams
from dialometer.learned.data.evaluator import Evaluator
from dialometer.learned.gaussian.evaluator import GaussianEvaluator
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural.work import Report, Work, default_cache, silent

Floats = NDArray[np.float64]
N_CONTEXTS = 1000
N_WORDS = 4000
N_TURNS = 5
WAYS = {
    "greedy": Decoding("greedy"),
    "beam": Decoding("beam"),
    **{f"diverse beam {penalty}": Decoding("beam", diversity_penalty=penalty) for penalty in (0.5, 1.0, 2.0)},
    **{f"nucleus {p}": Decoding("sample", top_p=p) for p in (0.3, 0.5, 0.7, 0.9)},
    "nucleus 0.9, temperature 0.7": Decoding("sample", top_p=0.9, temperature=0.7),
    "top 40": Decoding("sample", top_p=1.0, top_k=40),
    "all words": Decoding("sample", top_p=1.0),
}
PEOPLE = "people"
ELSEWHERE = "what a person said in another dialogue"
DULL = "I don't know."
JUDGED_FILE, BASELINES_FILE = "judged.json", "judged-without-a-bot.json"


def answer_in_many_ways(
    out: Path, corpus: Corpus, device: str, n_contexts: int = N_CONTEXTS, report: Report = silent
) -> None:
    """Writes ``decoding.json`` beside each bot: contexts, what people said next, and what the bot says in each way.

    Ways in which a bot has answered already are kept.
    """
    split = corpus.split("test")
    rows = asked_about(split, n_contexts, seed=1)
    contexts = [[corpus.vocabulary.decode(turn.tolist()) for turn in split.context(int(r), N_TURNS)] for r in rows]
    said = [corpus.vocabulary.decode(split.turn(int(row)).tolist()) for row in rows]
    folders = sorted(path.parent for path in out.rglob(BOT_FILE))
    kept = {"contexts": contexts, "responses": {PEOPLE: said}, "rows": [int(row) for row in rows]}
    for done, (folder, way) in enumerate(itertools.product(folders, WAYS)):
        path = folder / "decoding.json"
        answered = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else kept
        if answered["rows"] != kept["rows"]:
            answered = kept
        if way not in answered["responses"]:
            report(f"{folder.relative_to(out)}: {way}", done, len(folders) * len(WAYS))
            bot = _loaded(folder, device)
            read = [split.context(int(row), bot.model.shape.n_turns) for row in rows]
            spoken = bot.respond_to_tokens(read, WAYS[way], kept["rows"])
            responses = {**answered["responses"], way: [response.text for response in spoken]}
            path.write_text(json.dumps({**answered, "responses": responses}), encoding="utf-8")


@lru_cache(maxsize=1)
def _loaded(folder: Path, device: str) -> Bot:
    return Bot.load(folder, device)


def show_decoding(seeds: Sequence[Path], names: Sequence[str]) -> None:
    """What the ways of decoding come to, as means over seeds."""
    print(
        "\n| model | decoding | distinct-1 | distinct-2 | said before | different | dull | words |\n" + "|---" * 8 + "|"
    )
    for name in names:
        kept = [json.loads((seed / name / "decoding.json").read_text(encoding="utf-8")) for seed in seeds]
        for way in [PEOPLE, *WAYS]:
            found = np.mean([measured(one["responses"][way], one["contexts"]) for one in kept], axis=0)
            forms = ("{:.3f}", "{:.3f}", "{:.1%}", "{:.0%}", "{:.0%}", "{:.1f}")
            cells = [form.format(value) for form, value in zip(forms, found, strict=True)]
            if way != PEOPLE or name == names[0]:  # people's answers are the same beside every model
                print(f"| {'' if way == PEOPLE else name} | {way} | " + " | ".join(cells) + " |")


def measured(responses: Sequence[str], contexts: Sequence[Sequence[str]]) -> list[float]:
    """Distinct-1 and -2 of the first words, and the shares said before, different and dull, with the words a response has."""
    words = [words_of(text) for text in responses]
    n_before = np.cumsum([len(row) for row in words])
    first = words[: int(np.searchsorted(n_before, N_WORDS)) + 1]
    return [
        distinct(first, 1),
        distinct(first, 2),
        said_before(words, contexts),
        len({tuple(row) for row in words}) / len(words),
        float(np.mean([is_dull(text) for text in responses])),
        float(n_before[-1]) / len(words),
    ]


def said_before(words: Sequence[Sequence[str]], contexts: Sequence[Sequence[str]]) -> float:
    """The share of runs of three words that occur in the context already, or earlier in the response itself."""
    n_again = n_all = 0
    for row, turns in zip(words, contexts, strict=True):
        known = set(itertools.chain.from_iterable(ngrams(words_of(turn), 3) for turn in turns))
        for gram in ngrams(row, 3):
            n_again += gram in known
            n_all += 1
            known.add(gram)
    return n_again / n_all if n_all else 0.0


def judge(out: Path, evaluator: Evaluator, n_contexts: int, report: Report = silent) -> None:
    """Keeps the score of context and response, less that of the context with what the person said, beside each bot; then shows it.

    What needs no bot is scored too: the response of another dialogue, and always the same one.
    """
    paths = sorted(out.rglob("decoding.json"))
    for done, path in enumerate(paths):
        report(f"{path.parent.relative_to(out)}", done, len(paths))
        kept = json.loads(path.read_text(encoding="utf-8"))
        said = kept["responses"]
        if done == 0:
            people = said[PEOPLE][:n_contexts]
            plain = {ELSEWHERE: np.roll(people, len(people) // 2).tolist(), DULL: [DULL] * len(people)}
            _write(out / BASELINES_FILE, _less_people(evaluator, kept["contexts"][:n_contexts], people, plain))
        ways = {way: said[way] for way in WAYS}
        _write(path.with_name(JUDGED_FILE), _less_people(evaluator, kept["contexts"][:n_contexts], said[PEOPLE], ways))
    show_judged(out)


def _less_people(
    evaluator: Evaluator,
    contexts: Sequence[Sequence[str]],
    people: Sequence[str],
    ways: Mapping[str, Sequence[str]],
) -> dict[str, list[float]]:
    """Of each way the scores by context, less those of people."""
    score = evaluator.score
    if isinstance(evaluator, GaussianEvaluator):
        score = partial(evaluator.score, work=Work(cache=default_cache()))  # contexts are read once

    def scores(said: Sequence[str]) -> Floats:
        pairs = zip(contexts, said, strict=False)
        return score([_dialogue(n, context, text) for n, (context, text) in enumerate(pairs)]).values

    standard = scores(people)
    return {way: (scores(said) - standard).round(5).tolist() for way, said in ways.items()}


def _write(path: Path, content: Mapping[str, Sequence[float]]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def show_judged(out: Path) -> None:
    """Of each bot and way the mean over contexts with its 95% interval; over seeds, where there are several, by t.

    Then the mean of all ways, what needs no bot, and how far models with several seeds are apart.
    """
    seeds = sorted(out.glob("seed-*")) or [out]
    names = sorted(path.parent.name for path in seeds[0].glob(f"*/{JUDGED_FILE}"))
    print("| decoding | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    judged = {
        name: [json.loads((seed / name / JUDGED_FILE).read_text(encoding="utf-8")) for seed in seeds] for name in names
    }
    for way in WAYS:
        cells = (with_interval(_spread([by_way[way] for by_way in judged[name]])) for name in names)
        print(f"| {way} | " + " | ".join(cells) + " |", flush=True)
    whole = {name: _spread([np.mean(list(one.values()), axis=0).tolist() for one in judged[name]]) for name in names}
    print("| mean of all ways | " + " | ".join(with_interval(whole[name]) for name in names) + " |")
    print("\n| without a bot | score |\n|---|---|")
    for way, values in json.loads((out / BASELINES_FILE).read_text(encoding="utf-8")).items():
        print(f"| {way} | {with_interval(values)} |")
    if len(seeds) > 1:
        print("\n| mean of all ways, difference over seeds | |\n|---|---|")
        for first, second in itertools.combinations(names, 2):
            test = ttest_ind(whole[second], whole[first])
            low, high = test.confidence_interval()
            apart = np.mean(whole[second]) - np.mean(whole[first])
            print(f"| {second} less {first} | {apart:+.3f} [{low:+.3f}, {high:+.3f}] |")


def _spread(by_seed: Sequence[Sequence[float]]) -> Sequence[float]:
    """What an interval is taken over: the means of the seeds, or the contexts of the only one."""
    return by_seed[0] if len(by_seed) == 1 else [float(np.mean(values)) for values in by_seed]


def with_interval(values: Sequence[float]) -> str:
    """The mean and its 95% t interval."""
    mean = float(np.mean(values))
    half = float(t.ppf(0.975, len(values) - 1)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}]"


def _dialogue(number: int, context: Sequence[str], response: str) -> Dialogue:
    """The bot's side is the one that speaks last."""
    said = [*context, response]
    roles = ["agent" if (len(said) - place) % 2 else "user" for place in range(len(said))]
    turns = [Turn(speaker=role, text=text, role=role) for role, text in zip(roles, said, strict=True) if text.strip()]
    return Dialogue(id=str(number), turns=tuple(turns))
