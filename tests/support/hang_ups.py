"""What the processes that a test starts do with SIGHUP."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def children_inherit(action: signal.Handlers) -> Iterator[None]:
    """Processes that are started meanwhile begin with this action of SIGHUP."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
