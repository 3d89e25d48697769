"""Colours measured: contrast with both backgrounds, and distance as colour-blind readers see them.

Contrast is WCAG 2.2's ratio. Colour blindness is simulated with the matrices of Machado, Oliveira & Fernandes (2009,
"A Physiologically-based Model for Simulation of Color Vision Deficiency", severity 1); distance is CIE76 in CIELAB, where
about 2.3 is just noticeable.
"""

import itertools

import numpy as np
import pytest

from dialometer.report.theme import DARK, LIGHT, drawing_rules, narrow_form, themed, with_narrow

VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def linear(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, two):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def series(theme):
    return [theme[f"series-{i}"] for i in range(1, 9)]


def test_the_measures_are_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.01)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)


@THEMES
def test_text_and_marks_stand_out_from_the_background(theme):
    assert contrast(theme["ink"], theme["paper"]) >= 7
    assert contrast(theme["muted"], theme["paper"]) >= 4.5
    assert min(contrast(colour, theme["paper"]) for colour in series(theme)) >= 3


@THEMES
@pytest.mark.parametrize("vision", VISION)
def test_series_are_told_apart(theme, vision):
    seen = [lab(np.array(VISION[vision]) @ linear(colour)) for colour in series(theme)]
    distances = {(i, j): np.linalg.norm(seen[i] - seen[j]) for i, j in itertools.combinations(range(8), 2)}
    assert min(distances.values()) >= 15
    assert min(d for (i, j), d in distances.items() if j < 4) >= 20


@THEMES
def test_numbers_in_heat_maps_and_bars_can_be_read(theme):
    for ramp, n, strong in (("seq", 7, {6, 7}), ("div", 9, {1, 2, 8, 9})):
        for i in range(1, n + 1):
            ink = theme["on-strong"] if i in strong else theme["ink"]
            assert contrast(theme[f"{ramp}-{i}"], ink) >= 4.4, f"{ramp}-{i}"
    for i, colour in enumerate(series(theme), start=1):
        assert contrast(colour, theme["on-bright" if i in (2, 6, 7) else "on-strong"]) >= 3.9, f"series-{i}"


def test_every_colour_has_one_purpose_and_a_dark_twin():
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert LIGHT.keys() == DARK.keys()
    for name, colour in LIGHT.items():
        assert f'[fill="{colour}"]{{fill:var(--{name})}}' in drawing_rules()


def test_a_charts_own_configuration_wins():
    spec = {"mark": "bar", "config": {"axis": {"grid": False}, "font": "serif"}}
    full = themed(spec)
    assert full["config"]["font"] == "serif"
    assert full["config"]["axis"]["grid"] is False
    assert full["config"]["axis"]["gridColor"] == LIGHT["grid"]
    assert spec == {"mark": "bar", "config": {"axis": {"grid": False}, "font": "serif"}}


def test_narrow_form_shares_the_data():
    spec = with_narrow({"data": {"values": [1]}, "width": 700}, {"data": {"values": [1]}, "width": 300})
    assert "data" not in spec["usermeta"]["dialometer"]["narrow"]
    assert narrow_form(spec) == {"data": {"values": [1]}, "width": 300}
    assert narrow_form({"mark": "bar"}) is None
    assert "usermeta" not in themed(spec)
