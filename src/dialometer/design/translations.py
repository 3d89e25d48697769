"""Translations of a study: one file for each further language beside study.yaml, from the key of a text to its translation.

Each entry keeps the source text of which it is the translation, so that one whose source has changed since shows:

```yaml
criteria.clarity.question:
  source: How clear is this response?
  text: Wie verständlich ist diese Antwort?
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from dialometer.design.positions import Positioned, parse_yaml
from dialometer.errors import DialometerError, Problem, UnknownName
from dialometer.folder_files import MAX_LIST_BYTES, FileRefused, read_text_inside
from dialometer.model.dialogue import clean_text
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.rater_text import placeholders_in
from dialometer.model.study import Study, StudySpec, translation_file
from dialometer.model.translation import Translation, study_texts
from dialometer.registry import did_you_mean

State = Literal["missing", "outdated", "done"]
MOST_NAMED = 4
"""Texts that a warning names."""


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """One text of a study and how its translation stands."""

    key: str
    source: str
    text: str = ""
    """The translation; empty where there is none."""
    was: str = ""
    """The source text that was translated, where it is another one by now."""

    @property
    def state(self) -> State:
        """Missing, out of date, or done."""
        return "missing" if not self.text else "outdated" if self.was else "done"


def translated_texts(study: Study, language: str) -> list[TranslatedText]:
    """Every text of the study with its translation, in the order of the study."""
    known = study.translations.get(check_language(study, language), {})
    return [_text(key, source, known.get(key)) for key, source in study_texts(study).items()]


def _text(key: str, source: str, known: Translation | None) -> TranslatedText:
    if known is None or not known.text:
        return TranslatedText(key, source)
    return TranslatedText(key, source, known.text, was="" if known.source == source else known.source)


def check_language(study: Study, language: str) -> str:
    """The language, if the study is translated into it; raises :class:`UnknownName`."""
    into = study.spec.languages[1:]
    if language not in into:
        remedy = (
            did_you_mean(language, into) if into else "name the languages in study.yaml, such as 'languages: [en, de]'"
        )
        raise UnknownName(f"the study is not translated into '{language}'", remedy=remedy)
    return language


def unused_keys(study: Study, language: str) -> list[str]:
    """Translations of texts that the study no longer has."""
    texts = study_texts(study)
    return [key for key in study.translations.get(language, {}) if key not in texts]


# files


def read_translations(
    folder: Path, spec: StudySpec
) -> tuple[dict[str, dict[str, Translation]], dict[str, Positioned], list[Problem]]:
    """The translations of all languages by key, where each stands in its file, and what is wrong with the files."""
    translations: dict[str, dict[str, Translation]] = {}
    places: dict[str, Positioned] = {}
    problems: list[Problem] = []
    for language in spec.languages[1:]:
        file = translation_file(language)
        if not (folder / file).exists():
            continue
        try:
            content = read_text_inside(folder, file, MAX_LIST_BYTES)
        except FileRefused as error:
            problems.append(Problem(f"the translations cannot be read: {error.message}", error.remedy, file, 1, 1))
            continue
        source = parse_yaml(content, file)
        problems += source.problems
        translations[language], wrong = _entries(source, file)
        places[language] = source
        problems += wrong
    return translations, places, problems


def _entries(source: Positioned, file: str) -> tuple[dict[str, Translation], list[Problem]]:
    entries: dict[str, Translation] = {}
    problems: list[Problem] = []
    data = source.data if isinstance(source.data, dict) else {}
    if source.data is not None and not isinstance(source.data, dict) and not source.problems:
        remedy = "one entry for each text; 'dialometer translate DIR' shows their keys"
        problems.append(Problem("the file holds no translations", remedy, file, 1, 1))
    for key, entry in data.items():
        line, column = source.at((str(key),))
        fields = entry if isinstance(entry, dict) else {}
        texts = {name: fields.get(name, "") for name in ("source", "text")}
        if not isinstance(entry, dict) or set(fields) - set(texts) or not all(map(_is_text, texts.values())):
            remedy = "write 'source:' and 'text:' under it, each with a text"
            problems.append(Problem("this is not a translation", remedy, file, line, column, str(key)))
            continue
        try:
            entries[str(key)] = Translation(*(clean_text(texts[name] or "") for name in ("source", "text")))
        except ValueError as error:
            problems.append(Problem(str(error), "remove it", file, line, column, str(key)))
    return entries, problems


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


class _Dumper(yaml.SafeDumper):
    """YAML for people: texts of several lines in blocks."""


def _block_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block_text)


def translations_yaml(study: Study, language: str, translations: Mapping[str, Translation]) -> str:
    """The content of a language's file: texts in the order of the study, then those that it no longer has."""
    order = {key: place for place, key in enumerate(study_texts(study))}
    kept = sorted(
        (key for key, entry in translations.items() if entry.text), key=lambda key: (order.get(key, len(order)), key)
    )
    entries = {key: {"source": translations[key].source, "text": translations[key].text} for key in kept}
    head = f"# Translations of this study from {study.spec.language} into {language}: source text, and the text raters read.\n"
    if not entries:
        return head + "{}\n"
    return head + yaml.dump(entries, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)


def with_texts(study: Study, language: str, texts: Mapping[str, str]) -> dict[str, Translation]:
    """The translations of a language with new texts, each of the source text as it is now; an empty text removes one."""
    sources = study_texts(study)
    unknown = [key for key in texts if key not in sources]
    if unknown:
        raise DialometerError(f"the study has no text '{unknown[0]}'", remedy=did_you_mean(unknown[0], list(sources)))
    known = dict(study.translations.get(check_language(study, language), {}))
    for key, text in texts.items():
        known[key] = Translation(sources[key], clean_text(text))
    return {key: entry for key, entry in known.items() if entry.text}


# checks


def translation_problems(study: Study, study_file: Positioned, places: Mapping[str, Positioned]) -> list[Problem]:
    """What is not translated, out of date, no longer used, or cannot be filled."""
    problems: list[Problem] = []
    spec = study.spec
    if spec.items.translated and any(scale.marks_text for scale in spec.scales.values()):
        line, column = study_file.at(("items", "translated"))
        message = "marks in translated items cannot be compared: each language has its own words"
        remedy = "leave items as they are, or make one study for each language"
        problems.append(Problem(message, remedy, STUDY_FILE, line, column, "items.translated"))
    for language in spec.languages[1:]:
        file = translation_file(language)
        texts = translated_texts(study, language)
        for state, words in (("missing", "not translated"), ("outdated", "translated from an earlier text")):
            keys = [text.key for text in texts if text.state == state]
            if keys:
                n = f"{len(keys)} of {len(texts)} texts are" if len(keys) > 1 else f"1 of {len(texts)} texts is"
                remedy = f"Languages in the dashboard or 'dialometer translate DIR --language {language}' lists them; "
                remedy += "raters read "
                remedy += "the source text" if state == "missing" else "the earlier translation"
                message = f"{language}: {n} {words}: {_listed(keys)}"
                problems.append(Problem(message, remedy, file, 1, 1, severity="warning"))
        unused = unused_keys(study, language)
        if unused:
            message = f"{language}: the study has no text {_listed(unused)}"
            remedy = "remove the translation, or restore the text"
            problems.append(Problem(message, remedy, file, *_at(places, language, unused[0]), severity="warning"))
        for text in texts:
            problems += _placeholder_problems(text, file, _at(places, language, text.key))
    return problems


def _placeholder_problems(text: TranslatedText, file: str, at: tuple[int, int]) -> list[Problem]:
    required, used = (set(placeholders_in(words)) for words in (text.source, text.text or text.source))
    problems = []
    for name in sorted(used - required):
        remedy = (
            f"the source text has {_named(required)}" if required else "the source text has no such names: remove it"
        )
        problems.append(Problem(f"nothing is known under {{{{{name}}}}}", remedy, file, *at, text.key))
    for name in sorted(required - used):
        message = f"the translation leaves out {{{{{name}}}}}"
        problems.append(Problem(message, "add it where it belongs", file, *at, text.key, severity="warning"))
    return problems


def _named(names: set[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in sorted(names))


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return ", ".join(keys[:MOST_NAMED]) + more


def _at(places: Mapping[str, Positioned], language: str, key: str) -> tuple[int, int]:
    return places[language].at((key,)) if language in places else (1, 1)
