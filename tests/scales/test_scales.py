import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialometer.errors import AnswerError, UnknownName
from dialometer.model.scale import Scale
from dialometer.scales import SCALES
from dialometer.scales.likert import Likert
from dialometer.scales.magnitude import Magnitude
from dialometer.scales.text import Text

EXAMPLES = {
    "likert": {"points": 5},
    "slider": {"low": 0, "high": 10},
    "magnitude": {"modulus": 100},
    "pairwise": {"allow_tie": True},
    "best_worst": {},
    "ranking": {},
    "choice": {"options": ["yes", "no"]},
    "multiple": {"options": ["a", "b", "c"], "at_least": 1, "at_most": 2},
    "text": {"max_length": 20},
    "spans": {"mark_categories": [{"name": "false", "label": "Not true"}, {"name": "rude"}]},
    "checklist": {
        "points": [
            {"name": "right", "text": "Is it right?", "weight": 3},
            {"name": "invents", "text": "Does it invent facts?", "wanted": False},
            {"name": "polite", "text": "Is it polite?"},
        ]
    },
}
PLACES = ("1", "2", "3")


def make(name, **config):
    return SCALES.get(name).model_validate({"type": name, **EXAMPLES[name], **config})


def test_every_scale_has_an_example_here():
    assert sorted(EXAMPLES) == SCALES.names()


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("likert", "4", 4),
        ("likert", 4.0, 4),
        ("slider", "7,5", 7.5),
        ("magnitude", " 120 ", 120),
        ("magnitude", "33.5", 33.5),
        ("pairwise", "2", "2"),
        ("pairwise", "tie", "tie"),
        ("best_worst", {"best": "1", "worst": "3"}, {"best": "1", "worst": "3"}),
        ("ranking", ["3", "1", "2"], ["3", "1", "2"]),
        ("ranking", {"1": "2", "2": "1", "3": "3"}, ["2", "1", "3"]),
        ("choice", "yes", "yes"),
        ("multiple", ["c", "a"], ["a", "c"]),
        ("text", "  caf\u0065\u0301 ", "caf\u00e9"),
        (
            "checklist",
            {"right": True, "invents": "No", "polite": "n/a"},
            {"right": "yes", "invents": "no", "polite": "not_applicable"},
        ),
    ],
)
def test_answers_are_read(name, raw, value):
    assert make(name).parse(raw, PLACES) == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("likert", "6"),
        ("likert", "3.5"),
        ("likert", True),
        ("likert", None),
        ("slider", "11"),
        ("slider", "nan"),
        ("magnitude", "-1"),
        ("magnitude", "0"),
        ("magnitude", "0,00"),
        ("magnitude", "inf"),
        ("magnitude", "1_000"),
        ("magnitude", "ten"),
        ("pairwise", "4"),
        ("pairwise", "cannot_tell"),
        ("best_worst", {"best": "1", "worst": "1"}),
        ("best_worst", {"best": "1"}),
        ("best_worst", "1"),
        ("ranking", ["1", "2"]),
        ("ranking", ["1", "1", "2"]),
        ("ranking", {"1": "1", "2": "1", "3": "3"}),
        ("choice", "maybe"),
        ("multiple", []),
        ("multiple", ["a", "b", "c"]),
        ("multiple", ["z"]),
        ("text", " "),
        ("text", "x" * 21),
        ("text", "a\x00b"),
        ("checklist", {"right": "yes", "invents": "no"}),
        ("checklist", {"right": "yes", "invents": "no", "polite": "perhaps"}),
        ("checklist", {"right": "yes", "invents": "no", "polite": "yes", "stray": "no"}),
        ("checklist", "yes"),
    ],
)
def test_wrong_answers_get_a_sentence(name, raw):
    with pytest.raises(AnswerError) as caught:
        make(name).parse(raw, PLACES)
    assert caught.value.message.endswith(".")


@given(
    raw=st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=3))
    | st.dictionaries(st.text(max_size=5), st.text(max_size=3)),
    name=st.sampled_from(sorted(EXAMPLES)),
)
def test_nothing_but_an_answer_error_comes_out(name, raw):
    """Whatever is sent, a scale answers with a value of its own form or a sentence; and reading a value again keeps it."""
    scale = make(name)
    try:
        value = scale.parse(raw, PLACES)
    except AnswerError:
        return
    assert scale.parse(value, PLACES) == value


def test_systems_replace_places_only_where_alternatives_are_compared():
    names = {"1": "hred", "2": "thred", "3": "seq2seq"}
    assert make("pairwise").rename("2", names) == "thred"
    assert make("pairwise").rename("tie", names) == "tie"
    assert make("best_worst").rename({"best": "3", "worst": "1"}, names) == {"best": "seq2seq", "worst": "hred"}
    assert make("ranking").rename(["2", "3", "1"], names) == ["thred", "seq2seq", "hred"]
    assert make("ranking", options=["1", "2"]).rename(["1", "2"], names) == ["1", "2"]
    assert make("likert").rename(2, names) == 2


def test_number_in_text_is_bounded():
    age = make("text", format="integer", minimum=18, maximum=99)
    assert age.parse("34") == 34
    for raw in ("17", "100", "34.5", "old"):
        with pytest.raises(AnswerError):
            age.parse(raw)


def test_labels_must_be_on_the_scale():
    with pytest.raises(ValueError, match="6"):
        Likert(points=5, labels={6: "superb"})


def test_likert_categories_do_not_depend_on_answers():
    assert Likert(points=7, first=0).categories() == [0, 1, 2, 3, 4, 5, 6]


def test_unknown_scale_suggests():
    with pytest.raises(UnknownName, match="did you mean 'likert'"):
        SCALES.get("lickert")


def test_scales_are_frozen():
    scale: Scale = Magnitude(modulus=100)
    with pytest.raises(ValueError, match="frozen"):
        scale.modulus = 5


def test_magnitudes_are_above_zero_and_slips_are_asked_about():
    scale = Magnitude(modulus=100)
    with pytest.raises(AnswerError, match="above zero"):
        scale.parse("0")
    assert scale.parse("0.001") == 0.001
    assert scale.parse_collected("0") == 0  # other studies allow it
    with pytest.raises(AnswerError, match="at least 1"):
        Magnitude(minimum=1).parse_collected("0")
    assert scale.doubt(scale.parse("250")) == scale.doubt(scale.parse("0.5")) == ""
    assert scale.doubt(scale.parse("1e12")).startswith(
        "Did you mean 1\u202f000\u202f000\u202f000\u202f000? If so, continue"
    )
    assert "0.000003" in scale.doubt(scale.parse("3e-6"))
    assert "1e+40" in scale.doubt(scale.parse("1e40"))
    assert scale.doubt(2e6)
    assert not scale.doubt(2e6, anchor=1e6)  # far from 100, near to the value shown


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("1 000", 1000),
        ("1\u202f000\u202f000", 1_000_000),
        ("1'250", 1250),
        ("1,000,000", 1_000_000),
        ("1.000.000", 1_000_000),
        ("1,000.5", 1000.5),
        ("1.000,5", 1000.5),
        ("1,5", 1.5),
        ("12,3456", 12.3456),
        ("0,500", 0.5),
        ("\u0663\u066b\u0665", 3.5),
    ],
)
def test_thousands_are_read_where_they_are_clear(typed, number):
    assert Magnitude().parse(typed) == number


def test_a_comma_before_three_digits_is_asked_about():
    scale = Magnitude(modulus=100)
    for typed, asked in {"1,000": "1000 or 1", "1.250": "1250 or 1.25", "12,345": "12345 or 12.3450"}.items():
        with pytest.raises(AnswerError, match=f"Do you mean {asked}\\?"):
            scale.parse(typed)
    assert scale.parse("12.3450") == 12.345  # what the question suggests is taken
    assert scale.parse(1.125) == scale.parse_collected("1.125") == 1.125  # programs and files write points
    with pytest.raises(AnswerError, match="1000 or 1"):
        scale.parse_collected("1,000")
    for form in ("number", "integer"):
        with pytest.raises(AnswerError, match="1000 or 1"):
            Text(format=form).parse("1,000")
    assert Text(format="number").parse("1.250") == 1.25
    for wrong in ("1,00,000", "1 00", "1,2,3", "1_000"):
        with pytest.raises(AnswerError, match="enter a number"):
            scale.parse(wrong)


def test_both_are_bad_is_an_answer_of_its_own():
    scale = SCALES.get("pairwise").model_validate({"allow_tie": True, "allow_both_bad": True})
    assert scale.parse("both_bad", ["1", "2"]) == "both_bad"
    assert scale.extra_options() == ["tie", "both_bad"]
    assert scale.describe() == "choice of one of two with tie and both bad"
    with pytest.raises(AnswerError, match="one of the answers"):
        scale.parse("cannot_tell", ["1", "2"])


def test_a_checklist_is_the_weighted_share_of_the_points_that_apply():
    scale = make("checklist")
    assert scale.number({"right": "yes", "invents": "yes", "polite": "yes"}) == 80
    assert scale.number({"right": "yes", "invents": "no", "polite": "not_applicable"}) == 100
    assert scale.number({"right": "no", "invents": "no", "polite": "not_applicable"}) == 25
    assert scale.number(dict.fromkeys(("right", "invents", "polite"), "not_applicable")) is None
    assert scale.details({"right": "yes", "invents": "yes", "polite": "not_applicable"}) == [
        ("right", "yes", True, 3),
        ("invents", "yes", False, 1),
        ("polite", "not_applicable", None, 1),
    ]
    assert '"invents" = Does it invent facts?' in scale.answer_format()
    with pytest.raises(AnswerError, match="this one is missing: “Is it polite"):
        scale.parse({"right": "yes", "invents": "no"})
    with pytest.raises(AnswerError, match="with yes or no"):
        make("checklist", allow_not_applicable=False).parse(dict.fromkeys(("right", "invents", "polite"), "n/a"))
    with pytest.raises(ValueError, match="given twice: right"):
        make("checklist", points=[{"name": "right", "text": "?"}, {"name": "right", "text": "!"}])
