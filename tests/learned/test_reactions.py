"""What a language model expects users to say next: all reactions in one pass equal one pass each."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from bench import _reactions  # noqa: E402
from bench._reactions import COMPLAINTS, CONTRADICTIONS, PRAISE, ReactionReader, Reactions  # noqa: E402

from dialometer.model.dialogue import Dialogue, Role, Turn  # noqa: E402


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


def _read(reader: ReactionReader, said: list[tuple[Role, str]]) -> Reactions:
    """Reactions to a dialogue that is read together with a longer and a shorter one."""
    texts = {"longer": [*said, *said], "this": said, "shorter": said[:2]}
    dialogues = {
        name: Dialogue(id=name, turns=tuple(Turn(speaker=role, text=text, role=role) for role, text in turns))
        for name, turns in texts.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_reactions._BATCH_TOKENS, "cpu", 100_000)
        found = dict(reader.read(dialogues))
    assert list(found) == ["shorter", "this", "longer"]
    return found["this"]


def _expected(reader: ReactionReader, said: str, sentence: str) -> float:
    """The mean log probability of a sentence as the user's next turn, in a pass of its own."""
    prefix = f"{said}<|im_start|>user\n"
    ids = torch.tensor([list(f"{prefix}{sentence}<".encode())])
    with torch.inference_mode():
        log_probs = torch.log_softmax(reader.model(input_ids=ids).logits[0], dim=-1)
    begun = len(prefix.encode())
    return float(np.mean([log_probs[n - 1, ids[0, n]].item() for n in range(begun, ids.shape[1])]))


def test_reactions_in_one_pass_equal_one_pass_each(reader: ReactionReader) -> None:
    said: list[tuple[Role, str]] = [("user", "Hello."), ("agent", "Good day to you."), ("user", "Is it?")]
    said.append(said[1])
    found = _read(reader, said).lifts
    assert found.shape == (2, len(COMPLAINTS) + len(PRAISE) + len(CONTRADICTIONS))
    marked = [f"<|im_start|>{'user' if role == 'user' else 'assistant'}\n{text}<|im_end|>\n" for role, text in said]
    for reply, n_turns in enumerate((2, 4)):
        for number, sentence in enumerate((*COMPLAINTS, *PRAISE, *CONTRADICTIONS)):
            lift = _expected(reader, "".join(marked[:n_turns]), sentence) - _expected(reader, "", sentence)
            assert found[reply, number] == pytest.approx(lift, abs=1e-4)


def test_a_reply_is_read_after_the_dialogue_and_alone(reader: ReactionReader) -> None:
    said: list[tuple[Role, str]] = [("user", "Hello."), ("agent", "Good day to you."), ("user", "Is it?")]
    said.append(("agent", "It is."))
    found = _read(reader, said).replies
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
