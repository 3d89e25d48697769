"""Valid files of chats with language models, and tables that polars reads: battles, preferences, logs of Inspect, Parquet, Arrow."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import polars as pl

from bench.fuzz.valid_files import DIALOGUES, IMPORTS, Files

_ASKED = [{"role": "user", "content": "Who are you?"}]
_A, _B = ([*_ASKED, {"role": "assistant", "content": text}] for text in ("I am Ann.", "A bot."))
BATTLES = [
    {
        "question_id": n,
        "model_a": "x",
        "model_b": "y",
        "winner": winner,
        "judge": f"u{n}",
        "conversation_a": _A,
        "conversation_b": _B,
        "turn": 1,
        "tstamp": 1.7e9 + n,
    }
    for n, winner in enumerate(("model_a", "tie", "tie (bothbad)"))
]
PREFERENCES = [
    {"prompt": "Hi", "chosen": _A, "rejected": _B, "score_chosen": 4.5},
    {"chosen": "\n\nHuman: Hi\n\nAssistant: Hello.", "rejected": "\n\nHuman: Hi\n\nAssistant: No."},
    {"prompt": "Bye", "chosen": "So long", "rejected": "?"},
]
_MESSAGES = [{"id": str(n), "messages": _A, "score": n / 2} for n in range(3)]
_RATINGS = [
    {"rater": f"r{n}", "item": f"i{n % 2}", "system": "x", "criterion": "q", "value": float(n)} for n in range(4)
]
_EVAL = {"task": "sums", "model": "openai/small", "created": "2025-02-07T00:00:00+00:00", "run_id": "r1"}
_HEADER = {"version": 2, "status": "success", "eval": _EVAL, "plan": {}}
_CALL = {"id": "c1", "function": "add", "arguments": {"a": 2}, "type": "function"}
_SAMPLE = {
    "id": 1,
    "epoch": 1,
    "input": "2 + 2?",
    "target": "4",
    "messages": [
        {"role": "system", "content": "Use tools."},
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "", "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c1", "function": "add", "content": "attachment://5f"},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "…"}, {"type": "text", "text": "4."}]},
    ],
    "scores": {"match": {"value": "C", "answer": "4", "explanation": "as expected"}},
    "attachments": {"5f": "4.0"},
}
_TALK = [{"id": "human_evaluator", "text": "Hi"}, {"id": "bot", "text": "Ho"}]
_PAIRING = {
    "speakers_to_eval": ["bot", "bot"],
    "dialogue_dicts": [{"speakers": ["bot", "human_evaluator"], "dialogue": _TALK}] * 2,
}


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(rows).write_parquet(out)
    return out.getvalue()


def _arrow(rows: list[dict[str, Any]], *, is_stream: bool) -> bytes:
    out = io.BytesIO()
    frame = pl.DataFrame(rows)
    if is_stream:
        frame.write_ipc_stream(out)
    else:
        frame.write_ipc(out)
    return out.getvalue()


def _packed_log() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps(_HEADER))
        packed.writestr("samples/1.json", json.dumps(_SAMPLE))
    return out.getvalue()


def _acute() -> Files:
    head = b"worker,question,winner,loser,pairing_id,eval_choice_0,eval_choice_1,is_onboarding,correct,task_start\n"
    rows = b"w1,Who?,a,b,0,a,b,False,-1,1600000000\nw2,Who?,b,a,0,b,a,False,-1,1600000001\nw2,Who?,b,a,0,b,a,True,1,\n"
    return {"results.csv": head + rows, "pairings.jsonl": _lines([_PAIRING])}


DIALOGUES |= {
    "battles": {"d.jsonl": _lines(BATTLES)},
    "battles_parquet": {"d.parquet": _parquet(BATTLES)},
    "preferences": {"d.jsonl": _lines(PREFERENCES)},
    "inspect": {"d.json": json.dumps({**_HEADER, "samples": [_SAMPLE]}).encode()},
    "inspect_packed": {"d.eval": _packed_log()},
    "messages_parquet": {"d.parquet": _parquet(_MESSAGES)},
    "messages_arrow": {"d.arrow": _arrow(_MESSAGES, is_stream=False)},
    "messages_stream": {"data-00000-of-00001.arrow": _arrow(_MESSAGES, is_stream=True)},
}
IMPORTS |= {
    "acute": _acute(),
    "preferences": {"j.jsonl": _lines(PREFERENCES)},
    "votes_battles": {"j.jsonl": _lines(BATTLES)},
    "long_parquet": {"j.parquet": _parquet(_RATINGS)},
    "long_arrow": {"j.arrow": _arrow(_RATINGS, is_stream=True)},
}
