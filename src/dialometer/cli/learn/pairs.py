"""dialometer learn pairs: pairs of rated dialogues, as a study in which experts choose the better one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.learn._shared import RatingOptions, RatingsPath, media_left_out
from dialometer.cli.options import AsJson, Seed, with_option_groups
from dialometer.model.file_names import STUDY_FILE

if TYPE_CHECKING:
    from dialometer.learned.data.sampled_pairs import PairRules, SampledPairs

CONSENT = """\
# {{title}}

You are asked to compare pairs of conversations of users with a system, as somebody who knows such
conversations well. It takes about {{minutes}} minutes in all; you may stop at any time and continue later with the same link.

We store your choices and the time of each page under a random identifier. You need not take part, and you may have your
answers deleted with the withdrawal code on the last page.

Questions: {{contact}}.

By continuing you agree to take part.
"""
INSTRUCTIONS = """\
# How it works

Each page shows **two complete conversations** between a user and a system. Read both, then choose the one after which you, as
the user, would be more likely to come back.

- Judge the experience of the user as a whole, not a single answer and not how the system may work inside.
- The two may be of the same system. Longer is not better.
- If you really cannot tell, say so; do not guess.
"""
DEBRIEFING = """\
# Thank you!

Users rated these conversations themselves when they ended. With your choices we see how far such ratings can be trusted, and
test programs that learn to evaluate conversations.

Questions: {{contact}}.
"""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="pairs",
        epilog="Examples: dialometer learn pairs ratings.jsonl --n 400 --out experts · then: dialometer serve experts · "
        "dialometer learn ablate ratings.jsonl --pairs experts",
    )
    @with_option_groups
    def pairs_(
        ratings: RatingsPath,
        out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="New folder for the study.")],
        n: Annotated[int, typer.Option("--n", min=1, help="How many pairs.")] = 400,
        experts: Annotated[int, typer.Option("--experts", min=1, help="Experts who compare every pair.")] = 2,
        fewest_turns: Annotated[int, typer.Option("--fewest-turns", min=2, help="Turns a dialogue must have.")] = 10,
        most_turns: Annotated[int, typer.Option("--most-turns", min=0, help="Turns it may have; 0: any.")] = 0,
        topic: Annotated[
            str, typer.Option("--topic", help="Only dialogues on it: their metadata say so, or the word occurs.")
        ] = "",
        without: Annotated[
            Path | None, typer.Option("--without", help="File of words, one per line; dialogues with one are excluded.")
        ] = None,
        gap: Annotated[float, typer.Option("--gap", min=0, help="Least difference of the two ratings.")] = 0.0,
        even: Annotated[
            bool, typer.Option("--even-gaps", help="As many pairs of each gap (1, 2, 3, 4 points) as possible.")
        ] = False,
        length: Annotated[
            int | None, typer.Option("--length", min=0, help="Most turns by which the two may differ.")
        ] = None,
        same_system: Annotated[bool, typer.Option("--same-system", help="Only pairs of one system.")] = False,
        seed: Seed = 0,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Draw pairs of rated dialogues and write a study in which experts choose the better one, or "cannot tell".

        The rules are those of the CMADE paper: at least ten turns, one topic, no unwanted words, random pairs, two experts.
        The study's report gives the experts' agreement and labels; **--pairs** of the other verbs reads its folder.
        """
        from dialometer.errors import DialometerError
        from dialometer.learned.data.sampled_pairs import PairRules, sample_pairs

        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise DialometerError(f"'{out}' exists and is not an empty folder", remedy="choose another name")
        rules = PairRules(
            n_pairs=n,
            fewest_turns=fewest_turns,
            most_turns=most_turns,
            topic=topic,
            without=_words(without),
            least_gap=gap,
            is_even_over_gaps=even,
            max_length_difference=length,
            is_same_system=same_system,
            seed=seed,
        )
        sampled = sample_pairs(source.read(ratings).rated, rules)
        _write(out, sampled, rules, experts, ratings.name)
        _print_result(out, sampled, as_json=as_json)


def _words(path: Path | None) -> tuple[str, ...]:
    from dialometer.errors import DialometerError

    if path is None:
        return ()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(f"the words cannot be read: {error}", where=str(path), remedy="check the file") from error
    return tuple(word.strip() for word in lines if word.strip())


def _write(out: Path, sampled: SampledPairs, rules: PairRules, n_experts: int, source: str) -> None:
    from dialometer.cli.retrieval._shared import study_name
    from dialometer.design.edit_yaml import yaml_text
    from dialometer.learned.data.sampled_pairs import pair_items, study_file

    content = study_file(sampled, rules, name=study_name(out.name, "experts"), n_experts=n_experts, source=source)
    out.mkdir(parents=True, exist_ok=True)
    head = "# Pairs of dialogues for experts to compare; written by `dialometer learn pairs`.\n"
    (out / STUDY_FILE).write_text(head + yaml_text(content), encoding="utf-8")
    rows = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in pair_items(sampled))
    (out / "items.jsonl").write_text(rows, encoding="utf-8")
    for file, words in (("consent", CONSENT), ("instructions", INSTRUCTIONS), ("debriefing", DEBRIEFING)):
        (out / f"{file}.md").write_text(words, encoding="utf-8")


def _print_result(out: Path, sampled: SampledPairs, *, as_json: bool) -> None:
    from collections import Counter

    gaps = Counter(f"{abs(a.rating - b.rating):g}" for a, b in sampled.pairs)
    n_same = sum(a.bot is not None and a.bot == b.bot for a, b in sampled.pairs)
    n_media, lacking = media_left_out({id(row): row for pair in sampled.pairs for row in pair}.values())
    if as_json:
        about: dict[str, Any] = {"folder": str(out), "n_pairs": len(sampled.pairs), "n_eligible": sampled.n_eligible}
        about |= {"n_left_out": dict(sampled.n_left_out), "gaps": dict(sorted(gaps.items())), "n_same_system": n_same}
        about["n_media_left_out"] = n_media
        typer.echo(json.dumps(about, indent=2))
        return
    from dialometer.cli.console import results

    results.print(f"{len(sampled.pairs):,} pairs drawn from {sampled.n_eligible:,} dialogues.")
    for why, n in sampled.n_left_out.items():
        results.print(f"Excluded: {n:,} {why}.")
    if lacking:
        results.print(lacking, soft_wrap=True)
    shown = ", ".join(f"{gap} points: {n}" for gap, n in sorted(gaps.items()))
    results.print(f"Difference of the users' ratings: {shown}. Pairs of one system: {n_same}.", soft_wrap=True)
    results.print(f"The study is in {out}. Next: dialometer check {out} · dialometer serve {out}", soft_wrap=True)
