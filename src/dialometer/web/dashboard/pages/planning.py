"""Before a draft is frozen: the power of its declared comparison, simulated on request, and the summary of what freezing fixes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import Response

from dialometer.design.load import load_study
from dialometer.design.protocol import protocol
from dialometer.design.templates import template_folder, template_names
from dialometer.design.versions import hash_of
from dialometer.errors import DialometerError
from dialometer.flow.study_check import without_errors
from dialometer.model.file_names import STUDY_FILE
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.jobs import JobState, Progress, Stopped, job_state, stop_job
from dialometer.web.dashboard.pages.making import editable_folder

JOB = "power"
N_SIMULATIONS = 100
_RATERS = re.compile(r"\d{1,5}(\s*,\s*\d{1,5}){0,7}")


@page("/studies/{study}/power", role="editor", method="POST")
def power(dashboard: Dashboard, request: PageRequest) -> Response:
    """Begins or stops the simulation; its result is shown in the step of the analysis."""
    folder = editable_folder(dashboard, request)
    where = f"/studies/{request.study}/form/analysis"
    if "stop" in request.form:
        stop_job(folder, JOB)
        return dashboard.redirect(where, request)
    study = without_errors(*dashboard.studies.checked(request.study))
    if not study.spec.analysis.comparisons:
        raise DialometerError("the study declares no comparison", remedy="add one to the analysis first")
    effect, raters = request.form.get("effect", "0.5").strip(), request.form.get("raters", "").strip()
    if not re.fullmatch(r"\d{1,2}(\.\d{1,3})?", effect) or not _RATERS.fullmatch(raters):
        raise DialometerError(
            "this is not an effect, or not a list of numbers of raters", remedy="write for example 0.5, and 20, 40, 80"
        )
    options = ["--effect", effect, "--raters", raters, "--simulations", str(N_SIMULATIONS), "--processes", "1"]
    content = _content(folder)

    def run(progress: Progress) -> dict[str, Any]:
        return {**_simulated(folder, options, progress), "content": content, "tried": raters}

    dashboard.jobs.start(folder, JOB, request.account.name, run)
    dashboard.note(request, "simulated power", f"effect {effect}, raters {raters}")
    return dashboard.redirect(where, request)


def _simulated(folder: Path, options: list[str], progress: Progress) -> dict[str, Any]:
    """``dialometer power`` in a process of its own, so that raters' pages never wait for statistics."""
    with tempfile.TemporaryDirectory(prefix="dialometer-power-") as out:
        command = [
            sys.executable,
            "-m",
            "dialometer",
            "power",
            str(folder),
            *options,
            "--out",
            out,
            "--json",
            "--progress",
        ]
        plain = {**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=plain) as process:
            try:
                problem = "the simulation failed"
                for line in process.stderr or ():
                    problem = line.removeprefix("error:").strip() if line.startswith("error:") else problem
                    n = re.match(r"([\d,]+) studies simulated", line)
                    if n:
                        progress.report(int(n[1].replace(",", "")), 0, line.strip())
                    elif progress.stopped.is_set():
                        raise Stopped
                output = process.stdout.read() if process.stdout else ""
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise DialometerError(problem)
    result: dict[str, Any] = json.loads(output)
    return result


def power_state(folder: Path) -> tuple[JobState, bool]:
    """How far the simulation is, and whether the study or its items have changed since."""
    state = job_state(folder, JOB)
    return state, state.result.get("content") not in (None, _content(folder))


@cache
def _texts_of_templates() -> frozenset[str]:
    """Every text that raters read in a template; what an empty study begins with is among them."""
    return frozenset(text for name in template_names() for text in load_study(template_folder(name)).texts.values())


def _content(folder: Path) -> str:
    """What power depends on: the study file and the files with items."""
    return hash_of(b"".join(path.read_bytes() for path in (folder / STUDY_FILE, *sorted(folder.glob("*.jsonl")))))


@page("/studies/{study}/freeze", role="editor")
def freeze_page(dashboard: Dashboard, request: PageRequest) -> Response:
    """What freezing fixes, to be read before it is done."""
    folder = editable_folder(dashboard, request)
    study, problems = dashboard.studies.checked(request.study)
    n_errors = sum(problem.severity == "error" for problem in problems)
    is_whole = study is not None and not n_errors
    power, is_old = power_state(folder)
    return dashboard.show(
        "freeze.html",
        request,
        study=request.study,
        spec=study.spec if study else None,
        whole=study if is_whole else None,
        numbers=protocol(study) if study and is_whole else None,
        problems=problems,
        n_errors=n_errors,
        unchanged=[name for name, text in study.texts.items() if text in _texts_of_templates()] if study else [],
        power=power,
        is_power_old=is_old,
        tab="freeze",
    )
