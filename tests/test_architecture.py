"""docs/architecture.md is a true picture: every file and folder it names exists, and every package is in its table."""

import re
from pathlib import Path

import dialometer

SOURCE = Path(dialometer.__file__).parent
TOP = Path(__file__).parents[1]
PAGE = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_named_file_and_folder_exists():
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)*(?:\.py|/))`", PAGE))
    assert len(named) > 60
    inside = {"formats/", "charts/", "platforms/", "templates/", "retrievers/", "models/"}
    missing = sorted(name for name in named - inside if not ((SOURCE / name).exists() or (TOP / name).exists()))
    assert not missing


def test_every_package_is_in_the_table():
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages == set(re.findall(r"^\| `([a-z_]+)/` \|", PAGE, flags=re.MULTILINE))
