"""Pages of the reference that follow from the code are current, and name every command."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import markdown

ROOT = Path(__file__).parents[1]


def test_the_reference_is_what_the_code_says():
    script = ROOT / "scripts" / "write_reference.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_formulas_become_mathml_and_code_stays():
    place = ROOT / "scripts" / "formulas_as_mathml.py"
    spec = importlib.util.spec_from_file_location("formulas_as_mathml", place)
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    marked = hook.on_page_markdown(
        "Share $w / n$ of $a_i * b_i * c$ costs 5 $ and `$HOME` stays.\n\n$$x^2 < 3$$\n\n```sh\necho $HOME $PATH\n```\n"
    )
    page = hook.on_page_content(markdown.markdown(marked, extensions=["fenced_code"]))
    assert page.count("<math") == 3
    first = page.split("</p>")[0]
    assert first.count("<math") == 2, "a formula in a sentence does not end its paragraph"
    assert "costs 5 $ and" in first
    assert "<em>" not in page
    assert "<code>$HOME</code>" in page
    assert "echo $HOME $PATH" in page
