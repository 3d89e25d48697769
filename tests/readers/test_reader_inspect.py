"""Logs of Inspect, packed and as JSON."""

import base64
import io
import json
import zipfile

import pytest

from dialometer.errors import ReadError
from dialometer.model.dialogue import ToolCall
from dialometer.readers import read_dialogues
from dialometer.readers.containers.zstandard import MOST_OF_A_BLOCK, most_bytes

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "sums", "model": "openai/small", "created": "2025-02-07T00:00:00+00:00", "run_id": "r1"},
    "plan": {},
    "results": {"scores": [{"metrics": {"mean": {"value": float("nan")}}}]},
}


def sample(name, epoch):
    call = {"id": "c1", "function": "add", "arguments": {"a": 2, "b": 2}, "type": "function"}
    return {
        "id": name,
        "epoch": epoch,
        "input": "2 + 2?",
        "target": "4",
        "messages": [
            {"role": "system", "content": "Use tools."},
            {"role": "user", "content": "2 + 2?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "function": "add", "content": "attachment://5f"},
            {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "…"}, {"type": "text", "text": "4."}]},
        ],
        "scores": {"match": {"value": "C", "answer": "4", "explanation": "as expected"}},
        "attachments": {"5f": "4.0"},
        "events": [{"event": "state"}],
    }


def packed(path, samples, header="header.json"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(header, json.dumps(HEADER))
        for number, entry in enumerate(samples):
            zipped.writestr(f"samples/{number}.json", json.dumps(entry, indent=2))


@pytest.mark.parametrize("form", ["eval", "old eval", "json"])
def test_samples_become_dialogues_with_scores(tmp_path, form):
    samples = [sample(1, 1), sample(1, 2), sample("b", 1)]
    path = tmp_path / f"log.{form.split()[-1]}"
    if form == "json":
        path.write_text(json.dumps({**HEADER, "results": None, "samples": samples}, indent=2))
    else:
        packed(path, samples, "header.json" if form == "eval" else "start.json")
    reading = read_dialogues(path)
    dialogues = list(reading)
    assert reading.format == "inspect"
    assert [dialogue.id for dialogue in dialogues] == ["1", "1.2", "b"]
    first = dialogues[0]
    assert [(turn.role, turn.text) for turn in first.turns] == [("user", "2 + 2?"), ("agent", "4.")]
    assert first.turns[1].tool_calls == (ToolCall("add", '{"a": 2, "b": 2}', "4.0"),)
    assert first.system_prompt == "Use tools."
    known = first.metadata
    assert (known["system"], known["task"], known["target"]) == ("openai/small", "sums", "4")
    assert (known["scores"], known["explanations"]) == ({"match": "C"}, {"match": "as expected"})


def test_a_sample_without_messages_has_its_input_and_output(tmp_path):
    bare = {
        "id": 1,
        "epoch": 1,
        "input": "Hi",
        "output": {"choices": [{"message": {"role": "assistant", "content": "Ho"}}]},
    }
    packed(tmp_path / "log.eval", [bare])
    (dialogue,) = read_dialogues(tmp_path / "log.eval")
    assert [turn.text for turn in dialogue.turns] == ["Hi", "Ho"]


def test_a_log_that_is_cut_says_what_to_do(tmp_path):
    packed(tmp_path / "log.eval", [sample(1, 1)])
    content = (tmp_path / "log.eval").read_bytes()
    (tmp_path / "log.eval").write_bytes(content[:-40])
    with pytest.raises(ReadError, match="inspect log convert"):
        list(read_dialogues(tmp_path / "log.eval", "inspect"))


ZSTANDARD = base64.b85decode(
    "P)h>@6aWAKT>wrNab0}|WO`2k002?|000XB003xZVPs`;E^2dcZYZ@c{Qy`s0swNv4iuoJI-?{ly_DO-1y^-"
    "pVm34RziO=+Q3i$NanA;aJg0mlv!2aZ=nDTxh`M{eN+aDBLeD4x58yHj0suUPkRK)#P)h>@6aWAKT>wrNab3fXqFagp005r>000&M0047gZE$R"
    "5b1yMpWpHm}XkRfdYIARHD77#B09XwK0MdsU8*oc?<UkgOZqbTH5N9k2(Iv-%$h1}xfGU0gF~%3*%0~iMV(N=)X>YTLA1H!Ag*td}Kwx+*-"
    ">TiTi6<Nbe7wpp6~vAHm_F9hZSHj8jjpS?FA1ZsGICcNN@@<h%`tkSz61yWa7z%F<i=>b(kWzBwfCxiR;mp>D@#yI0|XQR003P8P8M-"
    "p$@!WWp8x;=%>e)a761SMb75_8Y-MvVGGAqIZ)0d*F)nIzZ*C~HFZ}>mwFCfCNgW<wRjLChSgY-"
    "|RaH?58bICWc6DB0yA=l}1aL411KDJAh>HrilenzLZYT5H+B;9fSx^Lt41F<S0RaJ<g3ET*Y3#fKIbh^vhDuS~>98qmZk<2fc&F>)-"
    "fbsi=fdf$4z;U~JI}!B%5ngD=Rr<S*quxY09aEnu2yE$|55WaR4C~bSrF|Vf_L_6IyYfL0Z>Z;0u%!j0001808SQhU3~^*dQSiV08#(|01E&B0"
    "0000000000Du7i0001JWnpAxaxQ9fZ*EXa0Rj{Q6aWAKT>wrNab3fXqFagp005r>000&M0000000000004jicmMzZb75_8Y-"
    "MvVF<)hHZ)0d*F)nIzZ*EXa0Rj{Q6aWAKT>wrNab3yznirn{007Ma000&M0000000000004jiHUR(tb75_8Y-"
    "MvVGGAqIZ)0d*F)nIzZ*EXa1qJ{B000930|3DQ000RB00000"
)
"""Two samples, packed by the package zipfile-zstd 0.0.4, with which Inspect 0.3.285 packs its logs."""


def test_logs_packed_with_zstandard_are_read(tmp_path):
    """They were refused before: Python cannot unpack them before 3.14."""
    (tmp_path / "log.eval").write_bytes(ZSTANDARD)
    dialogues = list(read_dialogues(tmp_path / "log.eval"))
    assert [turn.text for turn in dialogues[0].turns] == ["What is 1 + 1?", "It is 2. " + "Sure. " * 40 + "é"]
    assert [dialogue.id for dialogue in dialogues] == ["1", "2"]
    assert dialogues[1].metadata["scores"] == {"includes": "C"}


def test_damaged_zstandard_is_refused_in_words(tmp_path):
    with zipfile.ZipFile(io.BytesIO(ZSTANDARD)) as zipped:
        start = zipped.getinfo("samples/1_epoch_1.json").header_offset
    refused = 0
    for place in range(start + 60, start + 200, 7):
        changed = bytearray(ZSTANDARD)
        changed[place] ^= 0xFF
        path = tmp_path / f"{place}.eval"
        path.write_bytes(changed)
        with pytest.raises(ReadError, match="the log cannot be read"):
            list(read_dialogues(path))
        refused += 1
    assert refused == 20


def test_how_much_comes_out_is_known_before_it_is_unpacked():
    start = (0xFD2FB528).to_bytes(4, "little") + bytes([0, 0x58])  # a window, no size, no checksum

    def block(kind, size, is_last):
        return ((size << 3) + (kind << 1) + is_last).to_bytes(3, "little")

    frame = start + block(0, 5, 0) + b"abcde" + block(1, 100_000, 0) + b"x" + block(2, 4, 1) + b"...."
    skipped = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    assert most_bytes(skipped + frame + frame) == 2 * (5 + 100_000 + MOST_OF_A_BLOCK)
    for broken in (frame[:-1], frame[:8], b"gzip", frame[:5]):
        with pytest.raises(zipfile.BadZipFile):
            most_bytes(broken)
