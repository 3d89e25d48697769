r"""The appendix as a LaTeX document of its own: what a page folds away, complete, for the supplement of a paper."""

from __future__ import annotations

from collections.abc import Callable

from dialometer.model.report import Figure, Report, Section, Table, Turns
from dialometer.report.drawing import DrawingError
from dialometer.report.numbers import APPENDIX, CONFIRMATORY, EXPLORATORY, as_sentence, reproduce_lines
from dialometer.report.render import Rendering

Escape = Callable[[str], str]

_PREAMBLE = (
    "% Compile in this folder with pdfLaTeX. It knows Latin letters only and shows others by their code: for those, use LuaLaTeX or",
    "% XeLaTeX and a font that has them.",
    r"\documentclass[a4paper]{article}",
    r"\usepackage[margin=2cm]{geometry}",
    r"\usepackage{booktabs,graphicx,iftex}",
    r"\ifPDFTeX\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{textcomp}\fi",
    r"\ifPDFTeX\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}\fi",
)


_FIRST_UNKNOWN = 0x180
_KNOWN = frozenset("ȘșȚț–—‘’‚“”„†‡•…‰‹›€™")
"""What pdfLaTeX knows beyond the Latin letters of Europe."""


def latex_appendix(rendering: Rendering, escape: Escape, tables: str) -> str:
    """The whole document; its tables are the files in ``tables/``, its figures those in ``figures/`` where they are written.

    ``tables`` is the text of those files, to know which characters the document must explain to pdfLaTeX.
    """
    body = _body(rendering, escape)
    lines = [*_PREAMBLE, *_unknown_characters("\n".join([*body, tables])), *body]
    return "\n".join(lines) + "\n"


def _unknown_characters(text: str) -> list[str]:
    """Every character that pdfLaTeX cannot set, shown by its code, so that one of them does not end the run."""
    codes = sorted(
        {ord(character) for character in text if ord(character) >= _FIRST_UNKNOWN} - {ord(c) for c in _KNOWN}
    )
    if not codes:
        return []
    shown = [rf"\DeclareUnicodeCharacter{{{code:04X}}}{{{{\tiny[{code:04X}]}}}}" for code in codes]
    return [r"\ifPDFTeX", *shown, r"\fi"]


def _body(rendering: Rendering, escape: Escape) -> list[str]:
    report = rendering.report
    lines = [
        rf"\title{{{escape(report.title)}\\ \large {APPENDIX[0]}}}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        escape(APPENDIX[1]),
        "",
    ]
    for section in report.appendix:
        lines += _section(rendering, section, escape)
    return [*lines, *_provenance(report, escape), r"\end{document}"]


def _section(rendering: Rendering, section: Section, escape: Escape) -> list[str]:
    kind = CONFIRMATORY if section.is_confirmatory else EXPLORATORY
    lines = [rf"\section{{{escape(section.title)}}}", rf"\emph{{{kind}}}", ""]
    if section.problem:
        lines += [f"This part could not be computed: {escape(as_sentence(section.problem))}", ""]
    for paragraph in section.paragraphs:
        lines += [escape(paragraph), ""]
    for part in section.parts:
        lines += [*_part(rendering, part, escape), ""]
    return [*lines, r"\clearpage", ""]


def _part(rendering: Rendering, part: Table | Figure | Turns, escape: Escape) -> list[str]:
    if isinstance(part, Table):
        name = next(name for known, name in rendering.tables() if known is part)
        return [rf"\input{{tables/{name}.tex}}"]
    if isinstance(part, Turns):
        turns = [
            rf"\item[{{{escape(speaker)}:}}] " + " ".join(_stretch(*stretch, escape) for stretch in stretches).strip()
            for speaker, stretches in part.rows
        ]
        head = rf"\paragraph{{{escape(part.title)}}} {escape(part.caption)}".rstrip()
        note = r"\emph{[In brackets]}: only in the first transcript; \textbf{bold}: only in the second."
        if part.has_heat:
            note = r"\textbf{Bold}: marked, with the number of raters."
        return [head, r"\begin{description}", *turns, r"\end{description}", note]
    return _figure(rendering, part, escape)


def _stretch(kind: str, before: str, after: str, escape: Escape) -> str:
    if kind == "equal":
        return escape(after)
    if kind.startswith("heat-"):
        return rf"\textbf{{{escape(after.strip())}}} ({escape(before)})"
    gone = rf"\emph{{[{escape(before)}]}}" if before.strip() else ""
    new = rf"\textbf{{{escape(after)}}}" if after.strip() else ""
    return f"{gone} {new}".strip()


def _figure(rendering: Rendering, figure: Figure, escape: Escape) -> list[str]:
    caption = " ".join(escape(text) for text in (f"{figure.title.rstrip('.')}.", figure.caption) if text)
    is_drawn = "figures" in rendering.formats
    if is_drawn:
        try:
            rendering.drawings.svg(figure)
        except DrawingError:
            is_drawn = False
    if not is_drawn:
        return [rf"\paragraph{{Figure: {escape(figure.title)}}} {escape(figure.alt)}"]
    name = next(name for known, name in rendering.figures() if known is figure)
    return [
        r"\begin{figure}[htbp]",
        r"  \centering",
        rf"  \includegraphics[width=\linewidth,height=0.7\textheight,keepaspectratio]{{figures/{name}.png}}",
        rf"  \caption{{{caption}}}",
        r"\end{figure}",
    ]


def _provenance(report: Report, escape: Escape) -> list[str]:
    sentence, command = reproduce_lines(report)
    return [r"\section*{How to reproduce this}", escape(sentence), "", rf"\texttt{{{escape(command)}}}", ""]
