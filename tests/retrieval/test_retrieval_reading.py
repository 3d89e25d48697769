"""Knowledge bases and questions from files: every form, and every fault with its line."""

import gzip
import json

import numpy as np
import pytest

from dialometer.errors import DialometerError, ReadError
from dialometer.retrieval.knowledge_base import Answer, KnowledgeBaseError, assemble, read_knowledge_base
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.saving import write_knowledge_base

TABLE = "question,answer\nWho are you?,I am Ann.\nWhat is your name?,I am Ann.\nWho are you?,Guess!\n,Nobody asks for this.\n"


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def pairs_of(kb):
    return {(kb.questions[q], kb.texts[a]) for q, a in zip(kb.pair_question, kb.pair_answer, strict=True)}


def test_a_table_may_give_several_answers_to_a_question_and_several_questions_to_an_answer(tmp_path):
    kb = read_knowledge_base(write(tmp_path, "kb.csv", TABLE))
    assert pairs_of(kb) == {
        ("Who are you?", "I am Ann."),
        ("What is your name?", "I am Ann."),
        ("Who are you?", "Guess!"),
    }
    assert kb.texts == ("Guess!", "I am Ann.", "Nobody asks for this.")
    assert kb.n_questions_of.tolist() == [1, 2, 0]
    assert sorted(kb.texts[a] for a in kb.answers_to(kb.questions.index("Who are you?"))) == ["Guess!", "I am Ann."]


def test_jsonl_tab_and_gzip_tell_the_same(tmp_path):
    lines = [
        {"id": "x", "answer": "I am Ann.", "questions": ["Who are you?", "What is your name?"]},
        {"id": "y", "answer": "Guess!", "questions": ["Who are you?"]},
        {"answer": "Nobody asks for this."},
    ]
    jsonl = write(tmp_path, "kb.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    tab = write(tmp_path, "kb.tsv", TABLE.replace(",", "\t"))
    packed = tmp_path / "kb.csv.gz"
    packed.write_bytes(gzip.compress(TABLE.encode()))
    expected = pairs_of(read_knowledge_base(write(tmp_path, "kb.csv", TABLE)))
    assert [pairs_of(read_knowledge_base(path)) for path in (jsonl, tab, packed)] == [expected] * 3
    assert read_knowledge_base(jsonl).find("x") == read_knowledge_base(jsonl).find("i am ann")


def test_the_corpus_form_is_known_by_its_columns(tmp_path):
    text = ",index,ID,Category,Context,Utterance\n0,0,M-1,C,Please dance!,Okay! (Dances)\n1,1,REPEAT,C,Dance!,Okay! (Dances)\n"
    kb = read_knowledge_base(write(tmp_path, "kb.csv", text))
    assert pairs_of(kb) == {("Please dance!", "Okay! (Dances)"), ("Dance!", "Okay! (Dances)")}


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("kb.csv", "question,answer\nWho?,Ann.\nWhy?,\n", 3, "the row has no answer"),
        ("kb.csv", "question,answer\nWho?,Ann.\nWhy?,Because.\nWho?,Ann.\n", 4, "is already on line 2"),
        ("kb.csv", "question,answer,id\nWho?,Ann.,a\nWhy?,Because.,a\n", 3, "already means another answer"),
        ("kb.csv", "question,answer,id\nWho?,Ann.,a\nWhat?,Ann.,b\n", 3, "already has the id 'a'"),
        ("kb.jsonl", '{"answer": "Ann.", "questions": ["Who?"]}\n{"questions": ["Why?"]}\n', 2, "no answer"),
        ("kb.jsonl", '{"answer": "Ann.", "question": ["Who?"]}\n', 1, "unknown key 'question'"),
        ("kb.jsonl", '{"answer": "Ann.", "questions": "Who?"}\n', 1, "must be a list of strings"),
        ("kb.jsonl", '{"answer": "Ann.", "questions": ["  "]}\n', 1, "a question is empty"),
        ("kb.jsonl", '{"answer": 3}\n', 1, "'answer' must be a string"),
        ("kb.jsonl", '["Ann."]\n', 1, "must be an object"),
    ],
)
def test_faults_are_told_with_their_line(tmp_path, name, text, line, message):
    with pytest.raises(KnowledgeBaseError) as caught:
        read_knowledge_base(write(tmp_path, name, text))
    assert [(problem.line, message in problem.message) for problem in caught.value.problems] == [(line, True)]


def test_all_faults_are_told_at_once(tmp_path):
    with pytest.raises(KnowledgeBaseError) as caught:
        read_knowledge_base(write(tmp_path, "kb.csv", "question,answer\nA?,\nB?,x\nC?,\nB?,x\n"))
    assert [problem.line for problem in caught.value.problems] == [2, 4, 5]


def test_repeated_pairs_may_be_counted_once(tmp_path):
    path = write(tmp_path, "kb.csv", "question,answer\nWho?,Ann.\nWho?,Ann.\n")
    assert read_knowledge_base(path, keep_duplicates=True).n_pairs == 1


@pytest.mark.parametrize("text", ["", "question,answer\n"])
def test_an_empty_file_is_an_error(tmp_path, text):
    with pytest.raises(ReadError):
        read_knowledge_base(write(tmp_path, "kb.csv", text))


def test_a_missing_file_is_an_error_of_ours(tmp_path):
    with pytest.raises(DialometerError, match="gone"):
        read_knowledge_base(tmp_path / "gone.csv")


def test_the_order_of_rows_does_not_matter(kb):
    shuffled = np.random.default_rng(3).permutation(kb.n_pairs)
    again = assemble(kb.answers, [(kb.questions[kb.pair_question[row]], int(kb.pair_answer[row])) for row in shuffled])
    assert again.texts == kb.texts
    assert again.fingerprint == kb.fingerprint


def test_the_fingerprint_notices_every_change(kb):
    fewer = kb.without_questions([0])
    more = kb.with_pairs([("Do you play an instrument?", kb.find("I play the violin, but not well"))])
    assert len({kb.fingerprint, fewer.fingerprint, more.fingerprint}) == 3
    assert fewer.with_pairs([(kb.questions[0], int(a)) for a in kb.answers_to(0)]).fingerprint == kb.fingerprint


def test_writing_and_reading_again_changes_nothing(kb, tmp_path):
    write_knowledge_base(kb, tmp_path / "kb.jsonl")
    again = read_knowledge_base(tmp_path / "kb.jsonl")
    assert again.answers == kb.answers
    assert again.fingerprint == kb.fingerprint


def test_a_knowledge_base_needs_an_answer():
    with pytest.raises(DialometerError, match="at least one answer"):
        assemble([], [])


MDC = "Mode,Conversation,Exchange,Experiment,Q,A,Notes,BA1,BA2,BA3,BA4,BA5,BA6\n"


def test_questions_come_with_context_gold_and_reply(tmp_path):
    kb = assemble([Answer("1", "Hello!"), Answer("2", "Hi!"), Answer("3", "From Rome.")], [("Hello", 0)])
    rows = "PER,1,1,TRAIN,Hello.,Well hi.,,Hello!,Hi!,,,,\nPER,1,2,TRAIN,Where from?,Rome.,,from rome,,,,,\n"
    asked = read_queries(write(tmp_path, "dialogues.csv", MDC + rows), kb, "mdc")
    assert [query.text for query in asked.queries] == ["Hello.", "Where from?"]
    assert [turn.text for turn in asked.queries[1].context] == ["Hello.", "Well hi."]
    assert [[kb.texts[a] for a in right] for right in asked.right] == [["Hello!", "Hi!"], ["From Rome."]]
    assert asked.replies == ("Well hi.", "Rome.")
    assert asked.dialogues == ("PER-1", "PER-1")
    assert asked.relevance(3).sum(axis=1).tolist() == [2, 1]
    assert asked.subset([1]).queries == asked.queries[1:]


def test_unknown_gold_answers_are_told_with_their_line_or_left_out(tmp_path):
    kb = assemble([Answer("1", "Hello!")], [("Hello", 0)])
    rows = "PER,1,1,TRAIN,Hello.,Hi.,,Hello!,,,,,\nPER,1,2,TRAIN,And?,So.,,Helo!,,,,,\n"
    path = write(tmp_path, "dialogues.csv", MDC + rows)
    with pytest.raises(ReadError) as caught:
        read_queries(path, kb, "mdc")
    (problem,) = caught.value.problems
    assert problem.line == 3
    assert "'Helo!'" in problem.message
    assert "Hello!" in problem.remedy
    lenient = read_queries(path, kb, "mdc", unknown_gold="leave_out")
    assert lenient.right == ((0,), ())
    assert len(lenient.left_out) == 1


def test_our_own_dialogues_mark_answers_in_their_metadata(tmp_path):
    kb = assemble([Answer("hi", "Hello!"), Answer("rome", "From Rome.")], [("Hello", 0)])
    dialogue = {
        "id": "d1",
        "turns": [
            {"speaker": "user", "role": "user", "text": "Where are you from?"},
            {"speaker": "avatar", "role": "agent", "text": "Rome."},
        ],
        "metadata": {"exchanges": [{"answers": ["rome"]}]},
    }
    asked = read_queries(write(tmp_path, "d.jsonl", json.dumps(dialogue) + "\n"), kb)
    assert asked.right == ((kb.find("rome"),),)
    dialogue["metadata"] = {"exchanges": [{"answers": ["paris"]}]}
    with pytest.raises(ReadError) as caught:
        read_queries(write(tmp_path, "e.jsonl", json.dumps(dialogue) + "\n"), kb)
    assert caught.value.problems[0].line == 1
