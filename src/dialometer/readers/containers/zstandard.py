"""Entries of a zip that are packed with Zstandard, as Inspect packs its logs today; Python knows it from 3.14 on.

polars unpacks them, since it reads packed tables. It would unpack anything to its end, so how much can come out is known before:
a block of Zstandard holds 128 KiB at most (RFC 8878, section 3.1.1.2), and the blocks are counted. The zip's checksum shows that
the text came back as it was.
"""

from __future__ import annotations

import struct
import zipfile
import zlib

from dialometer.readers.containers.unpacking import Allowance

METHOD = 93
"""How a zip names this way of packing."""
MOST_OF_A_BLOCK = 128 * 2**10
_FRAME, _SKIPPED = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
_NO_JSON = "\x1f"
"""A sign that no JSON text holds, so that polars takes each line as one cell."""


def read_zstandard(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, allowance: Allowance) -> bytes:
    """The content of an entry that holds JSON."""
    import polars as pl  # noqa: PLC0415 - heavy, and only these files need it

    data = _packed_bytes(packed, entry)
    allowance.take(most_bytes(data))
    try:
        lines = pl.read_csv(data, has_header=False, separator=_NO_JSON, quote_char=None, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise zipfile.BadZipFile(f"{entry.filename} is damaged") from error
    text = "\n".join(line or "" for line in lines.to_series()).encode()
    content = next((text + end for end in (b"", b"\n") if zlib.crc32(text + end) == entry.CRC), None)
    if content is None:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {entry.filename!r}")
    return content


def most_bytes(data: bytes) -> int:
    """How much can come out of packed data, by its blocks. Raises ``BadZipFile`` where it is cut or no Zstandard."""
    at = total = 0
    while at < len(data):
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic in _SKIPPED:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != _FRAME or at + 5 > len(data):
            raise zipfile.BadZipFile("no frame of Zstandard")
        descriptor = data[at + 4]
        is_single = descriptor >> 5 & 1
        n_size = (is_single, 2, 4, 8)[descriptor >> 6]
        at += 5 + (1 - is_single) + (0, 1, 2, 4)[descriptor & 3] + n_size
        is_last = False
        while not is_last:
            header = int.from_bytes(data[at : at + 3], "little")
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            at += 3 + (1 if kind == 1 else size)  # of kind 1 is a byte that is repeated
            if at > len(data):
                raise zipfile.BadZipFile("packed data end too early")
            total += size if kind < 2 else MOST_OF_A_BLOCK
        at += 4 if descriptor >> 2 & 1 else 0  # a checksum
    return total


def _packed_bytes(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """An entry as it is in the file, after its local header."""
    if packed.fp is None or entry.flag_bits & 1:
        raise zipfile.BadZipFile(f"{entry.filename} is locked by a password")
    packed.fp.seek(entry.header_offset)
    header = packed.fp.read(30)
    if header[:4] != b"PK\3\4" or len(header) < 30:
        raise zipfile.BadZipFile("Bad magic number for file header")
    n_name, n_extra = struct.unpack("<HH", header[26:30])
    packed.fp.seek(n_name + n_extra, 1)
    data = packed.fp.read(entry.compress_size)
    return bytes(data)
