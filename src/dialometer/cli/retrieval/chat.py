"""dialometer retrieval chat: talk to an avatar, in the terminal or on a page."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson, Cache, Device
from dialometer.cli.retrieval._shared import CalibrateOn, Cost, KbOrAvatar, Lenient, OneRetriever

if TYPE_CHECKING:
    from dialometer.retrieval.avatar import Avatar, AvatarReply


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="chat", epilog="Example: dialometer retrieval chat kb.csv --web --port 8100")
    def chat(
        kb_or_avatar: KbOrAvatar,
        retriever: OneRetriever = "mixed",
        dialogues: CalibrateOn = None,
        threshold: Annotated[
            float | None,
            typer.Option(
                "--threshold", min=0, max=1, help="Lowest confidence at which it answers; calibrated by default."
            ),
        ] = None,
        cost_of_wrong: Cost = 1.0,
        web: Annotated[bool, typer.Option("--web", help="Serve a page instead of talking in the terminal.")] = False,
        host: Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8100,
        title: Annotated[str, typer.Option("--title", help="Heading of the page.")] = "",
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Talk to an avatar. It shows its confidence, and asks for another question if that is too low.

        In the terminal an empty line or Ctrl+D ends the conversation; questions may also come from a pipe, one per line.
        """
        from dialometer.cli.console import working
        from dialometer.cli.retrieval._shared import avatar_of, serve_page

        with working(device, cache) as work:
            avatar = avatar_of(
                kb_or_avatar, retriever, dialogues, threshold, work, lenient=lenient, cost_of_wrong=cost_of_wrong
            )
        if web:
            from dialometer.web.rater.avatar import create_avatar_app

            serve_page(create_avatar_app(avatar, title=title), host, port, title="Talk")
        else:
            _talk(avatar, as_json=as_json)


def _talk(avatar: Avatar, *, as_json: bool) -> None:
    from dialometer.cli.console import results
    from dialometer.model.dialogue import Turn, clean_text

    is_person = sys.stdin.isatty() and not as_json
    if is_person:
        _introduce(avatar)
    history: list[Turn] = []
    while True:
        try:
            text = results.input("[bold]You:[/] ") if is_person else sys.stdin.readline()
        except EOFError:
            break
        try:
            question = clean_text(text)
        except ValueError as error:
            results.print(f"[red]{error}[/]")
            continue
        if not question:
            break
        history.append(Turn("User", question, "user"))
        spoken = avatar.reply(history)
        history.append(Turn("Agent", spoken.text, "agent"))
        _show(question, spoken, as_json=as_json)


def _introduce(avatar: Avatar) -> None:
    from dialometer.cli.console import results

    kb = avatar.fitted.kb
    sure = (
        f"It answers at a confidence of {avatar.threshold:.0%} or more."
        if avatar.calibration
        else "It was never calibrated, so it answers everything."
    )
    results.print(
        f"{len(kb.answers)} recorded answers, found by: {avatar.fitted.options.label}. {sure}", soft_wrap=True
    )
    results.print("[dim]An empty line ends the conversation.[/]\n")


def _show(question: str, spoken: AvatarReply, *, as_json: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    if as_json:
        content = {
            "question": question,
            "reply": spoken.text,
            "answer": spoken.answer or None,
            "confidence": spoken.confidence,
            "has_declined": spoken.has_declined,
        }
        typer.echo(json.dumps(content, ensure_ascii=False))
        return
    sure = "" if spoken.confidence is None else f"  [dim]({spoken.confidence:.0%} sure)[/]"
    colour = "yellow" if spoken.has_declined else "green"
    results.print(f"[bold {colour}]Avatar:[/] {escape(spoken.text)}{sure}", soft_wrap=True)
