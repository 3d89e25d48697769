"""dialometer recruit: invitations, links, and studies on platforms with an API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database, StudyDir, open_study
from dialometer.cli.recruit._platform import platform_commands
from dialometer.model.file_names import STUDY_FILE


def _address(text: str) -> str:
    """A whole address; half of one would be sent to everybody."""
    from urllib.parse import urlsplit

    from dialometer.errors import DialometerError

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DialometerError(
            f"'{text}' is not an address that raters can open",
            where="--url",
            remedy="such as https://study.example.org",
        )
    return text


Address = Annotated[
    str,
    typer.Option(
        "--url",
        help="Address under which raters reach the study.",
        show_default=False,
        metavar="URL",
        callback=_address,
    ),
]


class RecruitGroup(TyperGroup):
    """Finds the commands of platforms of other packages when they are named; nothing else waits for them to load."""

    def get_command(self, context: Any, name: str) -> Any:
        command = super().get_command(context, name)
        if command is not None:
            return command
        from dialometer.recruit.platforms import PLATFORMS

        platform = PLATFORMS.get(name) if name in PLATFORMS else None
        if platform is None or platform.api is None:
            return None
        return typer.main.get_command(platform_commands(name, platform.label, platform.api.token_variable))


def add_to(app: typer.Typer) -> None:
    """Adds the group of verbs."""
    recruit = typer.Typer(
        cls=RecruitGroup,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        epilog="Example: dialometer recruit prolific draft my-study --url https://study.example.org",
    )
    recruit.add_typer(platform_commands("prolific", "Prolific", "PROLIFIC_TOKEN"), name="prolific")
    recruit.command(
        name="invite", epilog="Example: dialometer recruit invite my-study people.csv --url https://study.example.org"
    )(invite)
    recruit.command(
        name="links", epilog="Example: dialometer recruit links my-study people.csv --url https://study.example.org"
    )(links)
    recruit.command(name="link", epilog="Example: dialometer recruit link my-study --url https://study.example.org")(
        link
    )
    recruit.command(
        name="adjudicators",
        epilog="Example: dialometer recruit adjudicators my-study Ana Ben --url https://study.example.org",
    )(adjudicators)
    app.add_typer(recruit, name="recruit", help="Bring raters to a study: links, invitations, other sites, Prolific.")


def invite(
    folder: StudyDir,
    people: Annotated[
        Path, typer.Argument(metavar="PEOPLE.CSV", help="One line per person, with a header.", show_default=False)
    ],
    url: Address,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the list with links goes; not into DIR.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give each listed person a personal link. The study learns only the tokens in the links, not the people.

    Run it again with a longer list, or with the list that it wrote: existing links stay valid.
    """
    from dialometer.cli.console import results
    from dialometer.errors import DialometerError
    from dialometer.recruit.platforms.invite import INVITATIONS_FILE, TOKEN_COLUMN, add_invitations
    from dialometer.recruit.platforms.invite import invite as make

    study = open_study(folder)
    if study.spec.recruitment.platform != "invite":
        raise DialometerError(
            f"the study recruits by '{study.spec.recruitment.platform}'",
            where=STUDY_FILE,
            remedy="set recruitment: {platform: invite}",
        )
    target = out or people.with_name(f"{people.stem}-links.csv")
    if target.resolve().is_relative_to(folder.resolve()):
        raise DialometerError(
            "the list says who has which link", where=str(target), remedy="keep it outside the study's folder (--out)"
        )
    made = make(people, url)
    column = made.header.index(TOKEN_COLUMN)
    n_added = add_invitations(folder, {row[column] for row in made.rows})
    try:
        target.write_text(made.as_csv(), encoding="utf-8")
    except OSError as error:
        raise DialometerError(f"the list cannot be written: {error.strerror}", where=str(target)) from error
    log_action(folder, "", "made links for raters", f"{n_added:,}")
    if as_json:
        summary = {"people": len(made.rows), "new": made.n_new, "added": n_added, "list": str(target)}
        typer.echo(json.dumps(summary, indent=2))
        return
    results.print(f"{len(made.rows):,} people have a link, {made.n_new:,} of them a new one: [bold]{target}[/]")
    results.print(
        f"{n_added:,} invitations were added to {folder / INVITATIONS_FILE}; a running server accepts them at once."
    )
    results.print("Keep the list: it is the only place that says who has which link.")


def links(
    folder: StudyDir,
    people: Annotated[
        Path, typer.Argument(metavar="PEOPLE.CSV", help="One line per person, with a header.", show_default=False)
    ],
    url: Address,
    column: Annotated[
        str, typer.Option("--column", help="Column with the raters' names; the first by default.", show_default=False)
    ] = "",
    days: Annotated[int, typer.Option("--days", min=0, help="Days that the links are valid; 0 for no limit.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the list with links goes; not into DIR.")
    ] = None,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Sign a link for each listed person, so that nobody else can take part under their name.

    Raters have the names of the list. With `recruitment: {signed: true}`, nobody can take part without such a
    link. Links are signed with a secret in the study's database: run this where the server's database is.
    """
    import time

    from dialometer.cli.console import results
    from dialometer.cli.options import open_store
    from dialometer.errors import DialometerError
    from dialometer.flow.engine import now_ms
    from dialometer.recruit.platforms import platform_of
    from dialometer.recruit.signed_links import signed_list
    from dialometer.storage.access.secrets import SIGNING

    recruitment = open_study(folder).spec.recruitment
    parameter = platform_of(recruitment).parameters.get("rater", "")
    if not parameter:
        raise DialometerError(
            f"the links of the platform '{recruitment.platform}' name nobody",
            where=STUDY_FILE,
            remedy="set recruitment: {platform: redirect}",
        )
    target = out or people.with_name(f"{people.stem}-links.csv")
    if target.resolve().is_relative_to(folder.resolve()):
        raise DialometerError(
            "anyone who has a link can take part in its name",
            where=str(target),
            remedy="keep the list outside the study's folder (--out)",
        )
    with open_store(folder, database) as store:
        key = store.secrets.get(SIGNING, now_ms())
    expires = str(int(time.time()) + days * 86_400) if days else ""
    content, n_people = signed_list(
        people, url, key=key, platform=recruitment.platform, parameter=parameter, column=column, expires=expires
    )
    try:
        target.write_text(content, encoding="utf-8")
    except OSError as error:
        raise DialometerError(f"the list cannot be written: {error.strerror}", where=str(target)) from error
    log_action(folder, database, "made links for raters", f"{n_people:,}")
    if as_json:
        summary = {"people": n_people, "list": str(target), "days": days or None, "is_required": recruitment.signed}
        typer.echo(json.dumps(summary, indent=2))
        return
    results.print(f"{n_people:,} people have a signed link: [bold]{target}[/]")
    if not recruitment.signed:
        results.print("The study still lets in others: set [bold]recruitment: {signed: true}[/] in study.yaml.")


def adjudicators(
    folder: StudyDir,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of the adjudicators.", show_default=False)],
    url: Address,
    days: Annotated[int, typer.Option("--days", min=0, help="Days that the links are valid; 0 for no limit.")] = 0,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Give adjudicators their links, with which they settle what raters disagree about.

    The same link works again later, for new disagreements. Links are signed with a secret in the study's database: run this
    where the server's database is.
    """
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.cli.options import open_store
    from dialometer.errors import DialometerError
    from dialometer.flow.adjudication import disputes_of, link_of
    from dialometer.flow.engine import now_ms
    from dialometer.storage.access.secrets import SIGNING

    study = open_study(folder)
    if study.spec.adjudication is None:
        raise DialometerError(
            "the study has no adjudication", where=STUDY_FILE, remedy="declare it, such as adjudication: {raters: 2}"
        )
    expires = str(now_ms() // 1000 + days * 86_400) if days else ""
    with open_store(folder, database) as store:
        key = store.secrets.get(SIGNING, now_ms())
        n_waiting = sum(dispute.state == "waiting" for dispute in disputes_of(study, store))
    made = {name: link_of(key, url, name, expires) for name in dict.fromkeys(names)}
    log_action(folder, database, "made links for adjudicators", ", ".join(made))
    if as_json:
        typer.echo(json.dumps({"links": made, "waiting": n_waiting}, indent=2, ensure_ascii=False))
        return
    for name, address in made.items():
        results.print(f"{escape(name)}  [bold]{escape(address)}[/]", soft_wrap=True)
    results.print(f"{n_waiting:,} item{' waits' if n_waiting == 1 else 's wait'} to be settled.")


def link(folder: StudyDir, url: Address = "http://127.0.0.1:8000", as_json: AsJson = False) -> None:
    """Show what to enter on the site that raters come from: the link, its parameters, the codes and the return address."""
    from rich.markup import escape

    from dialometer.cli.console import results
    from dialometer.recruit.platforms import platform_of
    from dialometer.recruit.qualifying import met_qualifications

    spec = open_study(folder).spec
    recruitment = spec.recruitment
    platform = platform_of(recruitment)
    suffix = platform.link or "".join(
        f"{'&' if n else '?'}{name}=…" for n, name in enumerate(platform.parameters.values())
    )
    entries: dict[str, Any] = {
        "platform": recruitment.preset or recruitment.platform,
        "link": f"{url.rstrip('/')}/{suffix}",
        "rater": platform.parameters.get("rater", ""),
        "kept": sorted(platform.kept_parameters),
        "completion_code": recruitment.completion_code,
        "screen_out_code": recruitment.screen_out_code,
        "return_url": platform.return_url,
        "screen_out_url": recruitment.screen_out_url or platform.return_url,
    }
    if platform.qualifications:
        entries["filters"] = dict(platform.qualifications)
    entries["qualifications"] = [
        {"field": met.field, "words": met.words, "how": met.how, "is_met": met.is_met}
        for met in met_qualifications(spec, platform)
    ]
    if as_json:
        typer.echo(json.dumps(entries, indent=2, ensure_ascii=False))
        return
    results.print(f"Platform     {escape(str(entries['platform']))}")
    results.print(f"Raters open  [bold]{escape(str(entries['link']))}[/]", soft_wrap=True)
    if entries["rater"]:
        kept = f"; also kept: {', '.join(entries['kept'])}" if entries["kept"] else ""
        results.print(
            f"A rater is known by the parameter {escape(str(entries['rater']))}{escape(kept)}", soft_wrap=True
        )
    else:
        results.print("Everybody who opens it is a new rater.")
    for label, key in (("Finished", "completion"), ("Screened-out", "screen_out")):
        code, address = entries[f"{key}_code"], entries["return_url" if key == "completion" else "screen_out_url"]
        ways = [f"see the code {code}"] if code else []
        ways += [f"are sent to {address}"] if address else []
        results.print(f"{label} raters {escape(' and '.join(ways) or 'see a last page')}", soft_wrap=True)
    for met in entries["qualifications"]:
        results.print(f"Qualification: {escape(met['words'])} ({escape(met['how'])})", soft_wrap=True)
    if platform.qualifications and not entries["qualifications"]:
        known = ", ".join(platform.qualifications)
        results.print(f"{platform.label} can filter raters by {known}: give them under recruitment.qualifications.")
