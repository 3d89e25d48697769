"""A study as one document for an ethics board: what raters read and are asked, in every condition, and what is kept of them.

It can be printed, and read by a link without an account. The link belongs to one study, ends by itself and can be revoked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dialometer.design.protocol import protocol
from dialometer.exchange.exports.inventory import ANSWERS, EXPLAINED, IDENTIFIERS, NOT_STORED, STUDY, free_texts
from dialometer.flow.engine import now_ms
from dialometer.flow.language import is_right_to_left, own_name
from dialometer.model.study import Study
from dialometer.recruit.platforms import platform_of
from dialometer.storage.access.shared_reports import SharedReport
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.login import DeadLink
from dialometer.web.dashboard.pages.preview import Preview
from dialometer.web.dashboard.translating import speaking, translated
from dialometer.web.server.media import study_media

VALID_DAYS = 60
DAY_MS = 86_400_000
ABOUT_PEOPLE = frozenset(
    {"people", "sessions", "judgments", "answers", "visits", "findings", "drafts", "chat_turns", "withdrawals"}
)
"""What a board asks about; the other tables hold counts, settings and accounts of experimenters."""
WORDS = {
    "pre": "questions before",
    "post": "questions after",
    "comprehension": "questions about the instructions",
    "attention": "attention check",
    "more": "the offer to continue",
    "chat": "conversation",
}
_MAIN = re.compile(r"<main\b[^>]*>(.*)</main>", re.DOTALL)
_NOT_SEEN = re.compile(r'<input type="hidden"[^>]*>|\s(?:form|action|data-[\w-]+)="[^"]*"|\shref="/[^"]*"')
"""What a reader does not see: fields with times and secrets, and where answers and links inside the study would go."""
_FOLDED = re.compile(r"<details(?![^>]*\sopen\b)")
_NAMES = re.compile(r'\s(id|for|list|name|aria-(?:labelledby|describedby|controls|owns))="([^"]*)"')
"""Names inside a screen, which several screens of the document would otherwise share."""
_HEADING = re.compile(r"(</?h)([1-6])\b")
_LANDMARK = re.compile(r"<(/)?(?:section|aside)\b(?(1)>)")
N_ABOVE = 3
"""Levels of headings of the document itself; those of a screen come below."""


@dataclass(frozen=True, slots=True)
class ReviewScreen:
    """What raters see at one place of the study, and in which conditions."""

    title: str
    conditions: tuple[str, ...]
    content: Markup


def screens(study: Study, language: str = "", root: str = "") -> list[ReviewScreen]:
    """Every kind of screen of every condition, once; of items the first of each block, since the others differ in content.

    They are in the order in which raters see them, with the forms of a screen one after the other. Images and recordings are
    under ``root``.
    """
    found: dict[tuple[str, str], list[str]] = {}
    order: list[str] = []
    for cell, condition in enumerate(study.cells):
        preview, place = Preview(study, cell, language), 0
        for title, step in _steps(preview):
            if title not in order:
                order.insert(place, title)
            place = order.index(title) + 1
            main = _MAIN.search(preview.page(step, root=root))
            content = _unfolded(_NOT_SEEN.sub("", main[1] if main else ""))
            found.setdefault((title, content), []).append(study.cell_label(condition))
    in_order = sorted(found.items(), key=lambda screen: order.index(screen[0][0]))
    # A page that was drawn here: everything in it is escaped.
    return [
        ReviewScreen(title, tuple(cells), Markup(_with_own_names(content, number)))  # nosec B704
        for number, ((title, content), cells) in enumerate(in_order, start=1)
    ]


def _unfolded(content: str) -> str:
    """A screen with everything open that raters can open: on paper nothing can be."""
    return _FOLDED.sub("<details open", content).replace('class="cutting"', 'class="cutting is-whole"')


def _with_own_names(content: str, number: int) -> str:
    """A screen whose labels name its own fields, and whose buttons of one answer are a group of their own."""

    def own(name: re.Match[str]) -> str:
        return f' {name[1]}="{" ".join(f"screen-{number}-{word}" for word in name[2].split())}"'

    below = _HEADING.sub(lambda tag: f"{tag[1]}{min(6, int(tag[2]) + N_ABOVE)}", content)
    # Several screens have parts of the same name: they are groups here, and no landmarks of the document.
    grouped = _LANDMARK.sub(lambda tag: "</div>" if tag[1] else '<div role="group"', below)
    return _NAMES.sub(own, grouped)


def _steps(preview: Preview) -> Iterator[tuple[str, int]]:
    """The screens to show, with what they are; of items one for each block and set of criteria."""
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    for number, step in enumerate(preview.flow.path(preview.session).steps):
        kind, block = translated(WORDS.get(step.kind, step.kind)), ""
        if step.task is not None:
            block = preview.study.items_by_id[step.task.item_id].block
            kind = translated("practice items") if step.task.is_practice else kind
            key = (kind, block, step.criteria)
            if key in seen:
                continue
            seen.add(key)
        yield f"{kind[:1].upper()}{kind[1:]}{f' ({block})' if block else ''}", number
    yield translated("The end"), preview.n_steps


@page("/studies/{study}/review", role="viewer")
def review(dashboard: Dashboard, request: PageRequest) -> Response:
    """The document, for those who are signed in; editors can make a link to it."""
    return HTMLResponse(document(dashboard, request.study, request, language=request.query.get("language", "")))


@page("/studies/{study}/review", role="editor", method="POST")
def make_link(dashboard: Dashboard, request: PageRequest) -> Response:
    """A link for somebody without an account."""
    token = secrets.token_urlsafe(32)
    dashboard.shared.add_review(token, request.study, request.account.name, request.at_ms)
    dashboard.note(request, "made a link for reviewers")
    link = f"{request.origin}{dashboard.root}/dashboard/review/{token}"
    return HTMLResponse(document(dashboard, request.study, request, link=link))


@page("/studies/{study}/review/{number:number}/revoke", role="editor", method="POST")
def revoke(dashboard: Dashboard, request: PageRequest) -> Response:
    """Ends a link."""
    number = int(request.params["number"])
    dashboard.shared.revoke(request.study, number, request.account.name, request.at_ms)
    dashboard.note(request, "revoked a link for reviewers", f"link {number}")
    return dashboard.redirect(f"/studies/{request.study}/review", request, translated("The link no longer works."))


def working_links(dashboard: Dashboard, request: PageRequest) -> list[SharedReport]:
    """The links of a study that open the document now."""
    links = dashboard.shared.of_study(request.study, for_review=True)
    return [link for link in links if link.revoked_at_ms is None and not has_ended(link, request.at_ms)]


def has_ended(link: SharedReport, at_ms: int) -> bool:
    """Whether a link is too old."""
    return at_ms > link.at_ms + VALID_DAYS * DAY_MS


def document(
    dashboard: Dashboard, name: str, request: PageRequest | None, link: str = "", language: str = "", token: str = ""
) -> str:
    """The whole document in one of the study's languages; without a request it is for somebody who came by the link of a token.

    Where a language is chosen, the words around the study's own are in it too, if the dashboard has it.
    """
    place = f"/review/{token}" if request is None else f"/studies/{name}/preview/0/0"
    root = f"{dashboard.root}/dashboard{place}"
    if language in dashboard.studies.loaded(name).spec.languages:
        with speaking(language):
            return _document(dashboard, name, request, link, language, root)
    return _document(dashboard, name, request, link, "", root)


def _document(dashboard: Dashboard, name: str, request: PageRequest | None, link: str, language: str, root: str) -> str:
    source = dashboard.studies.loaded(name)
    study = source.in_language(language or source.spec.language)
    days = {IDENTIFIERS: study.spec.privacy.identifiers_days, ANSWERS: study.spec.privacy.answers_days, STUDY: None}
    return dashboard.templates.render(
        "review.html",
        request,
        study=name,
        spec=study.spec,
        numbers=protocol(study),
        platform=platform_of(study.spec.recruitment).label,
        screens=screens(source, language, root),
        language=language or source.spec.language,
        language_name=own_name(language or source.spec.language),
        languages={tag: own_name(tag) for tag in source.spec.languages},
        direction="rtl" if is_right_to_left(language or source.spec.language) else "ltr",
        n_conditions=len(study.cells),
        kept=[(one.what, one.why, days[one.until]) for one in EXPLAINED if one.table in ABOUT_PEOPLE],
        not_kept=NOT_STORED,
        free_texts=_own_words(study),
        link=link,
        links=working_links(dashboard, request) if request is not None and request.may("editor") else (),
        valid_days=VALID_DAYS,
        is_frozen=dashboard.studies.folders.is_frozen(name),
        is_open=dashboard.studies.is_open(name),
    )


def _own_words(study: Study) -> list[str]:
    """What raters answer in their own words, as it is asked."""
    spec = study.spec
    asked = {
        question.name: question.text
        for question in (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire)
    }
    asked |= {criterion.name: criterion.question for criterion in spec.criteria}
    asked |= {criterion.reason_name: f"{criterion.question} ({translated('Reason')})" for criterion in spec.criteria}
    talks = [translated(WORDS["chat"])] if spec.items.kind in ("chat", "arena") else []
    return [*(asked.get(name) or name for name in free_texts(study)), *talks]


def public_routes(dashboard: Dashboard) -> list[Route]:
    """The address that reviewers are given, and the images and recordings below it."""

    async def read(request: Request) -> Response:
        language = request.query_params.get("language", "")
        return await run_in_threadpool(_read, request.path_params["token"][:100], language)

    def _read(token: str, language: str) -> Response:
        page = document(dashboard, _study_of(dashboard, token), None, language=language, token=token)
        return HTMLResponse(page, headers=HEADERS)

    async def media(request: Request) -> Response:
        return await run_in_threadpool(_media, request.path_params["token"][:100], request.path_params["file"])

    def _media(token: str, file: str) -> Response:
        return study_media(dashboard.studies.loaded(_study_of(dashboard, token))).response(file)

    return [
        Route("/dashboard/review/{token}", read, methods=["GET"]),
        Route("/dashboard/review/{token}/media/{file}", media, methods=["GET"]),
    ]


def _study_of(dashboard: Dashboard, token: str) -> str:
    """The study whose document a link opens; raises where the link does not work."""
    link = dashboard.shared.review(token)
    if link is None:
        raise DeadLink("this link does not work, or no longer works", remedy="copy it whole, or ask for a new one")
    if has_ended(link, now_ms()):
        raise DeadLink("this link has ended", remedy="ask for a new one")
    return link.study


HEADERS = {"x-robots-tag": "noindex, nofollow, noarchive", "referrer-policy": "no-referrer"}
"""No search engine keeps the page, and no other site learns its address."""
