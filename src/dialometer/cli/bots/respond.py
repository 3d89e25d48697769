"""dialometer bots respond: the responses of several bots as the items of a rating study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.bots._shared import Cut, DecodingOptions
from dialometer.cli.options import AsJson, Device, Seed, Speakers, with_option_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialometer.generators.bot import Bot


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="respond",
        epilog="Example: dialometer bots respond seq2seq hred thred --items corpus --contexts 51 --practice 1 --out items.jsonl",
    )
    @with_option_groups
    def respond(
        bots: Annotated[
            list[str], typer.Argument(metavar="BOT", help="Bots, as PATH or NAME=PATH.", show_default=False)
        ],
        items: Annotated[
            Path, typer.Option("--items", help="Items with contexts, a prepared corpus, or a file of dialogues.")
        ],
        out: Annotated[Path, typer.Option("--out", help="New file for the items.")],
        contexts: Annotated[int, typer.Option("--contexts", min=1, help="How many are drawn from dialogues.")] = 50,
        turns: Annotated[int, typer.Option("--turns", min=1, help="Turns of a context drawn from dialogues.")] = 2,
        practice: Annotated[int, typer.Option("--practice", min=0, help="Number of items to mark for practice.")] = 0,
        profanity: Annotated[
            Path | None, typer.Option("--profanity", help="List of words; responses with one are reported and marked.")
        ] = None,
        cut: Cut = False,
        *,
        options: DecodingOptions,
        device: Device = "auto",
        seed: Seed = 0,
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Let bots answer the same contexts. Next: dialometer new anchoring my-study --responses items.jsonl

        Each item names the weights, the decoding and the seed that made its responses; a file beside the items has
        the full record of every bot.
        """
        from dialometer.cli.bots._shared import named_bots
        from dialometer.errors import DialometerError
        from dialometer.generators.contexts import answer_items, read_contexts
        from dialometer.generators.filters import read_word_list

        if out.exists():
            raise DialometerError(f"'{out}' exists already", remedy="choose another name or remove it")
        decoding = options.decoding()
        unwanted = read_word_list(profanity) if profanity else frozenset()
        contexts_read = read_contexts(items, n_contexts=contexts, n_turns=turns, seed=seed)
        bots_by_name = named_bots(bots, device)
        rows = answer_items(
            contexts_read, bots_by_name, decoding, seed=seed, is_cut=cut, n_practice=practice, unwanted=unwanted
        )
        _write(out, rows, bots_by_name)
        refused = {row["id"]: row["metadata"].get("unwanted_words_in", []) for row in rows}
        _print_result(out, rows, {key: names for key, names in refused.items() if names}, as_json=as_json)


def _write(out: Path, rows: list[dict[str, Any]], bots: Mapping[str, Bot]) -> None:
    """Both files at once: the items, and beside them who made them."""
    from dialometer._version import __version__
    from dialometer.exchange.own_systems.study_from_outputs import PROVENANCE_SUFFIX

    about = {
        "dialometer": __version__,
        "systems": {
            name: {
                "label": bot.model.label,
                "about": bot.model.description,
                "model": bot.checkpoint.name,
                "sha256": bot.checkpoint.sha256,
                "n_parameters": bot.model.n_parameters,
                "record": dict(bot.checkpoint.record),
            }
            for name, bot in bots.items()
        },
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        out.with_name(out.name + PROVENANCE_SUFFIX): json.dumps(about, indent=1) + "\n",
        out: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    }
    for path, text in texts.items():
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)


def _print_result(out: Path, rows: list[dict[str, Any]], refused: dict[str, list[str]], *, as_json: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.exchange.own_systems.study_from_outputs import PROVENANCE_SUFFIX

    if as_json:
        content = {"items": str(out), "n_items": len(rows), "systems": list(rows[0]["responses"]), "unwanted": refused}
        typer.echo(json.dumps(content, indent=2))
        return
    for row in rows[:2]:
        for turn in row["context"]:
            results.print(f"[dim]{escape(turn['speaker'])}:[/] {escape(turn['text'])}", soft_wrap=True)
        for name, text in row["responses"].items():
            results.print(f"  [bold]{escape(name)}:[/] {escape(text)}", soft_wrap=True)
        results.print()
    results.print(f"Wrote {len(rows)} items to [bold]{out}[/] and who made them to {out.name}{PROVENANCE_SUFFIX}.")
    if refused:
        results.print(f"[yellow]•[/] Responses with listed words, to be looked at: {', '.join(refused)}.")
    results.print(f"\nNext: [bold]dialometer new anchoring my-study --responses {out}[/]")
