"""What a connection has received and not served yet. It does no I/O.

All connections are read into one shared buffer, because a read usually brings whole requests, which
are served before the next connection is read. Only the rest moves to the connection's own buffer,
which is used until it is empty again. So thousands of clients that rarely send a request take no
buffer memory. A request's bytes are therefore dead at the first await: the next read, of
any connection, overwrites them.

An own buffer doubles as bytes arrive, whatever a length prefix announces; one of up to 2 MiB is
kept until large frames stop coming. A larger frame has a buffer that ends with it, whose pages the
system provides as bytes arrive.

While the connection's requests are held, at most START_BYTES are received, because what is left in
a full buffer is moved to its front after each answer.
"""

from __future__ import annotations

import mmap
import struct
from contextlib import suppress

from odradek.protocol.framing import LENGTH_BYTES, check_frame_size

from .frame_memory import NEVER_WAITS_BYTES

# The size of the shared buffer.
SHARED_BYTES = 128 * 1024
# The smallest size of an own buffer, and how much it holds while requests are held.
START_BYTES = 16 * 1024
# The smallest size of an own buffer that is made while requests are held.
WAITING_BYTES = 1024
# A smaller frame is copied for a request that is served in slices: a new buffer would cost more.
LENT_BYTES = 1024 * 1024
# A large buffer is freed after it was used this many times in a row to at most a quarter.
SHRINK_AFTER_USES = 64
_SIZE = struct.Struct(">i")


class ReceiveBuffer:
    """The bytes between `start` and `end` of `view` have arrived and are not served."""

    __slots__ = ("_shared", "_small_uses", "end", "start", "view")

    def __init__(self, shared: memoryview) -> None:
        self.view = shared
        self.start = 0
        self.end = 0
        self._shared = shared
        self._small_uses = 0  # in a row

    def room(self, is_held: bool) -> memoryview:
        """Where the next bytes go. `end` is then to be moved by their number."""
        if self.end == 0:
            return self.view[:START_BYTES] if is_held else self.view
        if self.end == len(self.view):
            self._make_room()
        # While requests are held, at most START_BYTES are kept.
        return self.view[self.end : (self.start + START_BYTES) if is_held else None]

    def next_frame(self, max_bytes: int) -> memoryview | None:
        """The next frame, without its length, if all of it is there. It is next until `take`.

        Raises FrameError if the announced length is negative or more than `max_bytes`.
        """
        start = self.start + LENGTH_BYTES
        if start > self.end:
            return None
        size: int = _SIZE.unpack_from(self.view, self.start)[0]
        if not 0 <= size <= max_bytes:
            check_frame_size(size, max_bytes)
        end = start + size
        return self.view[start:end] if end <= self.end else None

    def take(self, frame: memoryview) -> None:
        """Drop the next frame, which is served now. Its bytes stay until the next read."""
        self.start += LENGTH_BYTES + len(frame)

    def lend(self, frame: memoryview) -> memoryview:
        """The frame that was taken, in memory that no read overwrites: a copy, or the buffer."""
        if self.view is self._shared or len(frame) < LENT_BYTES:
            return memoryview(bytearray(frame))  # Produce writes the offsets into it
        if self.start == self.end:
            self._use_shared()
        else:
            self.replace(max(self.unserved_bytes, START_BYTES))
        return frame

    @property
    def unserved_bytes(self) -> int:
        """The number of bytes that have arrived and are not served."""
        return self.end - self.start

    @property
    def own_bytes(self) -> int:
        """The size of the connection's own buffer."""
        return 0 if self.view is self._shared else len(self.view)

    def frame_bytes(self) -> int | None:
        """The size of the frame that has begun, its length included; None if that is not there."""
        if self.unserved_bytes < LENGTH_BYTES:
            return None
        size: int = _SIZE.unpack_from(self.view, self.start)[0]
        return LENGTH_BYTES + size

    def is_full(self, is_held: bool) -> bool:
        """Whether nothing more may be received before the buffer is replaced by a larger one."""
        if is_held and self.unserved_bytes >= START_BYTES:
            return True
        return self.start == 0 and self.end == len(self.view)

    def tidy(self, is_held: bool) -> bool:
        """Leave the shared buffer to others, after all that can be served now is served.

        Returns whether unserved bytes are left.
        """
        if self.start != self.end:
            if self.view is self._shared:
                self._keep_rest(is_held)
            return True
        if self.view is not self._shared:
            self._note_use()
        self.start = self.end = 0
        return False

    def _note_use(self) -> None:
        """Free the own buffer, unless it is one for the large frames that keep coming."""
        is_small = self.end <= len(self.view) // 4
        self._small_uses = self._small_uses + 1 if is_small else 0
        is_kept = SHARED_BYTES < len(self.view) <= NEVER_WAITS_BYTES
        if not is_kept or self._small_uses >= SHRINK_AFTER_USES:
            self._use_shared()

    def shrink(self) -> None:
        """Free the own buffer, if it is empty."""
        if self.start == self.end:
            self._use_shared()

    def replace(self, size_bytes: int) -> None:
        """Use an own buffer of another size, which is enough for the unserved bytes."""
        have = self.unserved_bytes
        replaced = new_buffer(size_bytes)
        replaced[:have] = self.view[self.start : self.end]
        self.view = replaced
        self.start, self.end = 0, have

    def _use_shared(self) -> None:
        self._small_uses = 0
        self.view = self._shared
        self.start = self.end = 0

    def _keep_rest(self, is_held: bool) -> None:
        """Move unserved bytes to an own buffer: one with little room while requests are held."""
        have = self.unserved_bytes
        if is_held:
            self.replace(max(have, min(max(2 * have, WAITING_BYTES), START_BYTES)))
        elif have < START_BYTES:
            self.replace(START_BYTES)
        else:  # a part of a large frame
            self.replace(min(2 * have, self.frame_bytes() or START_BYTES))

    def _make_room(self) -> None:
        """Move the unserved bytes to the front."""
        have = self.unserved_bytes
        self.view[:have] = self.view[self.start : self.end]
        self.start, self.end = 0, have


def new_buffer(size_bytes: int) -> memoryview:
    """A buffer. A large one takes memory only as it is written to, and gives all of it back."""
    if size_bytes <= NEVER_WAITS_BYTES:
        return memoryview(bytearray(size_bytes))
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return memoryview(mmap.mmap(-1, size_bytes))
    pages = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # receiving takes a third of the time
        with suppress(OSError):  # the system has none
            pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages)
