"""QR codes (ISO/IEC 18004) for links: bytes, error correction level M, versions 1 to 10, drawn as SVG.

A link to a study is short, so nothing else of the standard is needed; a longer text gives no code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from markupsafe import Markup, escape

# Level M: error correction codewords per block, then (number of blocks, data codewords of each) of both groups.
_BLOCKS: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {
    1: (10, ((1, 16),)),
    2: (16, ((1, 28),)),
    3: (26, ((1, 44),)),
    4: (18, ((2, 32),)),
    5: (24, ((2, 43),)),
    6: (16, ((4, 27),)),
    7: (18, ((4, 31),)),
    8: (22, ((2, 38), (2, 39))),
    9: (22, ((3, 36), (2, 37))),
    10: (26, ((4, 43), (1, 44))),
}
_ALIGNED: dict[int, tuple[int, ...]] = {
    1: (),
    2: (6, 18),
    3: (6, 22),
    4: (6, 26),
    5: (6, 30),
    6: (6, 34),
    7: (6, 22, 38),
    8: (6, 24, 42),
    9: (6, 26, 46),
    10: (6, 28, 50),
}
_LEVEL_M = 0b00
MASKS: tuple[Callable[[int, int], bool], ...] = (
    lambda y, x: (y + x) % 2 == 0,
    lambda y, _x: y % 2 == 0,
    lambda _y, x: x % 3 == 0,
    lambda y, x: (y + x) % 3 == 0,
    lambda y, x: (y // 2 + x // 3) % 2 == 0,
    lambda y, x: y * x % 2 + y * x % 3 == 0,
    lambda y, x: (y * x % 2 + y * x % 3) % 2 == 0,
    lambda y, x: ((y + x) % 2 + y * x % 3) % 2 == 0,
)
Modules = list[list[bool | None]]
"""Rows of dark and light modules; None where nothing is decided yet."""


@cache
def _tables() -> tuple[list[int], list[int]]:
    """Powers and logarithms in the field of 256 elements with the polynomial 0x11D."""
    powers, logs, value = [0] * 512, [0] * 256, 1
    for exponent in range(255):
        powers[exponent] = powers[exponent + 255] = value
        logs[value] = exponent
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return powers, logs


def error_correction(data: Sequence[int], n: int) -> list[int]:
    """The Reed-Solomon codewords of a block."""
    powers, logs = _tables()
    generator = [1]
    for i in range(n):
        product = [*generator, 0]
        for j, factor in enumerate(generator):
            product[j + 1] ^= powers[logs[factor] + i] if factor else 0
        generator = product
    rest = [*data, *[0] * n]
    for i in range(len(data)):
        lead = rest[i]
        if lead:
            for j, factor in enumerate(generator):
                rest[i + j] ^= powers[logs[factor] + logs[lead]]
    return rest[len(data) :]


def format_bits(mask: int) -> int:
    """Level and mask with their BCH code, 15 bits."""
    data = _LEVEL_M << 3 | mask
    rest = data << 10
    for shift in range(4, -1, -1):
        if rest >> (shift + 10) & 1:
            rest ^= 0b10100110111 << shift
    return (data << 10 | rest) ^ 0b101010000010010


def version_bits(version: int) -> int:
    """The version with its Golay code, 18 bits; from version 7 on."""
    rest = version << 12
    for shift in range(5, -1, -1):
        if rest >> (shift + 12) & 1:
            rest ^= 0b1111100100101 << shift
    return version << 12 | rest


def codewords(text: bytes, version: int) -> list[int]:
    """The text with header, padding and error correction, its blocks interleaved."""
    n_correction, groups = _BLOCKS[version]
    sizes = [size for n_blocks, size in groups for _ in range(n_blocks)]
    n_length_bits = 8 if version < 10 else 16
    bits = f"0100{len(text):0{n_length_bits}b}" + "".join(f"{byte:08b}" for byte in text)
    bits += "0" * min(4, 8 * sum(sizes) - len(bits))
    bits += "0" * (-len(bits) % 8)
    data = [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]
    data += [(0xEC, 0x11)[i % 2] for i in range(sum(sizes) - len(data))]
    blocks, at = [], 0
    for size in sizes:
        blocks.append(data[at : at + size])
        at += size
    corrections = [error_correction(block, n_correction) for block in blocks]
    interleaved = [block[i] for i in range(max(sizes)) for block in blocks if i < len(block)]
    return interleaved + [block[i] for i in range(n_correction) for block in corrections]


def _capacity(version: int) -> int:
    n_data = sum(n_blocks * size for n_blocks, size in _BLOCKS[version][1])
    return n_data - (2 if version < 10 else 3)


def fixed_pattern(version: int) -> Modules:
    """Finders, timing, alignment and version; places of the format are taken but light."""
    size = 17 + 4 * version
    modules: Modules = [[None] * size for _ in range(size)]
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        for y in range(max(0, top - 1), min(size, top + 8)):
            for x in range(max(0, left - 1), min(size, left + 8)):
                away = max(abs(y - top - 3), abs(x - left - 3))
                modules[y][x] = away in (0, 1, 3)
    for y in _ALIGNED[version]:
        for x in _ALIGNED[version]:
            if modules[y][x] is None:
                for dy in range(-2, 3):
                    for dx in range(-2, 3):
                        modules[y + dy][x + dx] = max(abs(dy), abs(dx)) != 1
    for i in range(8, size - 8):
        for y, x in ((6, i), (i, 6)):
            if modules[y][x] is None:
                modules[y][x] = i % 2 == 0
    for y, x in _format_places(size)[0] + _format_places(size)[1]:
        modules[y][x] = False
    modules[size - 8][8] = True
    if version >= 7:
        for i in range(18):
            is_dark = bool(version_bits(version) >> i & 1)
            modules[i // 3][size - 11 + i % 3] = modules[size - 11 + i % 3][i // 3] = is_dark
    return modules


def _format_places(size: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where the bits of the format stand, the lowest first, in both copies."""
    around = [(y, 8) for y in (0, 1, 2, 3, 4, 5, 7, 8)] + [(8, x) for x in (7, 5, 4, 3, 2, 1, 0)]
    beside = [(8, size - 1 - i) for i in range(8)] + [(size - 7 + i, 8) for i in range(7)]
    return around, beside


def data_places(fixed: Modules) -> list[tuple[int, int]]:
    """Where the bits of the codewords stand: in columns of two, up and down, from the lower right corner."""
    size = len(fixed)
    places, is_upward = [], True
    for right in [*range(size - 1, 6, -2), 5, 3, 1]:
        for y in range(size - 1, -1, -1) if is_upward else range(size):
            places += [(y, x) for x in (right, right - 1) if fixed[y][x] is None]
        is_upward = not is_upward
    return places


def qr_modules(text: str) -> list[list[bool]] | None:
    """The code of a text; None for one that is too long."""
    content = text.encode()
    version = next((known for known in _BLOCKS if len(content) <= _capacity(known)), None)
    if version is None:
        return None
    fixed = fixed_pattern(version)
    bits = [bool(word >> i & 1) for word in codewords(content, version) for i in range(7, -1, -1)]
    drawn = []
    for number, is_flipped in enumerate(MASKS):
        modules = [[bool(module) for module in row] for row in fixed]
        places = data_places(fixed)
        for i, (y, x) in enumerate(places):
            modules[y][x] = (bits[i] if i < len(bits) else False) ^ is_flipped(y, x)
        for places_of_format in _format_places(len(fixed)):
            for i, (y, x) in enumerate(places_of_format):
                modules[y][x] = bool(format_bits(number) >> i & 1)
        drawn.append(modules)
    return min(drawn, key=_penalty)


def _penalty(modules: list[list[bool]]) -> int:
    """How hard a code is to read: long runs, blocks, what looks like a finder, too much of one shade."""
    size, points = len(modules), 0
    for lines in (modules, [list(column) for column in zip(*modules, strict=True)]):
        for line in lines:
            text = "".join("1" if module else "0" for module in line)
            run = 1
            for i in range(1, size + 1):
                if i < size and line[i] == line[i - 1]:
                    run += 1
                    continue
                points += run - 2 if run >= 5 else 0
                run = 1
            points += 40 * sum(text.startswith(sign, i) for i in range(size) for sign in ("10111010000", "00001011101"))
    for y in range(size - 1):
        for x in range(size - 1):
            square = (modules[y][x], modules[y][x + 1], modules[y + 1][x], modules[y + 1][x + 1])
            points += 3 if len(set(square)) == 1 else 0
    share = sum(map(sum, modules)) / size**2
    return points + 10 * int(abs(share - 0.5) * 20)


def qr_svg(text: str, label: str) -> Markup:
    """The code as a picture, dark on light with the quiet zone that readers need; empty for a text that is too long."""
    modules = qr_modules(text)
    if modules is None:
        return Markup("")
    size = len(modules) + 8
    path = "".join(
        f"M{x + 4} {y + 4}h1v1h-1z" for y, row in enumerate(modules) for x, is_dark in enumerate(row) if is_dark
    )
    return Markup(  # nosec B704  # the label is escaped
        f'<svg class="qr" viewBox="0 0 {size} {size}" role="img" aria-label="{escape(label)}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{path}" fill="#000"/></svg>'
    )
