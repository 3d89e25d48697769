"""Items of one prompt, and transcripts that are shown again."""

from dataclasses import replace

from dialometer.model.dialogue import NO_TEXT, Turn
from dialometer.model.shared_texts import first_shown, shared_prompts
from dialometer.public.studies import new_study


def test_transcripts_are_known_by_what_is_said(tmp_path):
    """In the template, a dialogue about a topic is in two pairs at most: clove's with fern's, and with moss's."""
    study = new_study("acute", tmp_path / "study")
    shown = first_shown(study)
    assert shown["gardening-clove-moss", "clove"] == "gardening-fern-clove" == shown["gardening-fern-clove", "clove"]
    assert shown["gardening-clove-moss", "moss"] == "gardening-clove-moss"
    assert len(set(shown.items())) == len(shown)
    assert not shared_prompts(study)
    assert not first_shown(new_study("pairs", tmp_path / "pairs"))


def test_what_is_not_known_or_too_short_is_not_the_same(tmp_path):
    study = new_study("acute", tmp_path / "study")
    for turns in ((Turn("Agent", NO_TEXT),), (Turn("User", "Hi"), Turn("Agent", NO_TEXT)), (Turn("Agent", "Yes."),)):
        items = tuple(replace(i, a=replace(i.a, turns=turns), b=replace(i.b, turns=turns)) for i in study.items)
        assert not first_shown(replace(study, items=items))
    turns = (Turn("User", "Hi"), Turn("Agent", "Hello"))
    items = tuple(replace(i, a=replace(i.a, turns=turns), b=replace(i.b, turns=turns)) for i in study.items)
    assert len(set(first_shown(replace(study, items=items)).values())) <= len(study.spec.systems)


def test_prompts_are_named_by_the_items(tmp_path):
    study = new_study("acute", tmp_path / "study")

    def named(prompts):
        pairs = zip(study.items, prompts, strict=True)
        return replace(study, items=tuple(replace(item, metadata={"prompt": prompt}) for item, prompt in pairs))

    n = len(study.items)
    assert not shared_prompts(named(range(n)))
    assert not shared_prompts(named([None] * n))
    one = named([*["p"] * 3, study.items[4].id, *[None] * (n - 4)])
    prompts = shared_prompts(one)
    assert prompts[study.items[0].id] == prompts[study.items[2].id]
    assert len(set(prompts.values())) == n - 2
    clove = {item.id: shown for item in one.items[:3] if (shown := first_shown(one).get((item.id, "clove")))}
    assert list(clove) == [study.items[1].id, study.items[2].id]
    assert set(clove.values()) == {study.items[1].id}
