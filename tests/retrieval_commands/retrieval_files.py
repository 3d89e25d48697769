"""Where the avatar template's files are."""

from pathlib import Path

import dialometer.design.templates as template_folder

TEMPLATE = Path(str(template_folder.__file__)).parent / "avatar"
KB, DIALOGUES = TEMPLATE / "knowledge_base.jsonl", TEMPLATE / "dialogues.jsonl"
