"""Somebody at the dashboard without JavaScript: a client that follows links and fills in forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from starlette.testclient import TestClient

PASSWORD = "correct horse battery"


@dataclass
class Visitor:
    """A browser at the dashboard."""

    client: TestClient
    page: str = ""
    status: int = 0

    def get(self, path, **params):
        return self._take(self.client.get(f"/dashboard{path}", params=params or None))

    def post(self, path, form=None, *, csrf=None, files=None, follow=True):
        mark = self.csrf if csrf is None else csrf
        data = {"csrf": mark, **(form or {})}
        return self._take(self.client.post(f"/dashboard{path}", data=data, files=files, follow_redirects=follow))

    def _take(self, response):
        self.response, self.page, self.status = response, response.text, response.status_code
        return self

    @property
    def csrf(self):
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.page)
        if not found:
            self.get("/me")
            found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.page)
        return found[1]

    @property
    def text(self):
        """The page as it is read: no tags, spaces as one."""
        body = re.sub(r"<(script|style)\b.*?</\1>", " ", self.page, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())

    def join(self, token, name="ada", password=PASSWORD, *, follow=True):
        self._take(self.client.get("/dashboard/join", params={"token": token}))
        form = {"token": token, "name": name, "password": password, "again": password}
        return self.post("/join", form, follow=follow)

    def sign_in(self, name="ada", password=PASSWORD):
        self._take(self.client.get("/dashboard/login"))
        return self.post("/login", {"name": name, "password": password, "next": ""})
