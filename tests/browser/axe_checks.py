"""axe on a page: WCAG 2.2 AA, the script put into each document once, and only what is wrong brought back."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ALL_RULES: dict[str, Any] = {"runOnly": {"type": "tag", "values": TAGS}, "rules": {"target-size": {"enabled": True}}}
TARGETS: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["target-size"]}}
CONTRAST: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
_SCRIPT = Axe().axe_script
_RUN = """async options => {
  const results = await axe.run(document, {...options, resultTypes: ["violations"]});
  return {n_passes: results.passes.length, complaints: results.violations.flatMap(violation =>
    violation.nodes.map(node => `${violation.id} at ${node.target}: ${node.failureSummary}`))};
}"""


def complaints(page: Page, options: dict[str, Any]) -> list[str]:
    """What axe finds, one line for each rule and element, once the page and its styles are loaded."""
    page.wait_for_load_state()
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(_SCRIPT)
    results = page.evaluate(_RUN, options)
    assert results["n_passes"] or options is TARGETS, "axe looked at nothing"
    found: list[str] = results["complaints"]
    return found
