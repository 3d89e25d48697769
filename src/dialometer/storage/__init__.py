"""Where sessions and judgments are kept: SQLite or PostgreSQL, append-only, one transaction per batch of screens."""

from dialometer.storage.controls import Controls, Decision, StudyState
from dialometer.storage.conversations import ChatTurn
from dialometer.storage.exclusions import Exclusion
from dialometer.storage.imports import ImportedSession, ImportEntry
from dialometer.storage.records import LoggedFinding
from dialometer.storage.sessions import Person
from dialometer.storage.store import Store
from dialometer.storage.studies import StudyVersion
from dialometer.storage.submissions import SubmissionRefused
from dialometer.storage.withdrawals import Withdrawal

__all__ = [
    "ChatTurn",
    "Controls",
    "Decision",
    "Exclusion",
    "ImportEntry",
    "ImportedSession",
    "LoggedFinding",
    "Person",
    "Store",
    "StudyState",
    "StudyVersion",
    "SubmissionRefused",
    "Withdrawal",
]
