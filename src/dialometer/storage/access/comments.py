"""Comments of co-authors on a study or a part of it. They are no part of the study: no lock, export or rater ever sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, insert, select, update

from dialometer.errors import StorageError
from dialometer.storage.database import StorePart
from dialometer.storage.schema import comments

MAX_LENGTH = 4000


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment, or a reply to one. Only first comments are resolved, and their replies with them."""

    id: int
    study: str
    part: str
    """The part of the study that it is about; empty for the whole study."""
    reply_to: int | None
    text: str
    made_by: str
    at_ms: int
    resolved_by: str | None = None
    resolved_at_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether nobody has resolved it yet."""
        return self.resolved_at_ms is None


@dataclass(frozen=True, slots=True)
class Thread:
    """A comment with its replies."""

    first: Comment
    replies: Sequence[Comment]


class Comments(StorePart):
    """The comments on all studies."""

    def of_study(self, study: str) -> list[Comment]:
        """All comments on a study, the oldest first."""
        query = select(comments).where(comments.c.study == study).order_by(comments.c.id)
        with self.database.reading() as connection:
            return [Comment(*row) for row in connection.execute(query)]

    def threads(self, study: str, part: str | None = None) -> list[Thread]:
        """The comments on a study, or on one part of it: open ones first, then the newest first."""
        found = self.of_study(study)
        threads = [
            Thread(first, [reply for reply in found if reply.reply_to == first.id])
            for first in found
            if first.reply_to is None and part in (None, first.part)
        ]
        return sorted(threads, key=lambda thread: (not thread.first.is_open, -thread.first.id))

    def n_open(self, study: str) -> int:
        """How many comments on a study wait to be resolved; replies are not counted."""
        is_open = (comments.c.study == study, comments.c.reply_to.is_(None), comments.c.resolved_at_ms.is_(None))
        with self.database.reading() as connection:
            return int(connection.scalar(select(func.count()).select_from(comments).where(*is_open)) or 0)

    def add(self, study: str, part: str, text: str, by: str, at_ms: int, *, reply_to: int | None = None) -> int:
        """Add a comment; a reply goes to the part of the comment it belongs to."""
        clean = text.replace("\r\n", "\n").replace("\0", "").strip()
        if not clean:
            raise StorageError("the comment is empty", remedy="write something")
        if len(clean) > MAX_LENGTH:
            raise StorageError(f"a comment has at most {MAX_LENGTH:,} characters", remedy="shorten it")
        with self.database.assigning() as connection:
            if reply_to is not None:
                first = select(comments.c.part).where(
                    comments.c.id == reply_to, comments.c.study == study, comments.c.reply_to.is_(None)
                )
                parent = connection.scalar(first)
                if parent is None:
                    raise StorageError("there is no such comment", remedy="reload the page")
                part = parent
            row = {"study": study, "part": part, "reply_to": reply_to, "text": clean, "made_by": by, "at_ms": at_ms}
            key = connection.execute(insert(comments), row).inserted_primary_key
        assert key is not None
        return int(key[0])

    def resolve(self, study: str, comment_id: int, by: str, at_ms: int, *, is_resolved: bool) -> None:
        """Mark a comment as resolved, or open it again."""
        state = {"resolved_by": by, "resolved_at_ms": at_ms} if is_resolved else dict.fromkeys(_RESOLVED)
        same = (comments.c.id == comment_id, comments.c.study == study, comments.c.reply_to.is_(None))
        with self.database.writing() as connection:
            if connection.execute(update(comments).where(*same).values(**state)).rowcount != 1:
                raise StorageError("there is no such comment", remedy="reload the page")


_RESOLVED = ("resolved_by", "resolved_at_ms")
