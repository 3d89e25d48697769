"""dialometer check: every problem of a study at once, then its protocol in numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson, StudyDir
from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from dialometer.design.pairs import PairReport
    from dialometer.design.protocol import Protocol
    from dialometer.errors import Problem
    from dialometer.flow.agent_calls import AgentCall
    from dialometer.model.study import Study


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="check", epilog="Example: dialometer check my-study. Exit code 1 when there are errors.")
    def check(
        folder: StudyDir,
        as_json: AsJson = False,
        with_diff: Annotated[
            bool, typer.Option("--diff/--no-diff", help="Show the differences of controlled pairs.")
        ] = True,
        calls_agents: Annotated[
            bool, typer.Option("--call-agents", help="Send each agent one message and show what comes back.")
        ] = False,
    ) -> None:
        """List every problem of a study with file, line and remedy, then its protocol: conditions, raters, minutes, cost."""
        from dialometer.flow.study_check import check_all

        study, problems = check_all(folder)
        calls: list[AgentCall] = []
        if calls_agents and study is not None and not any(problem.severity == "error" for problem in problems):
            from dialometer.flow.agent_calls import call_agents

            calls = list(call_agents(study))
            problems += [call.problem for call in calls if call.problem is not None]
        errors = [problem for problem in problems if problem.severity == "error"]
        if as_json:
            from dialometer.design.protocol import protocol

            summary = asdict(protocol(study)) if study and not errors else None
            typer.echo(
                json.dumps(
                    {
                        "problems": [asdict(p) for p in problems],
                        "protocol": summary,
                        **({"agents": [asdict(call) for call in calls]} if calls_agents else {}),
                    },
                    indent=2,
                    ensure_ascii=False,
                )
            )
        else:
            if calls_agents:
                _show_calls(calls)
            _show(study, problems, folder, with_diff=with_diff, is_unchecked=not calls)
        if errors:
            raise typer.Exit(1)


def _show_calls(calls: list[AgentCall]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    if not calls:
        results.print("No agent was called: no system of this study has one, or the study has errors.\n")
    for call in calls:
        results.print(f"[bold]{escape(call.system)}[/] ({escape(call.agent)})", highlight=False)
        if call.is_person:
            results.print("  answered by a person; not called")
            continue
        results.print(f"  sent      {escape(call.message)}", soft_wrap=True, highlight=False)
        if call.problem is not None:
            results.print("  [red]no response[/], see below")
        else:
            results.print(f"  response  {escape(call.reply)}", soft_wrap=True, highlight=False)
            results.print(f"  {escape(_about(call))}", soft_wrap=True, highlight=False)
        if call.keys:
            results.print(f"  keys      {escape(', '.join(call.keys))}", soft_wrap=True, highlight=False)
    if calls:
        results.print()


def _about(call: AgentCall) -> str:
    """Times, model and tokens in a line."""
    details = call.details
    parts = [f"{details['latency_s']:.2f} s"]
    if details["first_token_s"] is not None and details["first_token_s"] < details["latency_s"]:
        parts[0] += f", first word after {details['first_token_s']:.2f} s"
    if details.get("model"):
        parts.append(f"model {details['model']}")
    usage = details.get("usage") or {}
    if "prompt_tokens" in usage and "completion_tokens" in usage:
        parts.append(f"{usage['prompt_tokens']:,} tokens read, {usage['completion_tokens']:,} written")
    return "took      " + " · ".join(parts)


def _show(
    study: Study | None, problems: list[Problem], folder: Path, *, with_diff: bool, is_unchecked: bool = True
) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.design.pairs import inspect_pair
    from dialometer.design.protocol import protocol
    from dialometer.model.item import PairItem

    for problem in problems:
        colour = "red" if problem.severity == "error" else "yellow"
        field = f" [dim]({escape(problem.field)})[/]" if problem.field else ""
        results.print(
            f"[bold]{escape(problem.where)}[/]: [{colour}]{problem.severity}[/]: {escape(problem.message)}{field}",
            soft_wrap=True,
        )
        if problem.remedy:
            results.print(f"    → {escape(problem.remedy)}", soft_wrap=True)
    n_errors = sum(problem.severity == "error" for problem in problems)
    if n_errors or study is None:
        results.print(
            f"\n[red]{n_errors} error{'s' if n_errors != 1 else ''}[/]{', nothing else was checked' if is_unchecked else ''}. "
            "Fix these, then check again."
        )
        return
    if study.spec.items.pairs == "controlled" and with_diff:
        for item in study.items:
            if isinstance(item, PairItem):
                _show_pair(inspect_pair(item))
    _show_protocol(study, protocol(study))
    _print_next(folder)


def _show_pair(report: PairReport) -> None:
    from rich.markup import escape
    from rich.text import Text

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_signed

    item = report.item
    results.print(
        f"\n[bold]{escape(item.id)}[/]  {report.n_words_a} → {report.n_words_b} words "
        f"({write_signed(100 * report.length_change, 0)}%)",
        highlight=False,
    )
    for index, segments in report.differences:
        line = Text(f"  {index + 1} {item.a.turns[index].speaker}: ", style="dim")
        for segment in segments:
            if segment.kind == "equal":
                line.append(segment.a)
            elif results.no_color or not results.is_terminal:
                line.append(f"[-{segment.a}-]" if segment.a else "")
                line.append(f"{{+{segment.b}+}}" if segment.b else "")
            else:
                line.append(segment.a, style="red strike")
                line.append(segment.b, style="green")
        results.print(line, soft_wrap=True)


def _show_protocol(study: Study, numbers: Protocol) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.model.item import KIND_WORDS
    from dialometer.model.recruitment import money

    def known(value: object, unit: str = "") -> str:
        return (
            "not fixed by the study"
            if value is None
            else f"{value:,}{unit}"
            if isinstance(value, int)
            else f"{value}{unit}"
        )

    table = Table(show_header=False, box=None, pad_edge=False)
    spec = study.spec
    scales = ", ".join(f"{c.label or c.name} ({spec.scales[c.scale].describe()})" for c in spec.criteria)
    table.add_row("Conditions", escape("\n".join(numbers.conditions)))
    if numbers.shown:
        table.add_row("Raters see", escape("\n".join(numbers.shown)))
    table.add_row("Systems", escape(", ".join(system.label or system.name for system in spec.systems)))
    table.add_row("Criteria", escape(scales))
    table.add_row("Items", f"{numbers.n_items:,} ({KIND_WORDS[spec.items.kind]})")
    table.add_row(
        "Items per rater",
        "as many as the rater likes"
        if spec.design.items_per_rater == "unlimited"
        else known(numbers.n_items_per_rater),
    )
    if spec.design.systems_per_item is not None:
        table.add_row("Systems per item", f"{spec.design.systems_per_item:,} for each rater")
    if spec.design.assignment.rule == "adaptive":
        table.add_row("Assignment", f"adaptive, {spec.design.assignment.floor:.0%} of the draws spread evenly")
    table.add_row("Judgments per rater", known(numbers.n_judgments_per_rater))
    table.add_row("Raters needed", known(numbers.n_raters))
    if numbers.qualifications:
        table.add_row("Qualifications", "\n".join(numbers.qualifications))
    table.add_row("Judgments in all", known(numbers.n_judgments))
    minutes = f"{numbers.minutes_per_rater:g}" + ("" if spec.recruitment.minutes else " (estimated from the texts)")
    table.add_row("Minutes per rater", minutes)
    if numbers.cost_cents is not None and numbers.pay_per_hour_cents is not None:
        table.add_row(
            "Cost",
            f"{money(numbers.cost_cents, numbers.currency)}, {numbers.pay_per_hour_cents / 100:.2f} an hour",
        )
    verdict = ": no errors" if spec.title[-1].isalnum() else " No errors"
    results.print(f"\n[bold]{escape(spec.title)}[/]{verdict}\n")
    results.print(table)


def _print_next(folder: Path) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    shown = escape(str(folder))
    steps = {"status": "for how far it has come", "report": "for the answer so far"}
    if not (folder / DATABASE_FILE).exists():
        steps = {"simulate": "to try it with simulated raters", "serve": "to open it to raters"}
    next_steps = (f"[bold]dialometer {verb} {shown}[/] {why}" for verb, why in steps.items())
    results.print("\nNext: " + "\n      ".join(next_steps), soft_wrap=True)
