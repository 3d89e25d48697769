"""A trained evaluator as a folder: ``evaluator.json``, weights as safetensors, the encoder's settings and tokenizer.

The folder holds all that is needed to score dialogues; nothing is fetched, and nothing in it is executed when it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.learned.cmade.evaluator import Evaluator, Member
from dialometer.neural.device import choose_device

FORM = 1
FILE = "evaluator.json"
KIND = "ranknet"


def save_evaluator(folder: Path | str, evaluator: Evaluator, about: Mapping[str, Any]) -> None:
    """Writes an evaluator; ``about`` says what it was trained on and how. The settings come last: with them it is whole."""
    from safetensors.torch import save_file  # noqa: PLC0415 - an extra

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    first = evaluator.members[0].model
    first.encoder.network.config.save_pretrained(folder / "encoder")
    first.encoder.tokeniser.tokenizer.save_pretrained(folder / "encoder")
    members = []
    for number, member in enumerate(evaluator.members):
        name = f"member-{number + 1}.safetensors"
        weights = {key: value.detach().cpu().contiguous() for key, value in member.model.state_dict().items()}
        save_file(weights, folder / name)
        members.append({"weights": name, "centre": member.centre, "temperature": member.temperature})
    content = {
        "form": FORM,
        "kind": KIND,
        "window": first.encoder.window,
        "pooling": first.encoder.pooling,
        "levels": first.levels,
        "temperature": evaluator.temperature,
        "members": members,
        "about": dict(about),
    }
    partial = folder / f"{FILE}.part"
    partial.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    partial.replace(folder / FILE)


def read_about(folder: Path | str) -> dict[str, Any]:
    """The settings of a saved evaluator, without loading its weights."""
    path = Path(folder) / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        remedy = "name the folder that 'dialometer learn train' wrote"
        raise DialometerError("there is no evaluator here", where=str(folder), remedy=remedy) from error
    if not isinstance(content, dict) or content.get("form") != FORM:
        remedy = "train it again, or use the version of dialometer that wrote it"
        raise DialometerError("this evaluator was written in another form", where=str(path), remedy=remedy)
    return content


def load_evaluator(folder: Path | str, device: str = "auto") -> Evaluator:
    """An evaluator from its folder, of whichever recipe."""
    if read_about(folder).get("kind") == "best":
        from dialometer.learned.gaussian.evaluator import BestEvaluator  # noqa: PLC0415 - it builds on this file

        return BestEvaluator.load(folder)
    from safetensors import SafetensorError  # noqa: PLC0415 - an extra
    from safetensors.torch import load_file  # noqa: PLC0415
    from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: PLC0415 - very heavy

    from dialometer.learned.cmade.encoder import DialogueEncoder  # noqa: PLC0415 - needs torch
    from dialometer.learned.cmade.ranknet import RankNet  # noqa: PLC0415

    folder, place = Path(folder), choose_device(device)
    content = read_about(folder)
    make: Any = AutoModel.from_config
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder / "encoder")
        members = []
        for one in content["members"]:
            network = make(AutoConfig.from_pretrained(folder / "encoder"))
            encoder = DialogueEncoder(tokenizer, network, window=content["window"], pooling=content["pooling"])
            model = RankNet(encoder, levels=content["levels"])
            model.load_state_dict(load_file(folder / one["weights"]))
            members.append(Member(model.to(place).eval(), _finite(one["centre"]), _finite(one["temperature"])))
        return Evaluator(members, _finite(content["temperature"]))
    except (OSError, KeyError, ValueError, RuntimeError, SafetensorError) as error:
        remedy = "copy the folder again, or train the evaluator again"
        raise DialometerError(f"the evaluator is damaged: {error}", where=str(folder), remedy=remedy) from error


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is no number")
    return number
