"""Regular expressions of study files, among them those that would never end."""

import os
import re
import threading
import time

import pytest
from pydantic import ValidationError

from dialometer import patterns
from dialometer.agents.scripted import Scripted
from dialometer.errors import AnswerError
from dialometer.model.dialogue import Turn
from dialometer.patterns import matches, problem_of
from dialometer.scales.text import Text

NEVER_ENDS = "(?:a+)+"
LETTERS = "a" * 60 + "!"


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(patterns, "_slow", set())


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a+b", "xaab"),
        ("^a", "ba"),
        ("[É]", "é"),
        (r"\s", "\u2003"),
        ("x$", "x\n"),
        ("", ""),
        ("(a)\\1", "aa"),
        ("\U0001f600", "😀"),
    ],
)
def test_the_answer_is_that_of_python(pattern, text):
    assert matches(pattern, text) is bool(re.search(pattern, text))
    assert matches(pattern, text, is_whole=True) is bool(re.fullmatch(pattern, text))
    assert matches(pattern, text, flags=re.IGNORECASE) is bool(re.search(pattern, text, re.IGNORECASE))


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<a>x)(?P<a>y)", "(" * 5000, "a{99999999999999999999}"])
def test_what_is_no_expression_is_told(pattern):
    assert problem_of(pattern)
    with pytest.raises(ValidationError, match="not a regular expression"):
        Text(pattern=pattern)


def test_an_expression_that_takes_long_to_read_is_refused():
    assert problem_of("(?i)" + "[\x00-\U0010ffff]" * 3000) == "it takes too long to read"


def test_an_answer_that_an_expression_never_ends_for_is_taken(monkeypatch):
    """Rather than to refuse a rater for the researcher's mistake, or to stop the server for all of them."""
    scale = Text(pattern=NEVER_ENDS)
    n_steps = 0
    is_over = threading.Event()

    def work():
        nonlocal n_steps
        while not is_over.is_set():
            n_steps += 1
            time.sleep(0.01)

    other = threading.Thread(target=work)
    other.start()
    began = time.process_time()
    try:
        assert scale.parse(LETTERS) == LETTERS
    finally:
        is_over.set()
        other.join()
    assert time.process_time() - began < 0.9, "it ran in another process"
    assert n_steps > 5, "other threads went on meanwhile"
    asked = []
    with monkeypatch.context() as patched:
        patched.setattr(patterns, "_ask", asked.append)
        assert scale.parse(LETTERS) == LETTERS
    assert asked == [], "it is not tried again"
    with pytest.raises(AnswerError, match="expected form"):
        Text(pattern="b+").parse(LETTERS)


def test_a_rule_that_never_ends_is_passed_over():
    agent = Scripted(
        replies=[{"match": f"{NEVER_ENDS}$", "say": ["Never."]}, {"match": "!", "say": ["Next."]}], otherwise=["Hm."]
    )
    assert agent.reply([Turn("User", LETTERS, "user")]).text == "Next."


def test_the_other_process_is_begun_again_when_it_has_ended():
    assert matches("a", "a")
    patterns._matchers[0].process.kill()
    patterns._matchers[0].process.wait()
    assert matches("a", "a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_process_has_its_own():
    assert matches("a", "a")
    ours = patterns._matchers[0].process.pid
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"1" if matches("b", "b") and patterns._matchers[0].process.pid != ours else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"1"
    assert patterns._matchers[0].process.pid == ours
