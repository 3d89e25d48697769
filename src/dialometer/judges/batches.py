"""Providers' batch interfaces: questions are written into a file, and the answers are read back from another.

OpenAI takes a file of JSON lines and gives one back; Anthropic takes ``{"requests": […]}`` and gives JSON lines. Each question is
known by the key under which its answer is kept, so that answers find their questions whenever they come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialometer.agents.anthropic import Anthropic
from dialometer.agents.calling import pick
from dialometer.agents.chat_model import error_text
from dialometer.agents.openai import OpenAI
from dialometer.errors import AgentError, DialometerError
from dialometer.judges.model_client import ModelClient


def check_has_batches(client: ModelClient) -> None:
    """Raises where the provider has no batch interface that is known here."""
    if not isinstance(client.model, OpenAI | Anthropic):
        raise DialometerError(
            "batches are known of the providers openai and anthropic", remedy="leave --write-batch and --read-batch out"
        )


def write_batch(client: ModelClient, file: Path) -> int:
    """Writes the questions that were not sent, in the provider's form; says how many."""
    if isinstance(client.model, Anthropic):
        requests = [{"custom_id": key, "params": body} for key, body in client.unsent.items()]
        text = json.dumps({"requests": requests}, ensure_ascii=False)
    else:
        form = {"method": "POST", "url": "/v1/chat/completions"}
        rows = ({"custom_id": key, **form, "body": body} for key, body in client.unsent.items())
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DialometerError(f"cannot be written: {error.strerror}", where=str(file)) from error
    return len(client.unsent)


@dataclass
class BatchRead:
    """What a file of answers held."""

    n_read: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    """Answers that report a failure, by the provider's words: they stay unanswered."""


def read_batch(client: ModelClient, file: Path) -> BatchRead:
    """Keeps the answers of a file as if they had just come."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(f"cannot be read: {error}", where=str(file), remedy="give the file of results") from error
    read = BatchRead()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _not_a_result(file, number) from error
        key = row.get("custom_id") if isinstance(row, dict) else None
        if not isinstance(key, str) or not ("response" in row or "result" in row or row.get("error")):
            raise _not_a_result(file, number)
        content, why = _content(row)
        if not why:
            try:
                client.keep(key, content)
                read.n_read += 1
                continue
            except AgentError as error:
                why = error.message
        read.failed[why] = read.failed.get(why, 0) + 1
    return read


def _content(row: Mapping[str, Any]) -> tuple[Any, str]:
    """The answer in the provider's form, or why there is none."""
    if "result" in row:
        kind = pick(row, "result.type")
        if kind == "succeeded":
            return pick(row, "result.message"), ""
        return None, error_text(pick(row, "result.error")) or error_text(row.get("result")) or str(kind)
    body = pick(row, "response.body")
    if pick(row, "response.status_code") == 200:
        return body, ""
    return None, error_text(row) or error_text(body) or f"status {pick(row, 'response.status_code')}"


def _not_a_result(file: Path, line: int) -> DialometerError:
    return DialometerError(
        "this line is not a result of a batch",
        where=f"{file}:{line}",
        remedy="give the file of results as the provider gave it (OpenAI's output file or Anthropic's .jsonl)",
    )
