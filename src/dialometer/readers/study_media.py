"""All media files that a study shows: recordings of candidates, media of turns, and images that Markdown texts name."""

from __future__ import annotations

from collections.abc import Iterator

from dialometer.model.item import Item, ResponsesItem, turns_of
from dialometer.model.media import IMAGE_TYPES
from dialometer.model.study import Study
from dialometer.readers.media_content import content_fault
from dialometer.readers.recordings import path_fault


def media_files(study: Study) -> tuple[str, ...]:
    """Their paths inside the study's folder, each once."""
    key = ("media files",)
    if key not in study.remembered:
        names = [name for recording in study.recordings for name in recording.files]
        names += [entry.path for item in study.items for turn in turns_of(item) for entry in turn.media]
        study.remembered[key] = tuple(dict.fromkeys([*names, *sorted(markdown_images(study))]))
    files: tuple[str, ...] = study.remembered[key]
    return files


def markdown_images(study: Study) -> frozenset[str]:
    """Images of the study's folder that its Markdown texts name and that can be shown."""
    key = ("markdown images",)
    if key not in study.remembered:
        in_texts = {path for _, path in _named_images(study)}
        study.remembered[key] = frozenset(path for path in in_texts if image_fault(study, path) is None)
    images: frozenset[str] = study.remembered[key]
    return images


def faulty_images(study: Study) -> Iterator[tuple[Item, str, str]]:
    """Items with an image in their Markdown that raters will not see: what is wrong, and the remedy."""
    for item, path in _named_images(study):
        fault = image_fault(study, path)
        if fault is not None:
            yield item, *fault


def image_fault(study: Study, path: str) -> tuple[str, str] | None:
    """What is wrong with an image that a Markdown text names, and the remedy."""
    if study.folder is None:
        return "the study has no folder", "save it"
    fault = path_fault(path, "", IMAGE_TYPES, study.folder)
    return fault[:2] if fault is not None else content_fault(study.folder / path, "image")


def _named_images(study: Study) -> list[tuple[Item, str]]:
    if not study.shows_markdown:
        return []
    from dialometer.markup.markdown import images_in  # noqa: PLC0415 - most studies need no Markdown

    images: dict[tuple[str, str], tuple[Item, str]] = {}
    for item in study.items:
        texts = [turn.text for turn in turns_of(item)]
        if isinstance(item, ResponsesItem) and item.standard:
            texts.append(item.standard)
        for text in texts:
            if "![" in text:
                images |= {(item.id, path): (item, path) for path in images_in(text)}
    return list(images.values())
