"""A report from an archive: analysed anew, and compared with the report that the archive holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialometer.model.report import Report


def report_archive(
    archive: Path,
    target: Path,
    formats: list[str] | None,
    seed: int | None,
    resamples: int | None,
    sources: tuple[str, ...],
    step: Callable[[str], None],
) -> tuple[Report, list[Path], dict[str, Any]]:
    """The report, its files, and what came of the comparison. Settings are the archive's own unless others are given."""
    from dialometer.analysis.choose import analyse
    from dialometer.analysis.exported import load_exported
    from dialometer.design.load import load_study
    from dialometer.design.lock import verify
    from dialometer.exchange.archive import DATA, REPORT, STUDY, opened_archive
    from dialometer.report import render

    step("Unpacking")
    with opened_archive(archive) as (inside, manifest):
        study = load_study(inside / STUDY)
        verify(study, inside / STUDY)
        settings = manifest["analysis"]
        data = load_exported(study, inside / DATA, sources=sources or tuple(settings["sources"]))
        step("Analysing")
        made = analyse(
            study,
            data,
            seed=settings["seed"] if seed is None else seed,
            n_resamples=resamples or settings["n_resamples"],
        )
        step("Writing")
        files = render(made, target, formats=formats or settings["formats"])
        with TemporaryDirectory(prefix="dialometer-tables-") as name:
            render(made, Path(name), formats=["csv"])
            compared = _compare(inside / REPORT, Path(name))
    from dialometer._version import __version__

    is_other = seed is not None or resamples is not None or bool(sources)
    return made, files, {**compared, "made_with": manifest["dialometer"], "this": __version__, "is_other": is_other}


def _compare(archived: Path, made: Path) -> dict[str, Any]:
    """Tables (CSV files) byte for byte."""
    names = sorted({path.relative_to(root).as_posix() for root in (archived, made) for path in root.rglob("*.csv")})
    differing = [name for name in names if _content(archived / name) != _content(made / name)]
    return {"n_tables": len(names), "n_same": len(names) - len(differing), "differing": differing}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def tell_compared(compared: dict[str, Any]) -> None:
    """The comparison in words."""
    from rich.markup import escape

    from dialometer.cli._console import results

    n, n_same = compared["n_tables"], compared["n_same"]
    if not compared["differing"]:
        results.print(f"[green]All {n} tables are the same as in the archive, byte for byte.[/]")
        return
    results.print(f"[yellow]{n_same} of {n} tables are the same as in the archive; these differ:[/]")
    for name in compared["differing"]:
        results.print(f"  {escape(name)}")
    if compared["is_other"]:
        results.print("Other settings than the archive's were asked for, so some must.")
    elif compared["made_with"] != compared["this"]:
        results.print(f"The archive was made with dialometer {compared['made_with']}, this is {compared['this']}.")
