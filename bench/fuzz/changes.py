"""Ways to spoil a file: its bytes, its text, its values, its table, its zip and its arrays.

Everything is drawn from the generator that is passed in, so that a number of an input always gives the same input.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import yaml

Change = Callable[[bytes, Random], bytes]

TEXTS = (
    *("", " ", "NA", "n/a", "NaN", "-", "80%", "1e400", "-1", "0", "00", "1,5", "١٢", "²", "9" * 400, "9" * 5000),
    *("\ud800", "\x00", "\x07", "\u2028", "\ufeff", "é", "e\u0301", "😀", "a\tb", "a\nb", "a\rb", '"', "'", "=1+1"),
    *(
        "x" * 2000,
        "null",
        "true",
        "None",
        "../../etc/passwd",
        "/dev/zero",
        "a" * 300 + ".csv",
        "2020-13-45",
        "9999999999999",
    ),
    *(
        "{}",
        "[]",
        "[[[[",
        "#",
        "# ",
        ": ",
        "first",
        "tie",
        "user",
        "Agent",
        "%s%n",
        "{0}",
        "$",
        "\\",
        "(" * 50,
        "model",
    ),
)
NUMBERS = (0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, 10**5000, 1e308, -0.0, 0.1, 1e-320)
CONSTANTS = (None, True, False, float("nan"), float("inf"), float("-inf"))
BYTES = (
    b"\x00",
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc3\x28",
    b"\r",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b'"',
)


def value(rng: Random, depth: int = 0) -> Any:
    """Any value that JSON or YAML can hold, mostly an awkward one."""
    draw = rng.random()
    if draw < 0.45:
        return rng.choice(TEXTS)
    if draw < 0.65:
        return rng.choice(NUMBERS)
    if draw < 0.8 or depth > 3:
        return rng.choice(CONSTANTS)
    if draw < 0.9:
        return [value(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 5)))]
    return {str(rng.choice(TEXTS)): value(rng, depth + 1) for _ in range(rng.choice((0, 1, 3)))}


# Bytes and text


def flipped(content: bytes, rng: Random) -> bytes:
    """A few bits the other way round."""
    spoilt = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 40))):
        if spoilt:
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def cut(content: bytes, rng: Random) -> bytes:
    """Only the beginning, the end, or without a piece."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return rng.choice((content[:a], content[a:], content[:a] + content[b:], b""))


def repeated(content: bytes, rng: Random) -> bytes:
    """A piece of it several times."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    n = rng.choice((2, 3, 50)) if b - a < 2000 else 2
    return content[:a] + content[a:b] * n + content[b:]


def injected(content: bytes, rng: Random) -> bytes:
    """Bytes that do not belong there."""
    place = rng.randrange(len(content) + 1)
    what = rng.choice((*BYTES, *(text.encode("utf-8", "surrogatepass") for text in TEXTS)))
    return content[:place] + what * rng.choice((1, 1, 1, 3)) + content[place:]


def deep(content: bytes, rng: Random) -> bytes:
    """Brackets, thousands of them."""
    place = rng.randrange(len(content) + 1)
    n = rng.choice((*((50,) * 6), *((900,) * 6), 5_000, 5_000, 5_000, 60_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"{", b"}"), (b"- ", b""), (b"(", b")")))
    return content[:place] + opening * n + rng.choice((b"", b"1" + closing * n)) + content[place:]


def encoded(content: bytes, rng: Random) -> bytes:
    """The same text in another encoding, or packed."""
    if rng.random() < 0.2:
        packed = gzip.compress(content)
        return rng.choice((packed, packed[: len(packed) // 2], flipped(packed, rng)))
    text = content.decode("utf-8", "replace")
    encoding = rng.choice(
        ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1", "utf-8-sig", "utf-7", "shift_jis")
    )
    return text.encode(encoding, "replace")


def lines_changed(content: bytes, rng: Random) -> bytes:
    """Lines removed, doubled, swapped, or with other ends."""
    lines = content.split(b"\n")
    what = rng.randrange(5)
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    if what == 0:
        del lines[i]
    elif what == 1:
        lines[i:i] = [lines[i]] * rng.choice((1, 2, 100))
    elif what == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif what == 3:
        lines[i] = rng.choice((b"  ", b"\t", b"")) + lines[i]
    else:
        return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" ")))
    return b"\n".join(lines)


def words_changed(content: bytes, rng: Random) -> bytes:
    """A word of the text becomes another one, or a number grows."""
    found = list(re.finditer(rb"[A-Za-z_]{2,}|\d+(?:\.\d+)?", content[:200_000]))
    if not found:
        return injected(content, rng)
    match = rng.choice(found)
    other = rng.choice(found).group() if rng.random() < 0.4 else rng.choice(_WORDS)
    return content[: match.start()] + other + content[match.end() :]


def _short(number: float) -> str:
    return str(number) if not isinstance(number, int) or abs(number) < 10**4000 else "9" * 5001


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_WORDS = tuple(_as_bytes(text) for text in (*TEXTS, *map(_short, NUMBERS)))

# JSON, one value or one a line


def json_changed(content: bytes, rng: Random) -> bytes:
    """A value, a key or a whole branch of a JSON text becomes something else."""
    lines = content.split(b"\n")
    places = [i for i, line in enumerate(lines) if line.strip()]
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        if not places:
            return injected(content, rng)
        i = rng.choice(places)
        try:
            record = json.loads(lines[i])
        except (ValueError, RecursionError):
            return words_changed(content, rng)
        lines[i] = _dumped(_branch_changed(record, rng), rng)
        return b"\n".join(lines)
    return _dumped(_branch_changed(whole, rng), rng)


def _dumped(data: Any, rng: Random) -> bytes:
    try:
        text = _json_text(data)
    except (ValueError, RecursionError):
        text = "null"
    if rng.random() < 0.05:  # a key twice
        text = re.sub(r'("[^"]{1,30}":)', r"\1 1, \1", text, count=1)
    return text.encode("utf-8", "surrogatepass")


def _json_text(data: Any) -> str:
    """Like json.dumps, with numbers of any length and half characters as they are."""
    if isinstance(data, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {_json_text(item)}" for key, item in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(map(_json_text, data)) + "]"
    if isinstance(data, int) and not isinstance(data, bool):
        return _short(data)
    return json.dumps(data)


def _branch_changed(data: Any, rng: Random) -> Any:
    """The same with one place changed, drawn on the way down."""
    if isinstance(data, dict) and data and rng.random() < 0.85:
        key = rng.choice(list(data))
        draw = rng.random()
        if draw < 0.1:
            return {name: item for name, item in data.items() if name != key}
        if draw < 0.2:
            return {**data, str(rng.choice(TEXTS)): value(rng)}
        if draw < 0.25:
            return {(str(rng.choice(TEXTS)) if name == key else name): item for name, item in data.items()}
        if draw < 0.3:
            return {name: (data[rng.choice(list(data))] if name == key else item) for name, item in data.items()}
        return {**data, key: _branch_changed(data[key], rng)}
    if isinstance(data, list) and data and rng.random() < 0.85:
        i = rng.randrange(len(data))
        draw = rng.random()
        if draw < 0.1:
            return data[:i] + data[i + 1 :]
        if draw < 0.2:
            return data[:i] + [data[i]] * rng.choice((2, 3, 30)) + data[i + 1 :]
        return [*data[:i], _branch_changed(data[i], rng), *data[i + 1 :]]
    return value(rng)


def yaml_changed(content: bytes, rng: Random) -> bytes:
    """A value of a YAML text becomes something else; or an alias, an anchor, a tag is put in."""
    if rng.random() < 0.3:
        lines = content.split(b"\n")
        i = rng.randrange(len(lines))
        extra = (b" &a", b" *a", b" !!python/object:os.system x", b" !!binary x", b" !!float x", b" <<: *a", b" ? [a]")
        lines[i] += rng.choice(
            (*extra, b" |", b" >", b" {", b" [", b": :", b" 010", b" 08", b" 1_000", b" 0x10", b" .inf", b" =", b" %")
        )
        return b"\n".join(lines)
    try:
        data = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        spoilt = yaml.dump(
            _branch_changed(data, rng), Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), allow_unicode=True
        )
    except (yaml.YAMLError, ValueError, RecursionError, UnicodeError):
        return words_changed(content, rng)
    return spoilt.encode("utf-8", "surrogatepass")


# Tables


def table_changed(content: bytes, rng: Random) -> bytes:
    """Cells, columns and rows of a table become something else."""
    text = content.decode("utf-8", "replace")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return words_changed(content, rng)
    rows = [row for row in rows if row]
    if not rows:
        return injected(content, rng)
    rng.choice(_TABLE_CHANGES)(rows, rng)
    out = io.StringIO()
    style = {
        "delimiter": rng.choice((delimiter, delimiter, delimiter, ";", "\t")),
        "lineterminator": rng.choice(("\n", "\n", "\r\n")),
    }
    try:
        csv.writer(out, **style).writerows(rows)  # type: ignore[arg-type]
    except (csv.Error, ValueError):
        return words_changed(content, rng)
    return out.getvalue().encode("utf-8", "surrogatepass")


def _cells(rows: list[list[str]], rng: Random) -> None:
    for _ in range(rng.choice((1, 1, 3, 20))):
        row = rng.choice(rows)
        if row:
            row[rng.randrange(len(row))] = str(rng.choice(TEXTS))


def _a_column(rows: list[list[str]], rng: Random) -> None:
    i = rng.randrange(len(rows[0]))
    what = rng.randrange(4)
    for number, row in enumerate(rows):
        if i < len(row) and what == 0:
            del row[i]
        elif i < len(row) and what == 1:
            row.append(row[i])
        elif i < len(row) and what == 2 and number:
            row[i] = str(rng.choice(TEXTS))
        elif what == 3:
            row.insert(i, str(rng.choice(TEXTS)))


def _header(rows: list[list[str]], rng: Random) -> None:
    i = rng.randrange(len(rows[0]))
    rows[0][i] = rng.choice(
        (rows[0][i].upper(), rows[0][i].title(), f" {rows[0][i]} ", rng.choice(rows[0]), *TEXTS[:6])
    )


def _row_lengths(rows: list[list[str]], rng: Random) -> None:
    row = rng.choice(rows)
    row += [str(rng.choice(TEXTS))] * rng.choice((1, 3, 100))
    del row[: rng.choice((0, 0, 1))]


def _many_columns(rows: list[list[str]], rng: Random) -> None:
    n = rng.choice((*((200,) * 17), 2_000, 2_000, 10_000))
    same = rng.random() < 0.3
    for number, row in enumerate(rows):
        row += [("same" if same else f"c{i}") if not number else "1" for i in range(n)]


def _long_field(rows: list[list[str]], rng: Random) -> None:
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice(("x", " ", "a,b\n", "é", "1", "(", "/")) * rng.choice(
        (*((2_000,) * 14), 50_000, 200_000)
    )


_TABLE_CHANGES = (_cells, _cells, _cells, _a_column, _header, _row_lengths, _many_columns, _long_field)


# Zips and arrays


def zip_changed(content: bytes, rng: Random) -> bytes:
    """One entry changed in kind, or the zip itself: names, sizes, methods, bombs."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            entries = [(entry.filename, packed.read(entry)) for entry in packed.infolist()]
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        NotImplementedError,
        RuntimeError,
        OSError,
        ValueError,
        EOFError,
    ):
        return flipped(content, rng)
    if not entries:
        return flipped(content, rng)
    i = rng.randrange(len(entries))
    name, inner = entries[i]
    what = rng.randrange(8)
    if what < 3:
        entries[i] = (name, changed(name, inner, rng))
    elif what == 3:
        entries[i] = (
            rng.choice(
                (
                    "../out.txt",
                    "/abs",
                    "a/../../b",
                    "C:x",
                    "a\\b",
                    "é\u0000x",
                    "x" * 300,
                    "con",
                    "a//b",
                    ".",
                    "..",
                    "d/",
                )
            ),
            inner,
        )
    elif what == 4:
        entries.append((name, rng.choice((inner, b"", b"\x00" * 3_000_000))))
    elif what == 5:
        del entries[i]
    elif what == 6:
        entries += [(f"many/{n}", b"") for n in range(rng.choice((50, 300)))]
    out = io.BytesIO()
    method = (
        zipfile.ZIP_DEFLATED
        if rng.random() < 0.8
        else rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    )
    try:
        with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(out, "w", method) as packed:
            for entry_name, data in entries:
                info = zipfile.ZipInfo(entry_name)
                info.compress_type = method
                info.external_attr = (0o120777 if rng.random() < 0.03 else 0o644) << 16
                packed.writestr(info, data)
    except (ValueError, UnicodeError, RuntimeError):
        return flipped(content, rng)
    made = bytearray(out.getvalue())
    if what == 7:
        _header_field(made, rng)
    return bytes(made)


def _header_field(made: bytearray, rng: Random) -> None:
    """A field of an entry's header set to something wild: flags, method, checksum, sizes, offsets."""
    mark = rng.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"))
    places = [match.start() for match in re.finditer(re.escape(mark), bytes(made))]
    if not places:
        return
    place = rng.choice(places) + rng.randrange(4, 30)
    wild = rng.choice((b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x01\x00", b"\x63\x00", struct.pack("<I", 2**31)))
    made[place : place + len(wild)] = wild


def array_changed(content: bytes, rng: Random) -> bytes:
    """The header of a .npy array: another shape, of terabytes too, another type, or no header at all."""
    end = content.find(b"\n")
    if not content.startswith(b"\x93NUMPY") or end < 0:
        return flipped(content, rng)
    header = content[10:end].decode("latin-1")
    shape = rng.choice(
        (
            "(1000000000000,)",
            "(0,)",
            "()",
            "(-1,)",
            "(2, 3)",
            "(10, 100000000000)",
            "(1.5,)",
            "('a',)",
            "(True,)",
            "(1" + "0" * 30 + ",)",
        )
    )
    kind = rng.choice(
        ("'|O'", "'<f8'", "'<i8'", "'<U9'", "'|S1'", "'<c16'", "'<M8[s]'", "[('a', '<f8')]", "'x'", "'|b1'", "'<f2'")
    )
    if rng.random() < 0.5:
        header = re.sub(r"'shape': \([^)]*\)", lambda _: f"'shape': {shape}", header)
    else:
        header = re.sub(r"'descr': [^,]*,", lambda _: f"'descr': {kind},", header)
    line = header.rstrip().encode("latin-1") + b"\n"
    return content[:8] + struct.pack("<H", len(line)) + line + content[end + 1 :]


def tensors_changed(content: bytes, rng: Random) -> bytes:
    """The header of a safetensors file: its sizes and types, or the JSON texts that it carries."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
        carried = header.get("__metadata__") or {}
        if carried and rng.random() < 0.6:
            key = rng.choice(sorted(carried))
            carried[key] = json_changed(carried[key].encode(), rng).decode("utf-8", "replace")
            made = json.dumps(header).encode()
        else:
            made = json_changed(content[8 : 8 + length], rng)
    except (ValueError, AttributeError, RecursionError):
        return flipped(content, rng)
    size = len(made) if rng.random() < 0.95 else rng.choice((0, 2**62, length))
    return size.to_bytes(8, "little") + made + content[8 + length :]


_ANY: tuple[Change, ...] = (flipped, cut, repeated, injected, deep, encoded)
_TEXT: tuple[Change, ...] = (*_ANY, lines_changed, words_changed, words_changed)
_OF_KIND: tuple[tuple[tuple[str, ...], tuple[Change, ...]], ...] = (
    ((".json", ".jsonl"), (*_TEXT, *([json_changed] * 12))),
    ((".csv", ".tsv"), (*_TEXT, *([table_changed] * 12))),
    ((".yaml", ".yml"), (*_TEXT, *([yaml_changed] * 12))),
    ((".zip", ".npz", ".xlsx", ".eval"), (flipped, cut, *([zip_changed] * 6))),
    ((".npy",), (flipped, cut, *([array_changed] * 4))),
    ((".safetensors",), (flipped, cut, injected, *([tensors_changed] * 6))),
    ((".db", ".parquet", ".arrow", ".pt"), (flipped, cut, repeated, injected)),
)


LARGEST = 2_000_000
"""Bytes of an input: what takes seconds because it is large is no fault."""


def changed(name: str, content: bytes, rng: Random) -> bytes:
    """A file's content, spoilt once to three times in ways that suit its kind."""
    changes = next((changes for suffixes, changes in _OF_KIND if name.endswith(suffixes)), _TEXT)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(changes)(content, rng)[:LARGEST]
    return content
