"""Tell a file's format from its beginning, else from its name, else say how to name it."""

from __future__ import annotations

from dialometer.errors import Problem, ReadError
from dialometer.readers.json_records import first_record
from dialometer.readers.reader import READERS, Head
from dialometer.readers.source import Source


def format_of(source: Source) -> str:
    """The name of the one format that recognises the file; an error where none or several do."""
    text = source.head()
    head = Head(source.suffix, text, first_record(text))
    found = [name for name in READERS if READERS.get(name).recognises(head)]
    found = found or [name for name in READERS if source.suffix in READERS.get(name).suffixes]
    if len(found) == 1:
        return found[0]
    what = f"the format could be {' or '.join(found)}" if found else "the format cannot be told from the file"
    remedy = f"name it, for example format='{found[0] if found else 'jsonl'}'; known: {', '.join(READERS.names())}"
    raise ReadError([Problem(what, remedy=remedy, file=source.name)])
