"""The language files are complete, their placeholders agree, and what scales complain about is told in every language."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml
from babel import Locale
from babel.plural import to_python
from walking import STUDIES, copy_study

import dialometer.flow
import dialometer.scales
from dialometer.design.load import load_study
from dialometer.errors import AnswerError, StudyError
from dialometer.flow.language import Language, languages, load_texts, placeholders, plural_category, wording_problems
from dialometer.scales import SCALES
from dialometer.web.rater.pages import MESSAGES, Pages

WEB = Path(str(dialometer.scales.__file__)).parent.parent / "web"
OTHERS = [name for name in languages() if name != "en"]


def test_the_promised_languages_are_there() -> None:
    assert set(languages()) >= {"en", "de", "es", "ar"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_language_is_complete(name: str) -> None:
    source, texts = load_texts("en"), load_texts(name)
    assert list(texts) == list(source)
    for key, text in texts.items():
        assert isinstance(text, str) == isinstance(source[key], str), key
        assert placeholders(text) <= placeholders(source[key]), key
        forms = [text] if isinstance(text, str) else list(text.values())
        assert all(form.strip() for form in forms), key
        # A plural form may leave its number out ("one minute"), but never another value.
        for form in forms:
            missing = placeholders(source[key]) - placeholders(form)
            assert missing <= ({"n"} if not isinstance(text, str) else set()), (key, form)


@pytest.mark.parametrize("name", languages())
def test_plural_forms_are_those_of_the_language(name: str) -> None:
    """Checked against babel's CLDR rules: ``Locale.parse(name).plural_form(n)``."""
    rule = to_python(Locale.parse(name).plural_form)
    for n in [*range(0, 205), 1000]:
        assert plural_category(name, n) == rule(n)
    wanted = {rule(n) for n in range(0, 205)}
    for key, text in load_texts(name).items():
        if not isinstance(text, str):
            assert set(text) == wanted, key


def test_every_text_is_used_and_every_used_text_exists() -> None:
    """Keys are written out in templates and code, or built from the name of a kind."""
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [*WEB.rglob("*.py"), *(WEB.parent / "flow").glob("*.py"), *WEB.glob("templates/**/*.html")]
    )
    known = set(load_texts("en"))
    named = set(re.findall(r"""(?:\bt|\btn|\bforms|text|count)\(\s*["']([a-z_]+(?:\.[a-z_]+)+)["']""", code))
    assert named <= known
    built = {f"message.{kind}.{part}" for kind in MESSAGES for part in ("title", "text")}
    for key in known - built:
        is_built = key.startswith(("answer.", "done.")) or re.match(
            r"(screening|pre|post|attention|comprehension|field|checklist)\.", key
        )
        assert is_built or f'"{key}"' in code or f"'{key}'" in code, key


def sentences() -> list[str]:
    """Every sentence that a scale can raise, with example values in its blanks, found in the source itself."""
    found = []
    for path in [*Path(str(dialometer.scales.__file__)).parent.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AnswerError":
                found += [_example(part) for part in _alternatives(node.args[0])]
    return [sentence for sentence in found if sentence]


def _alternatives(node: ast.expr) -> list[ast.expr]:
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def _example(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
    return ""  # put together at run time; see the pairwise scale below


def test_every_sentence_of_the_scales_is_told_in_every_language() -> None:
    said = sentences()
    assert len(said) >= 18
    pairwise = SCALES.get("pairwise")
    for tie in (True, False):
        for cannot in (True, False):
            with pytest.raises(AnswerError) as error:
                pairwise.model_validate({"allow_tie": tie, "allow_cannot_tell": cannot}).parse("x", ["1", "2"])
            said.append(error.value.message)
    said += [
        "Please answer this.",
        "Please choose one of the two.",
        "Please choose one of the answers.",
        "Please write at least 5 messages first (2 so far).",
    ]
    for sentence in said:
        assert Language("en").explain(sentence).startswith(sentence[:12])
        for name in OTHERS:
            told = Language(name).explain(sentence)
            assert told != sentence, sentence
            assert ("7" in sentence) <= ("7" in told), (sentence, told)


def test_sentences_count_properly() -> None:
    one = "Please write at least 1 messages first (0 so far)."
    assert Language("en").explain(one) == "Please write at least 1 message first (0 so far)."
    assert Language("de").explain("Please choose a point from 1 to 7.") == "Bitte wählen Sie einen Punkt von 1 bis 7."
    assert Language("es").explain("Please enter a number of at most 9.5.").endswith("9.5 como máximo.")
    assert "رسالتين" in Language("ar").explain("Please write at least 2 messages first (0 so far).")
    assert Language("de").explain("Something new.") == "Something new."


def test_a_region_takes_the_language_and_an_unknown_one_takes_english() -> None:
    assert Language("de-AT").text("button.continue") == "Weiter"
    assert Language("fr").text("button.continue") == "Continue"
    assert Language("ar-EG").direction == "rtl"
    assert Language("he").direction == "rtl"
    assert Language("es").direction == "ltr"


def test_a_study_overrides_any_text() -> None:
    language = Language(
        "en", {"button.continue": "Next", "progress.minutes.one": "just a minute", "chat.n_said": "{n}!"}
    )
    assert language.text("button.continue") == "Next"
    assert language.count("progress.minutes", 1) == "just a minute"
    assert language.count("progress.minutes", 2) == "about 2 minutes left"
    assert language.count("chat.n_said", 3) == "3!"


def test_the_example_in_the_documentation_works() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "languages.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n([^`]*^wording:.*?)```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    example = yaml.safe_load(block[1])
    language = Language(example["language"], example["wording"])
    assert language.text("button.continue") == "Nächste Seite"
    assert language.count("progress.minutes", 1) == "gleich geschafft"
    assert language.count("progress.minutes", 2) == "noch etwa 2 Minuten"


def test_wording_that_fits_no_page_is_refused_with_a_remedy(tmp_path: Path) -> None:
    problems = wording_problems({"button.contnue": "Next", "button.back": "{where}", "button.start.one": "Go"})
    assert ["did you mean 'button.continue'?" in problem.remedy for problem in problems] == [True, False, False]
    assert "{where}" in problems[1].message
    folder = copy_study("turns", tmp_path, lambda spec, items: spec.update(wording={"nothing": "x"}))
    with pytest.raises(StudyError, match="no page has a text 'nothing'"):
        Pages(load_study(folder))
    assert Pages(load_study(STUDIES / "turns")).language.tag == "en"
