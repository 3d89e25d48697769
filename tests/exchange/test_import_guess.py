"""Scales guessed from values, times in the forms of platforms, names as a study can hold them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialometer.exchange.records import KnownNames, NewNames, plain_name, read_time_ms
from dialometer.exchange.scale_guess import guess_scales
from dialometer.model.values import ObservedValues
from dialometer.scales import SCALES


def guess(*values: object, stated: str = "", hint: str = "") -> dict:
    evidence = ObservedValues()
    for value in values:
        evidence.add(value, stated=stated, hint=hint)
    return guess_scales({"q": evidence})["q"]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (["1", "5", "3"], {"type": "likert", "points": 5, "first": 1}),
        (["2", "7"], {"type": "likert", "points": 7, "first": 1}),
        (["0", "4"], {"type": "likert", "points": 5, "first": 0}),
        (["-3", "3"], {"type": "likert", "points": 7, "first": -3}),
        (["0", "10"], {"type": "likert", "points": 11, "first": 0}),
        (["1", "12"], {"type": "slider", "low": 0, "high": 100}),
        (["1.5", "4"], {"type": "slider", "low": 0, "high": 100}),
        (["0.1", "0.9"], {"type": "slider", "low": 0, "high": 1, "step": 0.01}),
        (["-10", "10.5"], {"type": "slider", "low": -10, "high": 11}),
        (["10", "101"], {"type": "magnitude"}),
        (["yes", "no", "yes"], {"type": "choice", "options": ["no", "yes"]}),
        (["1", "two"], {"type": "choice", "options": ["1", "two"]}),
        (["only this"], {"type": "text", "max_length": 100_000}),
        ([f"text {n}" for n in range(21)], {"type": "text", "max_length": 100_000}),
        (["3"], {"type": "likert", "points": 3, "first": 1}),
        (["1", "1"], {"type": "slider", "low": 0, "high": 1, "step": 0.01}),
    ],
)
def test_values_tell_their_scale(values, scale):
    assert guess(*values) == scale


def test_a_form_of_file_may_suggest_a_scale():
    assert guess("10", "100", hint="magnitude") == {"type": "magnitude"}
    assert guess("1", "6", hint="magnitude")["type"] == "likert"
    assert guess("a", "tie", hint="pairwise") == {"type": "pairwise", "allow_tie": True, "allow_cannot_tell": False}
    low, high = ObservedValues(), ObservedValues()
    low.add("7", hint="magnitude")
    high.add("70", hint="magnitude")
    assert {scale["type"] for scale in guess_scales({"low": low, "high": high}).values()} == {"magnitude"}


def test_a_stated_scale_is_kept():
    assert guess(3, 4, stated="slider") == {"type": "slider", "low": 0, "high": 100}
    assert guess(18, 70, stated="text") == {"type": "text", "format": "number"}
    assert guess(["a", "b"], stated="multiple") == {"type": "multiple", "options": ["a", "b"]}


def test_criteria_of_nearly_the_same_length_share_the_longer_scale():
    def likert(highest: int) -> ObservedValues:
        evidence = ObservedValues()
        evidence.add(1)
        evidence.add(highest)
        return evidence

    scales = guess_scales({"a": likert(7), "b": likert(6), "c": likert(5)})
    assert {name: scale["points"] for name, scale in scales.items()} == {"a": 7, "b": 7, "c": 5}


answers = st.one_of(
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.booleans(),
    st.none(),
    st.lists(st.text(max_size=5), max_size=4),
)


@given(st.lists(answers, min_size=1, max_size=30), st.sampled_from(["", *SCALES.names(), "nonsense"]), st.booleans())
def test_every_guess_is_a_valid_scale(values, kind, is_stated):
    scale = guess(*values, stated=kind if is_stated else "", hint="" if is_stated else kind)
    SCALES.get(scale["type"]).model_validate(scale)


@given(st.lists(st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9)).map(str), min_size=1, max_size=30))
def test_a_guessed_scale_of_numbers_takes_the_values_it_was_guessed_from(values):
    scale = guess(*values)
    parsed = SCALES.get(scale["type"]).model_validate(scale)
    for value in values:
        assert float(parsed.parse_collected(value)) == float(value)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2024-09-08 23:01:08", 1_725_836_468_000),
        ("2024-09-08T23:01:08Z", 1_725_836_468_000),
        ("2024-09-09T01:01:08+02:00", 1_725_836_468_000),
        ("2024-09-08T23:01:08.250Z", 1_725_836_468_250),
        ("1725836468", 1_725_836_468_000),
        ("1725836468.25", 1_725_836_468_250),
        ("1725836468250", 1_725_836_468_250),
        ("Sun Sep 08 16:01:08 PDT 2024", 1_725_836_468_000),
        ("Sun Sep 08 23:01:08 UTC 2024", 1_725_836_468_000),
        ("2024-09-08", 1_725_753_600_000),
    ],
)
def test_times_of_platforms(text, ms):
    assert read_time_ms(text) == ms


@pytest.mark.parametrize("text", ["", "4/11/2017", "20240908", "12", "noon", "Sun Sep 08 16:01:08 XYZ 2024", "9" * 40])
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match="is not a time"):
        read_time_ms(text)


@pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31", "4102444800001", "9999-12-31T23:59:59Z"])
def test_a_time_outside_reason_is_refused(text):
    with pytest.raises(ValueError, match="is not between the years 1970 and 2100"):
        read_time_ms(text)


def test_times_in_a_form_that_is_given():
    assert read_time_ms("11/4/2017 12:37:13", "%m/%d/%Y %H:%M:%S") == 1_509_799_033_000
    assert read_time_ms("11/4/2017 12:37:13", "%d/%m/%Y %H:%M:%S") == 1_491_914_233_000
    with pytest.raises(ValueError, match="of the form %d"):
        read_time_ms("11.4.2017", "%d/%m/%Y")


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_a_reason(text):
    with contextlib.suppress(ValueError):
        assert isinstance(read_time_ms(text), int)


def test_plain_names():
    assert plain_name("GPT-3.5 turbo") == "GPT-3_5_turbo"
    assert plain_name("Größe") == "Groe"
    assert plain_name("1st", "system") == "system_1st"
    assert plain_name("日本", "criterion") == "criterion"
    names = NewNames("system")
    assert [names.name(text) for text in ("a b", "a.b", "a b", "日", "本")] == [
        "a_b",
        "a_b_2",
        "a_b",
        "system",
        "system_2",
    ]


@given(st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=20, unique=True))
def test_new_names_are_valid_and_different(texts):
    import re

    names = NewNames("x")
    given_names = [names.name(text) for text in texts]
    assert len(set(given_names)) == len(texts)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_\-]{0,63}", name) for name in given_names)


def test_known_names_go_before_labels():
    known = KnownNames("system", [("a", "b"), ("b", "The other")])
    assert [known.find(text) for text in ("a", "b", "The other", "c")] == ["a", "b", "b", None]
