r"""Every table for a paper: a ``table`` with booktabs rules, text escaped, notes below; and the appendix as a document.

The preamble needs ``\usepackage{booktabs,graphicx}`` and UTF-8; texts in scripts other than Latin need LuaLaTeX or XeLaTeX.
A table wider than the text is scaled down to it, and one longer than a page goes on in further floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from dialometer.model.report import Table
from dialometer.report.latex_appendix import latex_appendix
from dialometer.report.render import FORMATS, Rendering, file_name
from dialometer.report.written import WrittenCell, WrittenTable, write_table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "∞": r"$\infty$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "±": r"$\pm$",
    "÷": r"$\div$",
    "→": r"$\rightarrow$",
    "′": r"$'$",
    "√": r"$\surd$",
    "✓": "yes",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$",
    "β": r"$\beta$",
    "\N{GREEK SMALL LETTER GAMMA}": r"$\gamma$",
    "δ": r"$\delta$",
    "Δ": r"$\Delta$",
    "ε": r"$\varepsilon$",
    "η": r"$\eta$",
    "θ": r"$\theta$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "µ": r"$\mu$",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$",
    "\N{GREEK SMALL LETTER SIGMA}": r"$\sigma$",
    "τ": r"$\tau$",
    "φ": r"$\varphi$",
    "Φ": r"$\Phi$",
    "χ": r"$\chi$",
    "ω": r"$\omega$",
    "\u00a0": "~",
    "\u202f": r"\,",
}
_SPECIAL = re.compile("|".join(map(re.escape, _ESCAPES)))
_ALIGN = {"left": "l", "right": "r", "center": "c"}


@FORMATS.register("latex")
def write(rendering: Rendering) -> list[Path]:
    """``tables/<name>.tex``, to be used with ``\\input``, and ``appendix.tex`` where the report has an appendix."""
    folder = rendering.folder / "tables"
    written, texts = [], []
    for table, name in rendering.tables():
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.tex"
        text = latex_table(table, label=name)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
        texts.append(text)
    if rendering.report.appendix:
        path = rendering.folder / "appendix.tex"
        path.write_text(latex_appendix(rendering, escape, "\n".join(texts)), encoding="utf-8", newline="\n")
        written.append(path)
    return written


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands; line breaks become spaces, other control characters go."""
    flat = re.sub(r"[ \t\n\r\f\v]+", " ", text).strip(" ")
    clean = "".join(c for c in flat if c.isprintable() or c in "\u00a0\u202f")
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], clean)


_LONG_CHARS = 45


def _shares(written: WrittenTable) -> list[float]:
    """The share of the text's width of each column that holds sentences and wraps; 0 for those as wide as their cells."""
    longest = [max((len(row[i].text) for row in written.rows), default=0) for i in range(len(written.headings))]
    wide = sum(n for n in longest if n > _LONG_CHARS)
    room = max(0.3, 0.9 - sum(n for n in longest if n <= _LONG_CHARS) / 100)
    return [
        max(0.2, room * n / wide) if n > _LONG_CHARS and heading.align == "left" else 0.0
        for heading, n in zip(written.headings, longest, strict=True)
    ]


def _column_types(written: WrittenTable) -> str:
    return "".join(
        f"p{{{share:.2f}\\linewidth}}" if share else _ALIGN[heading.align]
        for heading, share in zip(written.headings, _shares(written), strict=True)
    )


MOST_LINES = 30
"""Lines of one float: more would not fit on a page."""
_CHARS_PER_LINE = 80


def float_parts(written: WrittenTable) -> list[tuple[tuple[WrittenCell, ...], ...]]:
    """The rows of each float: as many as fit on a page, where sentences take several lines."""
    shares = _shares(written)
    parts: list[list[tuple[WrittenCell, ...]]] = [[]]
    n_lines = 0
    for row in written.rows:
        lines = max(
            (
                math.ceil(len(cell.text) / (_CHARS_PER_LINE * share))
                for cell, share in zip(row, shares, strict=True)
                if share
            ),
            default=1,
        )
        if parts[-1] and n_lines + lines > MOST_LINES:
            parts.append([])
            n_lines = 0
        parts[-1].append(row)
        n_lines += lines
    return [tuple(part) for part in parts]


def latex_table(table: Table, *, label: str = "") -> str:
    """The table as a LaTeX float with the caption above and the notes below; a long one as several."""
    written = write_table(table)
    caption = " ".join(escape(part) for part in (_stop(table.title), table.caption) if part)
    parts = float_parts(written)
    lines = ["% needs \\usepackage{booktabs,graphicx}"]
    for number, rows in enumerate(parts):
        is_last = number == len(parts) - 1
        lines += [
            "\\begin{table}[htbp]",
            "  \\centering",
            *(
                [f"  \\caption{{{caption}}}", f"  \\label{{tab:{label or file_name(table.name)}}}"]
                if not number
                else []
            ),
            *([f"  {escape(table.title.rstrip('.'))} (continued)\\par\\smallskip"] if number else []),
            *_tabular(written, rows),
            *(_notes(written) if is_last else []),
            "\\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _tabular(written: WrittenTable, rows: Sequence[tuple[WrittenCell, ...]]) -> list[str]:
    """Some rows under the headings, never wider than the text."""
    return [
        "  \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"  \\begin{{tabular}}{{@{{}}{_column_types(written)}@{{}}}}",
        "    \\toprule",
        f"    {_row([escape(heading.label) for heading in written.headings])}",
        "    \\midrule",
        *(f"    {_row([_cell(cell) for cell in row])}" for row in rows),
        "    \\bottomrule",
        "  \\end{tabular}}",
    ]


def _row(cells: list[str]) -> str:
    # A bracket right after a line's end would be taken for its option, so a cell never starts with one.
    return " & ".join(f"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells) + r" \\"


def _cell(cell: WrittenCell) -> str:
    marks = f"\\textsuperscript{{{','.join(cell.marks)}}}" if cell.marks else ""
    if not cell.is_known:
        return f"\\textit{{{escape(cell.value)}}}{marks}"
    interval = f" {{\\small {escape(cell.interval)}}}" if cell.interval else ""
    return f"{escape(cell.value)}{interval}{marks}"


def _notes(written: WrittenTable) -> list[str]:
    texts = [f"\\textsuperscript{{{mark}}}~{escape(note)}" for mark, note in written.footnotes]
    texts += [escape(remark) for remark in written.remarks]
    if not texts:
        return []
    body = " \\par\n    ".join(texts)
    return [
        "  \\par\\smallskip",
        "  \\begin{minipage}{\\linewidth}\\footnotesize",
        f"    {body}",
        "  \\end{minipage}",
    ]


def _stop(title: str) -> str:
    return title if not title or title[-1] in ".?!" else f"{title}."
