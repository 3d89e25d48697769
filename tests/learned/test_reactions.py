"""What a language model expects users to say next: all reactions in one pass equal one pass each."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from bench._reactions import COMPLAINTS, CONTRADICTIONS, PRAISE, ReactionReader  # noqa: E402

from dialometer.model.dialogue import Dialogue, Turn  # noqa: E402


class _Bytes:
    """A tokenizer whose tokens are bytes."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> SimpleNamespace:
        assert not add_special_tokens
        return SimpleNamespace(input_ids=list(text.encode()))


@pytest.fixture(scope="module")
def reader() -> ReactionReader:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2
    )
    return ReactionReader(transformers.LlamaForCausalLM(config).eval(), _Bytes())


def _expected(reader: ReactionReader, said: str, sentence: str) -> float:
    """The mean log probability of a sentence as the user's next turn, in a pass of its own."""
    prefix = f"{said}<|im_start|>user\n"
    ids = torch.tensor([list(f"{prefix}{sentence}<".encode())])
    with torch.inference_mode():
        log_probs = torch.log_softmax(reader.model(input_ids=ids).logits[0], dim=-1)
    begun = len(prefix.encode())
    return float(np.mean([log_probs[n - 1, ids[0, n]].item() for n in range(begun, ids.shape[1])]))


def test_reactions_in_one_pass_equal_one_pass_each(reader: ReactionReader) -> None:
    said = [("user", "Hello."), ("agent", "Good day to you."), ("user", "Is it?"), ("agent", "Good day to you.")]
    dialogue = Dialogue(id="d", turns=tuple(Turn(speaker=role, text=text, role=role) for role, text in said))
    found = reader.read(dialogue).lifts
    assert found.shape == (2, len(COMPLAINTS) + len(PRAISE) + len(CONTRADICTIONS))
    marked = [f"<|im_start|>{'user' if role == 'user' else 'assistant'}\n{text}<|im_end|>\n" for role, text in said]
    for reply, n_turns in enumerate((2, 4)):
        for number, sentence in enumerate((*COMPLAINTS, *PRAISE, *CONTRADICTIONS)):
            lift = _expected(reader, "".join(marked[:n_turns]), sentence) - _expected(reader, "", sentence)
            assert found[reply, number] == pytest.approx(lift, abs=1e-4)


def test_a_reply_is_read_after_the_dialogue_and_alone(reader: ReactionReader) -> None:
    said = [("user", "Hello."), ("agent", "Good day to you."), ("user", "Is it?"), ("agent", "It is.")]
    dialogue = Dialogue(id="d", turns=tuple(Turn(speaker=role, text=text, role=role) for role, text in said))
    found = reader.read_replies(dialogue)
    marked = [f"<|im_start|>{'user' if role == 'user' else 'assistant'}\n{text}<|im_end|>\n" for role, text in said]
    head = "<|im_start|>assistant\n"
    for row, place in enumerate((1, 3)):
        for column, before in enumerate(("".join(marked[:place]), "")):
            prefix = f"{before}{head}".encode()
            ids = torch.tensor([[*prefix, *said[place][1].encode()]])
            with torch.inference_mode():
                log_probs = torch.log_softmax(reader.model(input_ids=ids).logits[0], dim=-1)
            expected = np.mean([log_probs[n - 1, ids[0, n]].item() for n in range(len(prefix), ids.shape[1])])
            assert found[row, column] == pytest.approx(expected, abs=1e-4)
