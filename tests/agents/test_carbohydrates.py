"""The carbohydrate-counting assistant: it holds the dialogue, counts right, and differs between versions in wording alone."""

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.agents.carbohydrates import FOODS, Carbohydrates
from dialometer.design.templates import template_folder
from dialometer.model.dialogue import Turn

STRATEGIES = ("empathy", "formality", "facing", "vocabulary", "alignment")


def talk(*messages, strategies=()):
    """Every reply, and what the last one counted."""
    agent, history, replies = Carbohydrates(strategies=list(strategies)), [], []
    reply = agent.reply(history)
    for message in messages:
        history.append(Turn("User", message, "user"))
        reply = agent.reply(history)
        replies.append(reply.text)
        history.append(Turn("Agent", reply.text, "agent"))
    return replies, reply.details["carbohydrates_g"]


@pytest.mark.parametrize(
    ("messages", "grams"),
    [
        (["I ate 200 g of pasta.", "yes"], 62),  # 31 g per 100 g
        (["a plate of spaghetti", "200 grams", "that's all"], 62),
        (["2 slices white bread, 200ml oj, 1 apple", "yes"], 75),  # 29.4 + 20 + 25.2
        (["2 SLICES OF BREAD!!", "no wait, 3 slices of bread", "yep"], 44),
        (["pizza", "dunno", "ok"], 99),  # a usual amount
        (["pizza", "hm", "what can I say", "yes"], None),
        (["1,5 dl", "Rice, 150", "correct"], 42),
        (["chicken and water", "yes"], 0),
        (["a burger, large fries", "No", "an apple", "that's it"], 126),
    ],
)
def test_it_counts_what_is_said_in_whatever_form(messages, grams):
    assert talk(*messages)[1] == grams


def test_the_dialogue_asks_confirms_and_sums_up():
    replies, _ = talk("Hi!", "Dinner was spaghetti and a coffee", "250 grams cooked", "Yes, that's all.", "thanks, bye")
    assert "What did you eat" in replies[0]
    assert replies[1] == "What amount of pasta did you have?"
    assert replies[2] == "That makes 250 g of pasta and coffee. Is that all?"
    assert "Your dinner of 250 g of pasta and coffee comes to about 78 g of carbohydrates" in replies[3]
    assert "Goodbye" in replies[4]


def test_another_meal_begins_anew():
    replies, grams = talk("100 g of rice", "yes", "Now lunch: 200 g of rice", "yes")
    assert "200 g of rice" in replies[-1]
    assert grams == 56


SAID = {
    "empathy": ("100 g of pasta, and I feel so bad about it", "Please do not worry", ""),
    "formality": ("100 g of pasta", "OK, so that's", "That makes"),
    "facing": ("Is it good to go for a run now?", "your doctor", "I did not understand"),
    "alignment": ("My brekkie: 100 g of spuds", "spuds", "boiled potatoes"),
}


@pytest.mark.parametrize("strategy", SAID)
def test_each_strategy_changes_the_wording(strategy):
    message, experimental, control = SAID[strategy]
    with_it, without = talk(message, strategies=[strategy])[0][0], talk(message)[0][0]
    assert experimental in with_it
    assert experimental not in without
    assert control in without


def test_a_new_word_is_learned_and_used_or_replaced():
    messages = (
        "I had some farinata",
        "a thin pancake of chickpea flour",
        "150 grams",
        "yes",
        "For lunch, 100 g of farinata",
    )
    learned, grams = talk(*messages[:4], strategies=["vocabulary"])
    replaced, same = talk(*messages[:4])
    assert learned[0] == replaced[0] == "I do not know farinata. What is it made of?"
    assert "added farinata to my list" in learned[1]
    assert "150 g of farinata" in learned[3]
    assert "150 g of pancakes" in replaced[3]
    assert "farinata" not in replaced[3]
    assert grams == same == 42
    assert "100 g of farinata" in talk(*messages, strategies=["vocabulary"])[0][-1]


def test_a_word_that_nobody_can_explain_is_left_out_with_a_word():
    replies, _ = talk("seitan", "no idea")
    assert "cannot count seitan" in replies[1]


def items():
    return [json.loads(line) for line in (template_folder("wizard") / "items.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("control", "experimental"), list(pairwise(items()))[::2], ids=STRATEGIES)
def test_the_tasks_of_the_template_end_alike_in_both_versions(control, experimental):
    strategy, messages = control["block"], control["metadata"]["simulated_messages"]
    assert control["scenario"] == experimental["scenario"]
    plain, grams = talk(*messages)
    varied, same = talk(*messages, strategies=[strategy])
    assert grams == same > 0
    assert plain != varied


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.one_of(st.text(max_size=60), st.sampled_from([*FOODS, "yes", "no", "5e3 kg", "?", "half a"])), max_size=6
    )
)
def test_anything_gets_a_reply(messages):
    for strategies in ((), STRATEGIES):
        replies, grams = talk(*messages, strategies=strategies)
        assert all(reply.strip() for reply in replies)
        assert grams is None or 0 <= grams < 100_000


def test_a_message_of_spaces_takes_no_time():
    """Everything said so far is read again for each reply, and what raters send stops all others while it is read."""
    began = time.process_time()
    replies, _ = talk(*["2 slices of" + " " * 3900 + "white bread"] * 5)
    assert time.process_time() - began < 10
    assert "60 g of bread" in replies[0]


def test_every_food_is_found_by_each_of_its_names():
    for name, food in FOODS.items():
        replies, grams = talk(f"I had 100 g of {name}", "yes")
        assert grams == food.carbohydrates, (name, replies)
