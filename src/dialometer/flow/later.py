"""A list that is read when somebody looks at it: most quality rules look at one part of a session's record only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar, overload

T = TypeVar("T")


class Later(Sequence[T]):
    """Whatever ``read`` gives, asked for once, at the first look."""

    def __init__(self, read: Callable[[], Sequence[T]]) -> None:
        self._read = read

    @cached_property
    def _content(self) -> Sequence[T]:
        return self._read()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._content[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)
