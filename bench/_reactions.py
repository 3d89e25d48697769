"""What a language model expects a user to say next: complaints or praise, after each response of the agent, without any ratings.

The score of a reaction is its mean log probability per token as the user's next turn, less that of the same words with no
dialogue before them. All reactions to all responses of a dialogue are read in one pass: they stand behind the dialogue side by side,
and each sees the dialogue up to its response and itself, nothing else (``tests/bench/test_reactions.py`` compares with one pass each).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dialometer.model.dialogue import Dialogue

Floats = NDArray[np.float64]
COMPLAINTS = (
    "You already said that.",
    "That doesn't make any sense.",
    "What are you talking about?",
    "That's not what I asked.",
    "You are not listening to me.",
    "You are repeating yourself.",
    "This is boring.",
    "I don't understand what you mean.",
    "You're just a dumb bot.",
    "That has nothing to do with what I said.",
    "Stop.",
    "Huh?",
)
PRAISE = (
    "That's really interesting!",
    "Haha, you are funny.",
    "Thanks, that helps a lot.",
    "I like talking to you.",
    "Great, tell me more.",
    "I totally agree with you.",
    "Wow, cool!",
    "It was really nice chatting with you.",
    "Good point.",
    "Perfect, thank you!",
)
CONTRADICTIONS = (
    "You are contradicting yourself.",
    "You just said the opposite.",
    "But you told me something else before.",
)
MAX_TURN_TOKENS = 120
MAX_TOKENS = 1200
_ROLES = {"user": "user", "agent": "assistant"}


@dataclass(frozen=True)
class Reactions:
    """Lifts of the log probability of each reaction: responses of the agent × sentences."""

    lifts: Floats

    @property
    def complaints(self) -> float:
        """How much the last response calls for complaints."""
        return float(self.lifts[-1, : len(COMPLAINTS)].mean())

    @property
    def praise(self) -> float:
        """How much the last response calls for praise."""
        return float(self.lifts[-1, len(COMPLAINTS) : len(COMPLAINTS) + len(PRAISE)].mean())

    @property
    def contradictions(self) -> float:
        """How much any of the responses calls for the complaint that it contradicts what was said."""
        return float(self.lifts[:, len(COMPLAINTS) + len(PRAISE) :].mean(axis=1).max())

    @property
    def complaints_throughout(self) -> float:
        """How much all responses together call for complaints."""
        return float(self.lifts[:, : len(COMPLAINTS)].mean())


class ReactionReader:
    """A causal language model with chat marks, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.end = self._ids("<|im_end|>\n")
        self.heads = {role: self._ids(f"<|im_start|>{name}\n") for role, name in _ROLES.items()}
        self.sentences = [[*self._ids(text), self.end[0]] for text in (*COMPLAINTS, *PRAISE, *CONTRADICTIONS)]
        self.alone = self._read(())

    @classmethod
    def load(cls, name: str, device: str) -> ReactionReader:
        """By name or folder; a folder with one GGUF file is read by transformers, which needs the package ``gguf``."""
        from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

        found = sorted(Path(name).glob("*.gguf"))
        how = {"gguf_file": found[0].name} if found else {}
        dtype = torch.float32 if device == "cpu" else torch.bfloat16
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **how).to(device).eval()
        return cls(model, AutoTokenizer.from_pretrained(name, **how))

    def read(self, dialogue: Dialogue) -> Reactions:
        """What the model expects of the user after each response of the agent."""
        turns = [("user" if turn.role == "user" else "agent", turn.text) for turn in dialogue.turns]
        return Reactions(self._read(turns) - self.alone)

    def read_replies(self, dialogue: Dialogue) -> Floats:
        """For each response of the agent its mean log probability per token, after the dialogue and with nothing before it."""
        tokens: list[int] = []
        places: list[int] = []
        sees: list[list[int]] = []
        spans: list[tuple[int, int]] = []
        for turn in dialogue.turns:
            role = "user" if turn.role == "user" else "agent"
            words = self._ids(" ".join(turn.text.split()))[:MAX_TURN_TOKENS]
            if len(tokens) + len(words) > MAX_TOKENS:
                break
            begun = len(tokens) + len(self.heads[role])
            _put([*self.heads[role], *words, *self.end], list(range(len(tokens))), len(tokens), tokens, places, sees)
            if role == "agent" and words:
                spans.append((begun, begun + len(words)))
        if not spans:
            return np.zeros((0, 2))
        alone = []
        for begun, stop in spans:
            alone.append(
                (len(tokens) + len(self.heads["agent"]), len(tokens) + len(self.heads["agent"]) + stop - begun)
            )
            _put([*self.heads["agent"], *tokens[begun:stop]], [], 0, tokens, places, sees)
        log_probs, ids = self._log_probs(tokens, places, sees)
        found = [
            [log_probs[begun - 1 : stop - 1].gather(1, ids[begun:stop, None]).mean() for begun, stop in part]
            for part in (spans, alone)
        ]
        return np.array([[float(value) for value in row] for row in found]).T

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    @torch.inference_mode()
    def _read(self, turns: Sequence[tuple[str, str]]) -> Floats:
        said, ends = self._said(turns)
        tokens, places, before = list(said), list(range(len(said))), []
        sees = [list(range(place + 1)) for place in range(len(said))]
        head = self.heads["user"]
        branches: list[tuple[int, int]] = []
        for end in ends:
            begun = len(tokens)
            _put(head, list(range(end)), end, tokens, places, sees)
            for sentence in self.sentences:
                known = [*range(end), *range(begun, begun + len(head))]
                branches.append((len(tokens), len(tokens) + len(sentence)))
                before.append(begun + len(head) - 1)
                _put(sentence, known, end + len(head), tokens, places, sees)
        log_probs, ids = self._log_probs(tokens, places, sees)
        means = []
        for first, (begin, stop) in zip(before, branches, strict=True):
            rows = [first, *range(begin, stop - 1)]
            means.append(log_probs[rows, ids[begin:stop]].mean())
        return torch.stack(means).double().cpu().numpy().reshape(len(ends), len(self.sentences))

    @torch.inference_mode()
    def _log_probs(self, tokens: list[int], places: list[int], sees: list[list[int]]) -> tuple[Any, Any]:
        """Log probabilities of all words after each token, which sees those that are named, and the tokens."""
        mask = np.zeros((len(tokens), len(tokens)), dtype=bool)
        for row, columns in enumerate(sees):
            mask[row, columns] = True
        device, dtype = self.model.device, self.model.dtype
        ids = torch.tensor([tokens], device=device)
        hidden = torch.from_numpy(~mask).to(device)[None, None]
        seen = torch.zeros(hidden.shape, device=device, dtype=dtype).masked_fill(hidden, torch.finfo(dtype).min)
        scores = self.model(
            input_ids=ids, position_ids=torch.tensor([places], device=device), attention_mask=seen
        ).logits
        return torch.log_softmax(scores[0].float(), dim=-1), ids[0]

    def _said(self, turns: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
        """The dialogue's tokens, and where each response of the agent ends (the whole where there is none)."""
        tokens: list[int] = []
        ends: list[int] = []
        for role, text in turns:
            words = self._ids(" ".join(text.split()))[:MAX_TURN_TOKENS]
            tokens += [*self.heads[role], *words, *self.end]
            if role == "agent":
                ends.append(len(tokens))
            if len(tokens) > MAX_TOKENS:
                break
        return tokens, ends or [len(tokens)]


def _put(
    added: Sequence[int], known: list[int], place: int, tokens: list[int], places: list[int], sees: list[list[int]]
) -> None:
    """Tokens that see what is ``known`` and one another, at the places after it."""
    begun = len(tokens)
    for number, token in enumerate(added):
        tokens.append(token)
        places.append(place + number)
        sees.append([*known, *range(begun, begun + number + 1)])
