"""The system's Chromium, for the tests and pictures of pages."""

from __future__ import annotations

import shutil

# The headless shell is the same browser without its windows, and takes half the processor's time.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """The system's Chromium or Chrome."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
