"""dialometer bots evaluate: how well bots predict people, and how varied their own responses are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.bots._shared import DecodingOptions, Strategy
from dialometer.cli.options import AsJson, Device, Seed, with_option_groups

if TYPE_CHECKING:
    from dialometer.model.estimate import Estimate


LABELS = {
    "perplexity": "Perplexity",
    "perplexity_ratio": "… over that of the first",
    "distinct_1": "Distinct-1",
    "distinct_2": "Distinct-2",
    "unique_responses": "Different responses, share",
    "bigram_entropy": "Entropy of word pairs, bits",
    "dull_share": "Dull responses, share",
    "length_words": "Length, words",
    "bleu": "BLEU",
    "rouge_l": "ROUGE-L",
}


@dataclass(frozen=True)
class GreedyOptions(DecodingOptions):
    """By default the likeliest word each time: much is answered here."""

    strategy: Strategy = "greedy"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="evaluate", epilog="Example: dialometer bots evaluate seq2seq hred thred --corpus corpus")
    @with_option_groups
    def evaluate(
        bots: Annotated[
            list[str], typer.Argument(metavar="BOT", help="Bots, as PATH or NAME=PATH.", show_default=False)
        ],
        corpus: Annotated[Path, typer.Option("--corpus", help="The corpus they were trained on.")],
        split: Annotated[str, typer.Option("--split", help="train, validation or test.")] = "test",
        responses: Annotated[int, typer.Option("--responses", min=2, help="Contexts that are answered.")] = 1000,
        resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples.")] = 1000,
        *,
        options: GreedyOptions,
        device: Device = "auto",
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Perplexity, distinct-n, dull share, length, BLEU and ROUGE, each with an interval over resampled dialogues.

        With several bots, perplexities are also compared with that of the first, dialogue by dialogue.
        """
        from dialometer.cli.bots._shared import named_bots
        from dialometer.cli.console import progress_bar
        from dialometer.generators.corpus import load_corpus
        from dialometer.generators.measures import measure, perplexity_ratio, take_sample

        decoding = options.decoding()
        prepared = load_corpus(corpus)
        measured: dict[str, dict[str, Estimate]] = {}
        first = None
        for name, bot in named_bots(bots, device).items():
            with progress_bar() as report:
                sample = take_sample(
                    bot, prepared, decoding, split=split, n_responses=responses, seed=seed, report=report
                )
            measured[name] = measure(sample, seed=seed, n_resamples=resamples)
            if first is not None and first.n_tokens == sample.n_tokens:  # else one of them cuts long responses
                measured[name]["perplexity_ratio"] = perplexity_ratio(sample, first, seed=seed, n_resamples=resamples)
            first = first or sample
        if as_json:
            rows = {name: {key: asdict(value) for key, value in values.items()} for name, values in measured.items()}
            content = {"corpus": prepared.fingerprint, "split": split, "decoding": decoding.as_json(), "bots": rows}
            typer.echo(json.dumps(content, indent=2))
            return
        _show(measured, split, len(sample.responses), decoding.strategy)


def _show(estimates: dict[str, dict[str, Estimate]], split: str, n_responses: int, strategy: str) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.generators.measures import OVERLAP_WARNING

    table = Table("", *estimates, box=None, pad_edge=False, header_style="bold")
    for key, label in LABELS.items():
        if any(key in values for values in estimates.values()):
            table.add_row(label, *(str(values.get(key, "")) for values in estimates.values()))
    results.print(table)
    results.print(
        f"\nPerplexity over every response of people in the split '{split}'; the rest over {n_responses:,} responses "
        f"of each bot (strategy {strategy}). In brackets: 95% bootstrap intervals over dialogues.",
        soft_wrap=True,
    )
    results.print(f"[yellow]•[/] {OVERLAP_WARNING}", soft_wrap=True)
