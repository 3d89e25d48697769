"""The words of the interface: one file per language in ``locales``, English the source, any of them replaceable by a study."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from dialometer.errors import Problem, StudyError
from dialometer.model.file_names import STUDY_FILE
from dialometer.registry import did_you_mean

SOURCE = "en"
RIGHT_TO_LEFT = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"})
_OWN_NAMES = {
    "am": "አማርኛ", "ar": "العربية", "bg": "Български", "bn": "বাংলা", "ca": "Català", "cs": "Čeština", "cy": "Cymraeg", "da": "Dansk",
    "de": "Deutsch", "el": "Ελληνικά", "en": "English", "es": "Español", "et": "Eesti", "eu": "Euskara", "fa": "فارسی", "fi": "Suomi",
    "fr": "Français", "ga": "Gaeilge", "gl": "Galego", "ha": "Hausa", "he": "עברית", "hi": "हिन्दी", "hr": "Hrvatski", "hu": "Magyar",
    "hy": "Հայերեն", "id": "Bahasa Indonesia", "is": "Íslenska", "it": "Italiano", "ja": "日本語", "ka": "ქართული", "ko": "한국어",
    "lt": "Lietuvių", "lv": "Latviešu", "ms": "Bahasa Melayu", "nb": "Norsk bokmål", "nl": "Nederlands", "pl": "Polski",
    "ps": "پښتو", "pt": "Português", "ro": "Română", "ru": "Русский", "sk": "Slovenčina", "sl": "Slovenščina", "sq": "Shqip",
    "sr": "Српски", "sv": "Svenska", "sw": "Kiswahili", "ta": "தமிழ்", "te": "తెలుగు", "th": "ไทย", "tr": "Türkçe", "uk": "Українська",
    "ur": "اردو", "vi": "Tiếng Việt", "zh": "中文",
}  # fmt: skip
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Sentences of this family are written in English by the scales and the flow; what they say is looked up by its form.
_SPOKEN_ELSEWHERE = "answer."

Text = str | Mapping[str, str]


def _arabic(n: int) -> str:
    if n < 3:
        return ("zero", "one", "two")[n]
    if 3 <= n % 100 <= 10:
        return "few"
    return "many" if n % 100 >= 11 else "other"


_PLURALS: dict[str, Callable[[int], str]] = {"ar": _arabic}


def plural_category(language: str, n: int) -> str:
    """The form that a whole number asks for, in the words of Unicode's CLDR (one, few, other …)."""
    rule = _PLURALS.get(language)
    if rule is not None:
        return rule(n)
    return "one" if n == 1 else "other"


def primary_tag(tag: str) -> str:
    """The language of a tag without its region: ``de`` of ``de-AT``."""
    return tag.split("-", maxsplit=1)[0].lower()


def is_right_to_left(tag: str) -> bool:
    """Whether a language is written from right to left."""
    return primary_tag(tag) in RIGHT_TO_LEFT


def own_name(tag: str) -> str:
    """What a language calls itself, for a list to choose from; the region follows, and an unknown one is shown as its tag."""
    name, region = _OWN_NAMES.get(primary_tag(tag), ""), tag.partition("-")[2]
    return f"{name} ({region})" if name and region else name or tag


def nearest_language(wanted: Sequence[str], known: Sequence[str]) -> str:
    """The first wanted language that is known, if need be that of another region; empty where none is."""
    for tag in wanted:
        exact = (one for one in known if one.lower() == tag.lower())
        found = next(exact, "") or next((one for one in known if primary_tag(one) == primary_tag(tag)), "")
        if found:
            return found
    return ""


def accepted_languages(header: str) -> list[str]:
    """The languages of an ``Accept-Language`` header, the most wanted first (RFC 9110)."""
    wanted: list[tuple[float, str]] = []
    for part in header[:1000].split(","):
        tag, _, weight = part.partition(";")
        try:
            q = float(weight.strip().removeprefix("q=")) if weight.strip() else 1.0
        except ValueError:
            continue
        if tag.strip() and tag.strip() != "*" and q > 0:
            wanted.append((-q, tag.strip()))
    return [tag for _, tag in sorted(wanted, key=lambda entry: entry[0])]


@cache
def load_texts(language: str) -> Mapping[str, Text]:
    """All texts of one language file."""
    source = files("dialometer.flow").joinpath("locales", f"{language}.json").read_text(encoding="utf-8")
    texts: Mapping[str, Text] = json.loads(source)
    return texts


@cache
def languages() -> tuple[str, ...]:
    """The languages that have a file."""
    folder = files("dialometer.flow").joinpath("locales")
    return tuple(sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".json")))


def placeholders(text: Text) -> frozenset[str]:
    """The names in braces that a text (in any of its forms) fills in."""
    forms = [text] if isinstance(text, str) else list(text.values())
    return frozenset(name for form in forms for name in _PLACEHOLDER.findall(form))


def wording_problems(wording: Mapping[str, str]) -> list[Problem]:
    """What is wrong with a study's own wording: keys that no page uses, placeholders that nothing fills."""
    known = load_texts(SOURCE)
    problems = []
    for key, text in wording.items():
        base, form = _split_form(key)
        if base not in known or (form and not isinstance(known[base], Mapping)):
            problems.append(
                Problem(f"no page has a text '{key}'", did_you_mean(key, list(known)), STUDY_FILE, field="wording")
            )
            continue
        stray = placeholders(text) - placeholders(known[base])
        if stray:
            fits = ", ".join(f"{{{name}}}" for name in sorted(placeholders(known[base]))) or "none"
            problems.append(
                Problem(
                    f"the text '{key}' cannot fill in {', '.join(f'{{{name}}}' for name in sorted(stray))}",
                    f"it knows: {fits}",
                    STUDY_FILE,
                    field="wording",
                )
            )
    return problems


def _split_form(key: str) -> tuple[str, str]:
    """``progress.minutes.one`` names one form of a text with several."""
    base, _, last = key.rpartition(".")
    return (base, last) if last in ("zero", "one", "two", "few", "many", "other") else (key, "")


class Language:
    """The interface in the study's language: the nearest file there is, with the study's own wording over it."""

    def __init__(self, tag: str, wording: Mapping[str, str] | None = None) -> None:
        problems = wording_problems(wording or {})
        if problems:
            raise StudyError(problems)
        self.tag = tag
        self.direction = "rtl" if is_right_to_left(tag) else "ltr"
        self.source = nearest_language([tag], languages()) or SOURCE
        self._texts: dict[str, Text] = {**load_texts(SOURCE), **load_texts(self.source)}
        for key, text in (wording or {}).items():
            base, form = _split_form(key)
            old = self._texts[base]
            self._texts[base] = {**old, form: text} if form and isinstance(old, Mapping) else text

    def text(self, key: str, /, **values: object) -> str:
        """The text with its placeholders filled in."""
        text = self._texts[key]
        if not isinstance(text, str):
            text = text["other"]
        return _fill(text, values)

    def count(self, key: str, n: int, /, **values: object) -> str:
        """The text in the form that the number asks for."""
        forms = self.forms(key)
        form = forms.get(plural_category(self.source, n), forms["other"])
        return _fill(form, {**values, "n": n})

    def listed(self, words: Sequence[str]) -> str:
        """Several words as one phrase: "A", "A and B", "A, B and C"."""
        if len(words) < 2:
            return "".join(words)
        return self.text("list.and", first=", ".join(words[:-1]), last=words[-1])

    def forms(self, key: str) -> Mapping[str, str]:
        """All forms of a text, for scripts that count in the page."""
        text = self._texts[key]
        return {"other": text} if isinstance(text, str) else text

    def explain(self, message: str) -> str:
        """A sentence that a scale or the flow wrote in English, in this language; an unknown one stays as it is."""
        for pattern, key in _patterns():
            match = pattern.fullmatch(message)
            if match:
                values = match.groupdict()
                n = values.get("n", "")
                return self.count(key, int(n), **values) if n.isdecimal() else self.text(key, **values)
        return message


def _fill(text: str, values: Mapping[str, object]) -> str:
    return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), text)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The English sentences of scales and flow as patterns, those without anything to fill in first."""
    patterns = []
    for key, text in load_texts(SOURCE).items():
        if key.startswith(_SPOKEN_ELSEWHERE):
            for form in [text] if isinstance(text, str) else text.values():
                pieces = _PLACEHOLDER.split(form)
                source = "".join(f"(?P<{piece}>.+?)" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
                patterns.append((len(pieces), re.compile(source, re.DOTALL), key))
    return tuple((pattern, key) for _, pattern, key in sorted(patterns, key=lambda entry: entry[0]))
