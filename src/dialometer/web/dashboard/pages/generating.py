"""Responses for a draft: the agents of its systems answer a list of contexts, within the budget, and can be stopped and continued.

What they said becomes items in the way of any file that is dropped: looked at first, then used (``pages/own_items.py``).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from dialometer.agents.access import AgentAccess
from dialometer.design.positions import explain, parse_yaml
from dialometer.design.versions import FOLDER
from dialometer.errors import DialometerError, StudyError
from dialometer.exchange.own_systems.system_outputs import read_prompts
from dialometer.flow.agents import problems_of_systems
from dialometer.flow.responding import KEPT_SUFFIX, Responding, RespondingSystems
from dialometer.flow.spending import CHARACTERS_PER_TOKEN
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import System
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page, plural
from dialometer.web.dashboard.jobs import Progress, job_state, refuse_twice, stop_job
from dialometer.web.dashboard.pages.making import plain_file_name, text_of
from dialometer.web.dashboard.pages.own_items import Draft, draft_of, keep_files, pasted_suffix
from dialometer.web.dashboard.translating import translated

JOB = "responses"
N_PARALLEL = 4
WORDS = 150
"""A usual length of a response, for the estimate of what all will cost."""
CHARACTERS_PER_WORD = 6


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What responses will cost by the prices of the study, where it has them."""

    n_responses: int
    cost: float | None
    currency: str
    budget: float | None


@page("/studies/{study}/responses", role="editor")
def show(dashboard: Dashboard, request: PageRequest) -> Response:
    """The systems that can answer, what it will cost, and how far it is."""
    return _page(dashboard, request)


@page("/studies/{study}/responses", role="editor", method="POST")
def start(dashboard: Dashboard, request: PageRequest) -> Response:
    """Begins to ask the agents, or continues where it was interrupted: nothing is asked or paid twice."""
    draft = draft_of(dashboard, request)
    if "stop" in request.form:
        stop_job(draft.folder, JOB)
        return dashboard.redirect(
            f"/studies/{request.study}/responses", request, translated("It stops after the requests under way.")
        )
    refuse_twice(draft.folder, JOB)  # before its contexts are exchanged
    declared = _declared(draft, request.fields.get("system", []), dashboard.studies.settings.agents)
    contexts = _contexts(draft, request)
    kept = draft.folder / f"{draft.items_file}{KEPT_SUFFIX}"
    seed = draft.data.get("seed")
    work = Responding(
        declared,
        kept,
        folder=draft.folder,
        access=dashboard.studies.settings.agents,
        seed=seed if isinstance(seed, int) else 0,
        n_parallel=N_PARALLEL,
    )

    def run(progress: Progress) -> dict[str, Any]:
        return _answered(work, contexts, progress, draft)

    dashboard.jobs.start(draft.folder, JOB, request.account.name, run)
    names = ", ".join(system.name for system in declared.systems)
    dashboard.note(request, "asked agents", f"{plural(len(contexts), 'context')}, {names}")
    return dashboard.redirect(f"/studies/{request.study}/responses", request)


def _answered(work: Responding, contexts: Sequence[dict[str, Any]], progress: Progress, draft: Draft) -> dict[str, Any]:
    """All responses; they wait among the dropped files to be looked at."""

    def report(n_done: int, n_total: int) -> None:
        progress.report(
            n_done, n_total, f"{_cost(work)}{plural(len(work.failures), 'failure') if work.failures else ''}"
        )

    items = work.run(contexts, report)
    if work.failures:
        n = f"{len(work.failures):,} of {len(contexts) * len(work.declared.systems):,} responses did not come"
        raise DialometerError(f"{n}; the first: {work.failures[0]}", remedy="fix that and continue: what came is kept")
    lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    keep_files(draft, [("responses.jsonl", lines.encode())])
    return {"n_items": len(items), "n_asked": work.n_asked, "cost": _cost(work)}


def _cost(work: Responding) -> str:
    live = work.declared.live
    return f"{work.spent:,.4f} {live.currency} spent. ".replace("  ", " ") if live.prices else ""


def _declared(draft: Draft, chosen: Sequence[str], access: AgentAccess | None) -> RespondingSystems:
    """The chosen systems with their agents, checked as in the study file."""
    source = parse_yaml(draft.text, STUDY_FILE)
    given = {name: draft.data[name] for name in ("systems", "live") if name in draft.data}
    try:
        declared = RespondingSystems.model_validate(given)
    except ValidationError as error:
        raise StudyError(explain(error, RespondingSystems, source, STUDY_FILE, ())) from error
    problems = problems_of_systems(declared.systems, source, STUDY_FILE, draft.folder, access)
    if problems:
        raise StudyError(problems)
    systems = [system for system in declared.systems if system.name in chosen and system.agent is not None]
    if not systems:
        raise DialometerError("no system was chosen that has an agent", remedy="give systems an agent, and choose some")
    return declared.model_copy(update={"systems": systems})


def _contexts(draft: Draft, request: PageRequest) -> list[dict[str, Any]]:
    """The prompts that were pasted or dropped, else the contexts of the study's items."""
    text = request.form.get("pasted", "").strip()
    given = [(name, content) for name, content in request.files.values() if content]
    if text and not given:
        given = [(f"prompts{pasted_suffix(text)}", text.replace("\r\n", "\n").encode())]
    kept = draft.folder / FOLDER / "contexts.jsonl"
    if given:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / plain_file_name(given[0][0], "prompts.txt")
            path.write_bytes(given[0][1])
            contexts = read_prompts(path)[0]
        kept.parent.mkdir(exist_ok=True)
        kept.write_text("".join(json.dumps(context) + "\n" for context in contexts), encoding="utf-8")
        return contexts
    if kept.is_file() and job_state(draft.folder, JOB).state in ("failed", "stopped", "interrupted"):
        return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    kept.unlink(missing_ok=True)
    contexts = own_contexts(draft)
    if not contexts:
        raise DialometerError("there are no contexts to answer", remedy="paste some, one per line, or choose a file")
    return contexts


def own_contexts(draft: Draft) -> list[dict[str, Any]]:
    """The items of the study without their responses."""
    contexts = []
    for line in text_of(draft.folder, draft.items_file).removeprefix("\ufeff").split("\n"):
        try:
            item = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(item, dict) and item.get("id") and _is_context(item.get("context")):
            contexts.append({key: value for key, value in item.items() if key != "responses"})
    return contexts


def _is_context(turns: Any) -> bool:
    return isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns)


def estimate(
    contexts: Sequence[dict[str, Any]], systems: Sequence[System], declared: RespondingSystems
) -> CostEstimate:
    """By the length of the contexts and a usual length of responses."""
    live = declared.live
    n_in = (
        sum(len(str(turn.get("text", ""))) for context in contexts for turn in context["context"])
        // CHARACTERS_PER_TOKEN
    )
    n_out = len(contexts) * WORDS * CHARACTERS_PER_WORD // CHARACTERS_PER_TOKEN
    models = [str(system.agent.options.get("model", "")) for system in systems if system.agent]
    priced = [live.prices[model].cost(n_in, n_out) for model in models if model in live.prices]
    return CostEstimate(len(contexts) * len(systems), sum(priced) if priced else None, live.currency, live.budget)


def _page(dashboard: Dashboard, request: PageRequest) -> Response:
    draft = draft_of(dashboard, request)
    study, _ = dashboard.studies.checked(request.study)
    problem, declared, able = None, None, []
    try:
        declared = _declared(draft, draft.systems, dashboard.studies.settings.agents)
        able = declared.systems
    except StudyError as error:
        problem = error
    except DialometerError:
        pass  # no system has an agent yet, which the page says
    contexts = own_contexts(draft)
    return dashboard.show(
        "responses.html",
        request,
        study=request.study,
        spec=study.spec if study else None,
        kind=draft.kind,
        systems=draft.systems,
        able=able,
        problem=problem,
        n_contexts=len(contexts),
        estimate=estimate(contexts, able, declared) if declared else None,
        words=WORDS,
        job=job_state(draft.folder, JOB),
        tab="form",
    )
