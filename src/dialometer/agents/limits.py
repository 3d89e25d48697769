"""An answer takes no longer than it may, and no more memory, whatever the system behind an address sends.

A limit for each read is none for the whole: a system that sends one byte a second keeps within every such limit and never
ends. And a few hundred packed bytes can stand for many megabytes.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from typing import Any

import httpx

PACKED = "gzip"
"""How an answer may be packed."""
_PART_BYTES = 2**18
_GZIP_OR_ZLIB = 47


class Until(float):
    """A time limit in seconds that began when this was made: what is left of it shrinks."""

    def __init__(self, _seconds: float) -> None:
        self.ends = time.monotonic() + self

    @property
    def left_s(self) -> float:
        """Seconds until the limit; raises where there are none."""
        left_s = self.ends - time.monotonic()
        if left_s <= 0:
            raise httpx.ReadTimeout("too slow")
        return left_s


def limited(client: httpx.Client) -> httpx.Client:
    """The same client, for which a limit that is an :class:`Until` holds for everything that is read and written.

    The library passes a limit on to each read as it was given, and begins to count it anew there.
    """
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Network(pool._network_backend)
    return client


class _Network:
    """What opens connections, as the library has it."""

    def __init__(self, network: Any) -> None:
        self._network = network

    def connect_tcp(self, *place: Any, **options: Any) -> _Stream:
        return _Stream(self._network.connect_tcp(*place, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


class _Stream:
    """A connection, which is given at each step what is left of the time."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return bytes(self._stream.read(max_bytes, _left(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _left(timeout: float | None) -> float | None:
    return timeout.left_s if isinstance(timeout, Until) else timeout


def parts_of(response: httpx.Response) -> Iterator[bytes]:
    """What comes, unpacked a little at a time; a part is empty where what came unpacks to nothing."""
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing in ("", "identity"):
        yield from response.iter_raw()
        return
    if packing not in (PACKED, f"x-{PACKED}", "deflate"):
        raise httpx.DecodingError(f"packed as {packing[:40]}")
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        for packed in response.iter_raw():
            left = packed
            while left:
                yield unpacker.decompress(left, _PART_BYTES)
                left = unpacker.unconsumed_tail
        yield unpacker.flush()
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error
