"""What a language model expects a user to say next: complaints or praise, after each response of the agent, without any ratings.

The score of a reaction is its mean log probability per token as the user's next turn, less that of the same words with no
dialogue before them. All reactions to all responses of a dialogue are read in one pass: they stand behind the dialogue side by side,
and each sees the dialogue up to its response and itself, nothing else (``tests/learned/test_reactions.py`` compares with one pass
each). So do the responses once more, with nothing before them. Dialogues of about one length are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
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
_BATCH_TOKENS = {"cpu": 2048, "cuda": 65536}
"""Of dialogues read together, reactions included; one dialogue alone may have more."""
_MASK_CELLS = 1 << 28
_ROWS = 8192
"""Tokens whose probabilities are computed at once: each takes one number per word of the vocabulary."""
_NOTHING, _DIALOGUE = -1, 0
_ROLES = {"user": "user", "agent": "assistant"}


@dataclass(frozen=True)
class Reactions:
    """Lifts of the log probability of each reaction: responses of the agent × sentences.

    ``replies`` holds for each response its own mean log probability per token, after the dialogue and with nothing before it.
    """

    lifts: Floats
    replies: Floats = field(default_factory=lambda: np.zeros((0, 2)))

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


@dataclass
class _Layout:
    """A dialogue's tokens with branches behind them, and the spans of tokens that are scored."""

    tokens: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    """Of each token: the branch that it sees beside its own."""
    ends: list[int] = field(default_factory=list)
    """Of each token: up to where it sees the dialogue."""
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    """The token before, the first one, and the one after the last."""
    n_replies: int = 0

    def put(self, added: Sequence[int], place: int, end: int, parent: int | None = None) -> int:
        """A branch that sees the dialogue up to ``end`` and its parent; the number of the branch."""
        branch = self.branches[-1] + 1 if self.branches else _DIALOGUE
        self.tokens += added
        self.places += range(place, place + len(added))
        self.branches += [branch] * len(added)
        self.parents += [branch if parent is None else parent] * len(added)
        self.ends += [end] * len(added)
        return branch

    def scored(self) -> tuple[list[int], list[int]]:
        """The rows whose next token is scored, and these tokens."""
        rows = [row for before, begin, stop in self.spans for row in (before, *range(begin, stop - 1))]
        return rows, [token for _, begin, stop in self.spans for token in self.tokens[begin:stop]]

    def means(self, log_probs: Floats) -> Floats:
        """Of each span, of the numbers of all scored tokens in their order."""
        lengths = np.array([stop - begin for _, begin, stop in self.spans])
        return np.asarray(np.add.reduceat(log_probs, np.cumsum(lengths) - lengths) / lengths)


def load_language_model(name: str, device: str) -> tuple[Any, Any]:
    """A causal model and its tokenizer; a folder with one GGUF file is read by transformers, which needs the package ``gguf``."""
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    found = sorted(Path(name).glob("*.gguf"))
    how = {"gguf_file": found[0].name} if found else {}
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **how).to(device).eval()
    return model, AutoTokenizer.from_pretrained(name, **how)


class ReactionReader:
    """A causal language model with chat marks, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.end = self._ids("<|im_end|>\n")
        self.heads = {role: self._ids(f"<|im_start|>{name}\n") for role, name in _ROLES.items()}
        self.sentences = [[*self._ids(text), self.end[0]] for text in (*COMPLAINTS, *PRAISE, *CONTRADICTIONS)]
        (self.alone,) = self._read([self._layout(())])

    @classmethod
    def load(cls, name: str, device: str) -> ReactionReader:
        """By name or folder."""
        return cls(*load_language_model(name, device))

    def read(self, dialogues: Mapping[str, Dialogue]) -> Iterator[tuple[str, Reactions]]:
        """What the model expects of the user after each response of the agent; short dialogues first, as soon as they are read."""
        layouts = {
            name: self._layout([(turn.role, turn.text) for turn in one.turns]) for name, one in dialogues.items()
        }
        for names in self._batches(layouts):
            together = [layouts[name] for name in names]
            for name, layout, means in zip(names, together, self._read(together), strict=True):
                n = len(means) - 2 * layout.n_replies
                lifts = means[:n].reshape(-1, len(self.sentences)) - self.alone
                yield name, Reactions(lifts, means[n:].reshape(2, -1).T)

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def _layout(self, turns: Sequence[tuple[str, str]]) -> _Layout:
        """The dialogue, behind it the reactions to each response (to nothing where there is none), then the responses alone."""
        said: list[int] = []
        ends: list[int] = []
        replies: list[tuple[int, int, int]] = []
        for role, text in turns:
            head = self.heads["user" if role == "user" else "agent"]
            words = self._ids(" ".join(text.split()))[:MAX_TURN_TOKENS]
            begin = len(said) + len(head)
            said += [*head, *words, *self.end]
            if role != "user":
                ends.append(len(said))
                if words:
                    replies.append((begin - 1, begin, begin + len(words)))
            if len(said) > MAX_TOKENS:
                break
        layout = _Layout(n_replies=len(replies))
        layout.put(said, 0, 0)
        for end in ends or [len(said)]:
            before = len(layout.tokens) + len(self.heads["user"]) - 1
            asked = layout.put(self.heads["user"], end, end)
            for sentence in self.sentences:
                begin = len(layout.tokens)
                layout.spans.append((before, begin, begin + len(sentence)))
                layout.put(sentence, end + len(self.heads["user"]), end, asked)
        layout.spans += replies
        for _, begin, stop in replies:
            first = len(layout.tokens) + len(self.heads["agent"])
            layout.spans.append((first - 1, first, first + stop - begin))
            layout.put([*self.heads["agent"], *said[begin:stop]], 0, 0)
        return layout

    def _batches(self, layouts: Mapping[str, _Layout]) -> Iterator[list[str]]:
        """Names of dialogues of about one length, no more together than fit."""
        most = _BATCH_TOKENS[self.model.device.type]
        batch: list[str] = []
        for name in sorted(layouts, key=lambda one: len(layouts[one].tokens)):
            n, length = len(batch) + 1, len(layouts[name].tokens)
            if batch and (n * length > most or n * length**2 > _MASK_CELLS):
                yield batch
                batch = []
            batch.append(name)
        if batch:
            yield batch

    @torch.inference_mode()
    def _read(self, layouts: Sequence[_Layout]) -> list[Floats]:
        """The mean log probability of each span of each layout."""
        length = max(len(one.tokens) for one in layouts)
        ids, places, branches, parents, ends = (
            self._padded([getattr(one, name) for one in layouts], length, filler)
            for name, filler in (
                ("tokens", 0),
                ("places", 0),
                ("branches", _NOTHING),
                ("parents", _NOTHING),
                ("ends", 0),
            )
        )
        hidden = self.model.base_model(
            input_ids=ids, position_ids=places, attention_mask=_seen(branches, parents, ends)
        ).last_hidden_state
        rows, wanted, counts = [], [], []
        for number, (own, tokens) in enumerate(one.scored() for one in layouts):
            rows += [number * length + row for row in own]
            wanted += tokens
            counts.append(len(tokens))
        states = hidden.flatten(0, 1)[torch.tensor(rows, device=hidden.device)]
        found = []
        for begin in range(0, len(rows), _ROWS):
            scores = self.model.get_output_embeddings()(states[begin : begin + _ROWS]).float()
            asked = torch.tensor(wanted[begin : begin + _ROWS], device=hidden.device)
            found.append(torch.log_softmax(scores, dim=-1).gather(1, asked[:, None])[:, 0].double().cpu().numpy())
        parts = np.split(np.concatenate(found), np.cumsum(counts)[:-1])
        return [one.means(part) for one, part in zip(layouts, parts, strict=True)]

    def _padded(self, rows: Sequence[list[int]], length: int, filler: int) -> torch.Tensor:
        filled = np.full((len(rows), length), filler)
        for number, row in enumerate(rows):
            filled[number, : len(row)] = row
        return torch.from_numpy(filled).to(self.model.device)


def _seen(branches: torch.Tensor, parents: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Which token sees which: of its own branch, of the parent, and of the dialogue up to the end, never a later one."""
    place = torch.arange(branches.shape[1], device=branches.device)
    others = branches[:, None, :]
    seen = (others == branches[:, :, None]) | (others == parents[:, :, None])
    seen |= (others == _DIALOGUE) & (place < ends[:, :, None])
    return (seen & (place <= place[:, None]))[:, None]
