"""A browser without scripts: reads the forms of a page, fills them in and sends what a browser would send."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from starlette.testclient import TestClient


@dataclass
class Control:
    """One control of a form; for buttons and boxes the value counts only when chosen."""

    kind: str
    name: str
    value: str
    is_chosen: bool = True
    mode: str = ""


@dataclass
class Form:
    """A form as a page holds it."""

    action: str
    id: str = ""
    screen: str = ""
    controls: list[Control] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)

    def sent(self, button: tuple[str, str] | None = None) -> list[tuple[str, str]]:
        """What the browser sends."""
        pairs = [(c.name, c.value) for c in self.controls if c.is_chosen and c.name]
        return pairs + ([button] if button and button[0] else [])

    def choose(self, name: str, value: str) -> None:
        """Chooses one button of a group."""
        for control in self.controls:
            if control.name == name and control.kind == "radio":
                control.is_chosen = control.value == value

    def values(self, name: str) -> list[str]:
        """All values that a group offers."""
        return [c.value for c in self.controls if c.name == name]


class Reader(HTMLParser):
    """The forms, headings and words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.headings: list[str] = []
        self.errors: list[str] = []
        self.inline: list[str] = []
        self.language = self.direction = ""
        self._open: list[str] = []
        self._text = ""
        self._area: Control | None = None
        self._list: Control | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        self.inline += [name for name in has if name == "style" or name.startswith("on")]
        if tag == "html":
            self.language, self.direction = has.get("lang", ""), has.get("dir", "")
        if (tag == "script" and "src" not in has) or tag == "style":
            self.inline.append(tag)
        if tag in ("h1", "p"):
            self._text, self._open = "", [tag, has.get("class", "")]
        if tag == "form":
            self.forms.append(Form(has.get("action", ""), has.get("id", ""), has.get("data-screen", "")))
        if not self.forms:
            return
        form = self.forms[-1]
        kind = has.get("type", "text")
        if tag == "input":
            is_box = kind in ("radio", "checkbox")
            form.controls.append(
                Control(
                    kind,
                    has.get("name", ""),
                    has.get("value", ""),
                    not is_box or "checked" in has,
                    has.get("inputmode", ""),
                )
            )
        elif tag == "textarea":
            self._area = Control("textarea", has.get("name", ""), "")
            form.controls.append(self._area)
        elif tag == "select":
            self._list = Control("select", has.get("name", ""), "")
            form.controls.append(self._list)
        elif tag == "option" and self._list is not None:
            self._text, self._open = "", ["option", has.get("value", "\0")]
            if "selected" in has:
                self._list.mode = "chosen"
        elif tag == "button" and kind == "submit":
            form.buttons.append((has.get("name", ""), has.get("value", "")))

    def handle_data(self, data: str) -> None:
        self._text += data
        if self._area is not None:
            self._area.value += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "h1":
            self.headings.append(self._text.strip())
        if tag == "p" and self._open[1:] == ["error"]:
            self.errors.append(self._text.strip())
        if tag == "textarea" and self._area is not None:
            self._area.value = self._area.value.removeprefix("\n")
            self._area = None
        if tag == "option" and self._list is not None:
            value = self._text.strip() if self._open[1] == "\0" else self._open[1]
            if self._list.mode == "chosen":
                self._list.value, self._list.mode = value, "done"
        if tag == "select":
            self._list = None


class PlainBrowser:
    """Goes from page to page by links and forms alone."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.status = 0
        self.html = ""
        self.page = Reader()

    def open(self, address: str) -> None:
        """Opens an address and follows where it leads."""
        self._take(self.client.get(address))

    def send(self, form: Form, button: tuple[str, str] | None = None) -> None:
        """Sends a form and follows where it leads."""
        data: dict[str, list[str]] = {}
        for name, value in form.sent(button if button is not None else (form.buttons or [None])[0]):
            data.setdefault(name, []).append(value)
        self._take(self.client.post(form.action, data=data))

    def form(self, name: str = "answers") -> Form:
        """A form of the page by its id."""
        return next(form for form in self.page.forms if form.id == name)

    @property
    def is_at_screen(self) -> bool:
        """Whether the page asks for answers."""
        return any(form.id == "answers" for form in self.page.forms)

    def _take(self, response: object) -> None:
        self.status = response.status_code  # type: ignore[attr-defined]
        self.html = response.text  # type: ignore[attr-defined]
        self.page = Reader()
        self.page.feed(self.html)
