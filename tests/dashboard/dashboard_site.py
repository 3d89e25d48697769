"""A whole server in this process, and visitors of every role."""

from __future__ import annotations

from dashboard_cases import KEY
from dashboard_visitor import Visitor
from starlette.testclient import TestClient

from dialometer.flow.engine import now_ms
from dialometer.storage.store import Store
from dialometer.web.dashboard.login import Login, first_owner_token
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.run import open_server
from dialometer.web.server.settings import Settings


class Site:
    """A site with visitors."""

    def __init__(self, folders: StudyFolders, **settings):
        self.app = open_server(folders, Settings(api_key=KEY, **settings))
        self.studies, self.accounts = self.app.studies, self.app.accounts
        self.client = TestClient(self.app)
        self.client.__enter__()
        self.others = []

    def visitor(self, **headers) -> Visitor:
        client = TestClient(self.app, headers=headers)
        client.portal = self.client.portal
        return Visitor(client)

    def owner(self) -> Visitor:
        """The first owner, by the one-time link; not yet at the list of studies, which looks into all of them."""
        visitor = self.visitor()
        visitor.join(first_owner_token(self.accounts, is_asked=True), "ada", follow=False)
        assert visitor.status == 303, visitor.text
        return visitor

    def member(self, role: str, name: str = "") -> Visitor:
        """Somebody invited."""
        if not self.accounts.all():
            self.owner()
        visitor = self.visitor()
        visitor.join(Login(self.accounts).invite(role, by="ada", at_ms=now_ms()), name or f"some-{role}", follow=False)
        assert visitor.status == 303, visitor.text
        return visitor

    def store(self, name: str) -> Store:
        return self.studies.running(name).store

    def close(self):
        self.client.__exit__(None, None, None)
