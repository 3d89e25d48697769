"""dialometer learn rerate: dialogues that their users rated highly, rated again by experts in a study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.learn._shared import RatingOptions, RatingsPath, media_left_out
from dialometer.cli.options import AsJson, Seed, with_option_groups
from dialometer.model.file_names import STUDY_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialometer.learned.data.rated import RatedDialogue

CONSENT = """\
# {{title}}

You are asked to rate conversations of users with a system, as somebody who knows such conversations well. It
takes about {{minutes}} minutes; you may stop at any time and continue later with the same link.

We store your ratings and the time of each page under a random identifier. You need not take part, and you may have your
answers deleted with the withdrawal code on the last page.

Questions: {{contact}}.

By continuing you agree to take part.
"""
INSTRUCTIONS = """\
# How it works

Each page shows **one complete conversation** between a user and a system. Say how likely you, as the user, would talk to this
system again. Judge the whole conversation, and use the whole scale.
"""
DEBRIEFING = """\
# Thank you!

The users gave these conversations a rating of their own. Your ratings show how far such ratings can be trusted.

Questions: {{contact}}.
"""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="rerate",
        epilog="Example: dialometer learn rerate ratings.jsonl --n 50 --out again · dialometer serve again",
    )
    @with_option_groups
    def rerate_(
        ratings: RatingsPath,
        out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="New folder for the study.")],
        n: Annotated[int, typer.Option("--n", min=2, help="How many dialogues.")] = 50,
        least: Annotated[float, typer.Option("--least", min=1, max=5, help="Lowest rating of the user, 1 to 5.")] = 5.0,
        experts: Annotated[int, typer.Option("--experts", min=1, help="Experts who rate every dialogue.")] = 1,
        seed: Seed = 0,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Draw dialogues that users rated highly and write a study in which experts rate them again, from 1 to 5.

        The report says how many the experts rate lower (the paper: 27 of 50 fives became four or less).
        """
        import numpy as np

        from dialometer.errors import DialometerError, NotEnoughData

        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise DialometerError(f"'{out}' exists and is not an empty folder", remedy="choose another name")
        fitting = [row for row in source.read(ratings).rated if row.rating >= least]
        if len(fitting) < n:
            remedy = "ask for fewer, or lower --least"
            raise NotEnoughData(f"{len(fitting)} dialogues are rated {least:g} or more, {n} are wanted", remedy=remedy)
        drawn = np.sort(np.random.default_rng([seed, 50]).choice(len(fitting), n, replace=False)).tolist()
        chosen = [fitting[k] for k in drawn]
        _write(out, chosen, experts, seed, ratings.name)
        n_media, lacking = media_left_out(chosen)
        if as_json:
            about = {"folder": str(out), "n_dialogues": n, "n_eligible": len(fitting), "n_media_left_out": n_media}
            typer.echo(json.dumps(about, indent=2))
            return
        from dialometer.cli.console import results

        results.print(f"{n} of {len(fitting):,} dialogues with a user's rating of at least {least:g} were drawn.")
        if lacking:
            results.print(lacking, soft_wrap=True)
        results.print(f"The study is in {out}. Next: dialometer check {out} · dialometer serve {out}", soft_wrap=True)


def _write(out: Path, rows: Sequence[RatedDialogue], n_experts: int, seed: int, source: str) -> None:
    from dialometer.cli.retrieval._shared import study_name
    from dialometer.design.edit_yaml import yaml_text
    from dialometer.readers.turn_parts import turn_as_json

    out.mkdir(parents=True, exist_ok=True)
    head = "# Dialogues rated highly by their users, for experts to rate again; written by `dialometer learn rerate`.\n"
    content = _study_file(study_name(out.name, "rerate"), len(rows), n_experts, seed, source)
    (out / STUDY_FILE).write_text(head + yaml_text(content), encoding="utf-8")
    items = [
        {
            "id": f"dialogue-{number:03d}",
            "system": "system",
            "turns": [
                {**turn_as_json(replace(turn, media=())), "speaker": "User" if turn.role == "user" else "System"}
                for turn in row.dialogue.turns
            ],
            "metadata": {"dialogue": row.id, "user_rating": row.rating},
        }
        for number, row in enumerate(rows, start=1)
    ]
    lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (out / "items.jsonl").write_text(lines, encoding="utf-8")
    for file, words in (("consent", CONSENT), ("instructions", INSTRUCTIONS), ("debriefing", DEBRIEFING)):
        (out / f"{file}.md").write_text(words, encoding="utf-8")


def _study_file(name: str, n: int, n_experts: int, seed: int, source: str) -> dict[str, Any]:
    from dialometer.scales.likert import Likert

    return {
        "dialometer": 1,
        "name": name,
        "title": "How good was this conversation?",
        "description": f"{n} dialogues from {source} that their users rated highly, rated again by {n_experts} experts.",
        "contact": "the research team (study-team@example.org)",
        "language": "en",
        "seed": seed,
        "speakers": {"User": "user", "System": "agent"},
        "systems": [{"name": "system", "label": "All systems"}],
        "items": {"kind": "dialogue", "file": "items.jsonl"},
        "scales": {
            "again": {
                "type": Likert.model_fields["type"].default,
                "points": 5,
                "labels": {1: "Not at all likely", 3: "Undecided", 5: "Very likely"},
            }
        },
        "criteria": [
            {
                "name": "again",
                "label": "Would talk again",
                "question": "On a scale of one to five, how likely would you talk to this system again?",
                "scale": "again",
            }
        ],
        "design": {"items_per_rater": "all", "item_order": "random", "stale_after_minutes": 20160},
        "recruitment": {"platform": "link", "quota": n_experts, "minutes": max(1, round(n * 0.5))},
        "analysis": {"confidence": 0.95, "n_resamples": 2000},
    }
