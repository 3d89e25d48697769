"""LaTeX tables, checked by reading them: balanced, escaped, one cell per column."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich_report import HEBREW, HOSTILE

from commands import invoke
from dialometer.analysis.base.choose import analyse_folder
from dialometer.design.templates import copy_template, template_names
from dialometer.model.report import Table
from dialometer.report.formats.latex_tables import escape, float_parts, latex_table
from dialometer.report.render import render
from dialometer.report.written import write_table

NEEDS_LATEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


def rows_of(tex):
    parts = [part.split(r"\bottomrule")[0] for part in tex.split(r"\midrule")[1:]]
    return [line.strip() for part in parts for line in part.strip().splitlines()]


def cells_of(row):
    assert row.endswith(r"\\")
    return re.split(r"(?<!\\)&", row.removesuffix(r"\\"))


def depth(tex):
    plain = re.sub(r"\\[{}\\%$&#_]", "", tex)
    level = 0
    for character in plain:
        level += (character == "{") - (character == "}")
        assert level >= 0
    return level


def test_every_table(report):
    for table in report.tables():
        tex = latex_table(table)
        assert depth(tex) == 0
        assert re.findall(r"\\(begin|end)\{(\w+)\}", tex)[:2] == [("begin", "table"), ("begin", "tabular")]
        begun, ended = (re.findall(rf"\\{word}\{{(\w+)\}}", tex) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
        assert [tex.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [
            len(float_parts(write_table(table)))
        ] * 3
        types = re.search(r"\\begin\{tabular\}\{@\{\}((?:[lrc]|p\{[\d.]+\\linewidth\})+)@\{\}\}", tex)[1]
        columns = re.sub(r"p\{[^}]*\}", "p", types)
        assert len(columns) == len(table.columns)
        assert len(rows_of(tex)) == len(table.rows)
        assert all(len(cells_of(row)) == len(columns) for row in rows_of(tex))
        assert tex.replace(r"\$", "").count("$") % 2 == 0
        assert f"\\label{{tab:{table.name}}}" in tex


def test_escaping():
    assert escape("50% of a_b & {c} #1 $ ~ ^ \\") == (
        r"50\% of a\_b \& \{c\} \#1 \$ \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
    assert escape("p < .001\nand −2 × 3") == r"p $<$ .001 and $-$2 $\times$ 3"


@given(st.text(max_size=60))
def test_no_text_breaks_out(text):
    safe = escape(text)
    assert depth(safe) == 0
    without = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum|textbar|textquotedbl)\{\}|\\[{}$&#%_,]|\$[^$]+\$", "", safe
    )
    assert not set(without) & set('\\{}$&#%_^<>"|\n\r')


def test_numbers_notes_and_gaps(report):
    tables = {table.name: latex_table(table) for table in report.tables()}
    ratings = tables["anchoring_ratings"]
    assert r"2.34 {\small [2.23, 2.45]}" in ratings
    assert r"$<$~.001" in ratings
    assert r"\textit{not enough data}\textsuperscript{a}" in ratings
    assert r"\textsuperscript{a}~1 rater; at least 2 are needed" in ratings
    assert r"61\% {\small [50, 71]}" in tables["preference"]
    assert HOSTILE not in tables["everything"]


@pytest.mark.parametrize("start", ["[x]", "*"])
def test_a_row_does_not_start_with_an_option(start):
    from dialometer.model.report import Column, Table

    tex = latex_table(Table("t", "T", (Column("a", "A"),), ((start,),)))
    assert rows_of(tex) == [f"{{}}{start} " + r"\\"]


def test_the_appendix_is_a_document_with_all_that_is_folded(report, tmp_path):
    folded = replace(report, sections=tuple(replace(section, in_appendix=True) for section in report.sections))
    paths = render(folded, tmp_path, formats=["latex"])
    tex = (tmp_path / "appendix.tex").read_text(encoding="utf-8")
    assert tmp_path / "appendix.tex" in paths
    assert depth(tex) == 0
    begun, ended = (re.findall(rf"\\{word}\{{(\w+)\}}", tex) for word in ("begin", "end"))
    assert sorted(begun) == sorted(ended)
    for section in folded.sections:
        assert f"\\section{{{escape(section.title)}}}" in tex
        assert all(escape(paragraph) in tex for paragraph in section.paragraphs)
    inputs = re.findall(r"\\input\{(tables/[^}]+)\}", tex)
    assert len(inputs) == sum(isinstance(part, Table) for section in folded.sections for part in section.parts)
    assert all((tmp_path / name).exists() for name in inputs)
    assert "\\includegraphics" not in tex, "figures were not asked for, so their words stand there"
    assert HOSTILE not in tex


def test_a_report_without_appendix_has_no_such_document(report, tmp_path):
    whole = replace(report, sections=tuple(replace(section, in_appendix=False) for section in report.sections))
    render(whole, tmp_path, formats=["latex"])
    assert not (tmp_path / "appendix.tex").exists()


def compiled(folder):
    """What pdfLaTeX says of ``appendix.tex``; it must end without an error."""
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "appendix.tex"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "appendix.pdf").stat().st_size > 10_000
    return done.stdout


def with_whole_appendix(report):
    return replace(report, sections=tuple(replace(section, in_appendix=True) for section in report.sections))


@NEEDS_LATEX
def test_pdflatex_compiles_every_kind_of_part(report, tmp_path):
    render(with_whole_appendix(report), tmp_path, formats=["latex"])
    first = f"{ord(HEBREW[0]):04X}"
    assert rf"\DeclareUnicodeCharacter{{{first}}}" in (tmp_path / "appendix.tex").read_text(encoding="utf-8")
    compiled(tmp_path)


@NEEDS_LATEX
@pytest.mark.slow
@pytest.mark.parametrize("template", template_names())
def test_pdflatex_compiles_the_whole_report_of_every_template(template, tmp_path):
    copy_template(template, tmp_path / "s")
    invoke("simulate", tmp_path / "s", "--raters", 8)
    report = analyse_folder(tmp_path / "s", n_resamples=100)
    render(with_whole_appendix(report), tmp_path / "out", formats=["latex", "figures"])
    said = compiled(tmp_path / "out")
    assert "Overfull \\hbox" not in said, "a table is wider than the text"
    assert "Float too large" not in said, "a table is longer than the page"
