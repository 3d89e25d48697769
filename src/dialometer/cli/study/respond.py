"""dialometer respond: agents answer the same prompts, and a study compares their responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.options import AsJson, Seed

if TYPE_CHECKING:
    from dialometer.flow.responding import Responding, RespondingSystems


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="respond", epilog="Example: dialometer respond prompts.txt --systems systems.yaml --out items.jsonl"
    )
    def respond(
        prompts: Annotated[
            Path,
            typer.Argument(
                metavar="PROMPTS",
                help="A text with a prompt per line, or CSV or JSON with a column 'prompt'.",
                show_default=False,
            ),
        ],
        systems: Annotated[
            Path,
            typer.Option(
                "--systems", help="YAML with systems and their agents, as in a study file.", show_default=False
            ),
        ],
        out: Annotated[Path, typer.Option("--out", help="New file for the items.", show_default=False)],
        parallel: Annotated[int, typer.Option("--parallel", min=1, max=64, help="Requests at the same time.")] = 1,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Let agents answer the same prompts. Next: dialometer new compare my-study --responses items.jsonl

        Run it again after an interruption or a failure: it continues, and asks only what is missing.
        """
        from dialometer.cli.console import ProgressBar
        from dialometer.errors import DialometerError
        from dialometer.exchange.own_systems.system_outputs import read_prompts
        from dialometer.flow.responding import KEPT_SUFFIX, Responding

        if out.exists():
            raise DialometerError(f"'{out}' exists already", remedy="choose another name or remove it")
        contexts, n_hidden = read_prompts(prompts)
        declared = read_systems(systems)
        out.parent.mkdir(parents=True, exist_ok=True)
        kept = out.with_name(out.name + KEPT_SUFFIX)
        work = Responding(declared, kept, folder=systems.parent, seed=seed, n_parallel=parallel)
        with continues(kept), ProgressBar("responses") as bar:
            items = work.run(contexts, lambda n_done, n_total: bar.report("responses", n_done, n_total))
        if work.failures:
            raise DialometerError(
                f"{len(work.failures):,} of {len(contexts) * len(declared.systems):,} responses did not come; "
                f"the first: {work.failures[0]}",
                where=str(systems),
                remedy="fix that and run the command again: what came is kept",
            )
        _write(out, items, work)
        _print_result(out, items, work, n_hidden, as_json=as_json)


def read_systems(path: Path) -> RespondingSystems:
    """The systems of a YAML file, with the places of mistakes in it."""
    from pydantic import ValidationError

    from dialometer.design.positions import explain, parse_yaml
    from dialometer.errors import DialometerError, StudyError
    from dialometer.flow.agents import problems_of_systems
    from dialometer.flow.responding import RespondingSystems

    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DialometerError(
            f"cannot be read: {error.strerror}", where=str(path), remedy="name another file"
        ) from error
    source = parse_yaml(text, path.name)
    content = source.data if isinstance(source.data, dict) else {}
    # A whole study file is taken too: its systems are what counts here.
    systems = {name: content[name] for name in ("systems", "live") if name in content} or content
    try:
        declared = RespondingSystems.model_validate(systems)
    except ValidationError as error:
        raise StudyError(explain(error, RespondingSystems, source, path.name, ())) from error
    problems = problems_of_systems(declared.systems, source, path.name, path.parent)
    if problems:
        raise StudyError(problems)
    return declared


def _write(out: Path, items: list[dict[str, Any]], work: Responding) -> None:
    from dialometer._version import __version__
    from dialometer.exchange.own_systems.study_from_outputs import PROVENANCE_SUFFIX

    about = {"dialometer": __version__, "systems": work.about()}
    out.with_name(out.name + PROVENANCE_SUFFIX).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    part = out.with_name(out.name + ".part")
    part.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")
    part.replace(out)


def _print_result(out: Path, items: list[dict[str, Any]], work: Responding, n_hidden: int, *, as_json: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.flow.responding import KEPT_SUFFIX

    names = [system.name for system in work.declared.systems]
    cost = work.spent if work.declared.live.prices else None
    if as_json:
        summary = {"items": str(out), "n_items": len(items), "systems": names, "n_asked": work.n_asked, "cost": cost}
        typer.echo(json.dumps(summary, indent=2))
        return
    for item in items[:2]:
        for turn in item["context"]:
            results.print(f"[dim]{escape(turn['speaker'])}:[/] {escape(turn['text'])}", soft_wrap=True)
        for name, text in item["responses"].items():
            results.print(f"  [bold]{escape(name)}:[/] {escape(text)}", soft_wrap=True)
        results.print()
    price = f", which cost {cost:,.4f} {work.declared.live.currency}".rstrip() if cost is not None else ""
    results.print(
        f"Wrote {len(items):,} items to [bold]{escape(str(out))}[/]; {work.n_asked:,} responses were asked for{price}. "
        f"How each was made: {escape(out.name)}{KEPT_SUFFIX}.",
        soft_wrap=True,
    )
    if n_hidden:
        results.print(f"{n_hidden:,} system prompts and tool messages of the file were not sent; use system_prompt.")
    results.print(f"\nNext: [bold]dialometer new compare my-study --responses {escape(str(out))}[/]", soft_wrap=True)
