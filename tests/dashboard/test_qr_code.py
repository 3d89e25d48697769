"""QR codes: the codes of the standard against published values, and a reader that goes the other way."""

import pytest

from dialometer.web.dashboard.qr_code import (
    MASKS,
    data_places,
    error_correction,
    fixed_pattern,
    format_bits,
    qr_modules,
    qr_svg,
    version_bits,
)

# Version, its blocks of data, and error correction codewords per block at level M (ISO/IEC 18004, table 9).
BLOCKS = {1: ([16], 10), 4: ([32] * 2, 18), 8: ([38] * 2 + [39] * 2, 22), 10: ([43] * 4 + [44], 26)}


def test_error_correction_is_the_published_one():
    """HELLO WORLD in version 1-M, as worked out at thonky.com/qr-code-tutorial/error-correction-coding."""
    data = [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17]
    assert error_correction(data, 10) == [196, 35, 39, 119, 235, 215, 231, 226, 93, 23]


def test_format_and_version_are_the_published_ones():
    """ISO/IEC 18004, tables C.1 and D.1."""
    assert f"{format_bits(0):015b}" == "101010000010010"
    assert f"{format_bits(5):015b}" == "100000011001110"
    assert f"{version_bits(7):018b}" == "000111110010010100"
    assert f"{version_bits(10):018b}" == "001010010011010011"


def read(modules):
    """The text of a code that is read as a scanner does: format, mask, codewords, blocks, length, bytes."""
    size = len(modules)
    version = (size - 17) // 4
    around = [(8, x) for x in (0, 1, 2, 3, 4, 5, 7, 8)] + [(y, 8) for y in (7, 5, 4, 3, 2, 1, 0)]
    form = int("".join(str(int(modules[y][x])) for y, x in around), 2)
    mask = next(number for number in range(8) if format_bits(number) == form)
    beside = [(y, 8) for y in range(size - 1, size - 8, -1)] + [(8, x) for x in range(size - 8, size)]
    assert int("".join(str(int(modules[y][x])) for y, x in beside), 2) == form, "both copies say the same"
    places = data_places(fixed_pattern(version))
    bits = "".join(str(int(modules[y][x] ^ MASKS[mask](y, x))) for y, x in places)
    words = [int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8)]
    sizes, n_correction = BLOCKS[version]
    blocks = [[] for _ in sizes]
    for i in range(max(sizes)):
        for block, n in zip(blocks, sizes, strict=True):
            if i < n:
                block.append(words.pop(0))
    corrections = [[words[i * len(sizes) + b] for i in range(n_correction)] for b in range(len(sizes))]
    assert [error_correction(block, n_correction) for block in blocks] == corrections
    stream = "".join(f"{word:08b}" for block in blocks for word in block)
    n_bits = 8 if version < 10 else 16
    assert stream[:4] == "0100", "bytes"
    length = int(stream[4 : 4 + n_bits], 2)
    content = stream[4 + n_bits :]
    return bytes(int(content[8 * i : 8 * i + 8], 2) for i in range(length)).decode()


@pytest.mark.parametrize("n", [1, 14, 62, 150, 213])
def test_a_reader_finds_the_text(n):
    text = ("https://study.example.org/likert/?é" * 9).encode()[: n - 1].decode(errors="ignore")
    text += "x" * (n - len(text.encode()))
    modules = qr_modules(text)
    assert read(modules) == text
    size = len(modules)
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        rows = ["".join("#" if modules[top + y][left + x] else "." for x in range(7)) for y in range(7)]
        assert rows == ["#######", "#.....#", "#.###.#", "#.###.#", "#.###.#", "#.....#", "#######"]
    assert modules[size - 8][8], "the module that is always dark"


def test_what_is_too_long_has_no_code():
    assert qr_modules("x" * 214) is None
    assert qr_svg("x" * 214, "nothing") == ""
    assert "<svg" in qr_svg("https://example.org/", "A link")
