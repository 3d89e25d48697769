"""What translators' files hold, whatever their format, and how it comes back into a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dialometer.design.translations import TranslatedText, check_language, translated_texts, translations_yaml
from dialometer.errors import ImportFileError, Problem
from dialometer.exchange.translators.po import read_po, write_po
from dialometer.exchange.translators.xliff import read_xliff, write_xliff
from dialometer.model.dialogue import clean_text
from dialometer.model.study import Study
from dialometer.model.translation import Translation, study_texts
from dialometer.registry import did_you_mean

Written = Callable[[str, str, str, Iterable[TranslatedText]], str]
Read = Callable[[str], tuple[str, list[TranslatedText]]]
FORMATS: Mapping[str, tuple[Written, Read]] = {
    "po": (write_po, read_po),
    "xliff": (write_xliff, read_xliff),
}
"""By name: from the study's name, the two languages and its texts to a file, and from a file to its language and texts."""
SUFFIXES = {".po": "po", ".xlf": "xliff", ".xliff": "xliff"}
ENDINGS = {"po": ".po", "xliff": ".xlf"}
MAX_BYTES = 16 * 1024 * 1024


def format_of(name: str) -> str:
    """The format of a file by its name."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise _unreadable(
            name, f"'{suffix or name}' is not a format of translations", did_you_mean(suffix, list(SUFFIXES))
        )
    return SUFFIXES[suffix]


def for_translators(study: Study, language: str, format_: str) -> str:
    """All texts of a study for a translator: missing ones empty, those whose source has changed marked for review."""
    texts = translated_texts(study, language)
    return FORMATS[format_][0](study.spec.name, study.spec.language, language, texts)


@dataclass
class TakenOver:
    """What came back from a translator."""

    translations: dict[str, Translation]
    """All translations of the language, old and new."""
    n_new: int = 0
    n_changed: int = 0
    n_same: int = 0
    n_empty: int = 0
    """Texts without a translation, or marked as not ready."""
    outdated: list[str] = field(default_factory=list)
    """Keys of texts that have changed in the study since the file was written."""
    unknown: list[str] = field(default_factory=list)
    """Keys that the study does not have."""

    @property
    def in_words(self) -> str:
        """What was taken over, as a sentence."""
        counts = [f"{self.n_new} new", f"{self.n_changed} changed", f"{self.n_same} as before", f"{self.n_empty} empty"]
        if self.outdated:
            counts.append(f"{len(self.outdated)} of an earlier text")
        if self.unknown:
            counts.append(f"{len(self.unknown)} that the study does not have")
        return ", ".join(counts)


def take_over(study: Study, language: str, name: str, content: bytes) -> TakenOver:
    """The study's translations with those of a translator's file; nothing is written yet."""
    check_language(study, language)
    if len(content) > MAX_BYTES:
        raise _unreadable(name, "the file is too large", f"at most {MAX_BYTES // 1024**2} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(name, "the file is not UTF-8", "save it as UTF-8") from error
    try:
        into, texts = FORMATS[format_of(name)][1](text)
    except ImportFileError as error:
        raise ImportFileError(replace(problem, file=Path(name).name) for problem in error.problems) from error
    if into and into.lower() != language.lower():
        raise _unreadable(name, f"the file holds translations into '{into}'", f"import it as '{into}'")
    sources = study_texts(study)
    taken = TakenOver(dict(study.translations.get(language, {})))
    for unit in texts:
        if unit.key not in sources:
            taken.unknown.append(unit.key)
            continue
        if not unit.text.strip():
            taken.n_empty += 1
            continue
        try:
            new = Translation(clean_text(unit.source), clean_text(unit.text))
        except ValueError as error:
            raise _unreadable(name, f"{unit.key}: {error}", "remove it") from error
        old = taken.translations.get(unit.key)
        if old == new:
            taken.n_same += 1
            continue
        if old is not None and new.source != sources[unit.key] == old.source:
            taken.outdated.append(unit.key)  # what the study has is newer than the file
            continue
        taken.n_new, taken.n_changed = taken.n_new + (old is None), taken.n_changed + (old is not None)
        if new.source != sources[unit.key]:
            taken.outdated.append(unit.key)
        taken.translations[unit.key] = new
    return taken


def file_content(study: Study, language: str, taken: TakenOver) -> bytes:
    """The language's file with what came back."""
    return translations_yaml(study, language, taken.translations).encode()


def _unreadable(name: str, message: str, remedy: str) -> ImportFileError:
    return ImportFileError([Problem(message, remedy, Path(name).name)])
