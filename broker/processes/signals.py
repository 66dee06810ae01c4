"""The signals that a terminal or a service manager sends to all processes of the broker.

Only the broker's own process handles them: it ends the others.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

# Windows has no SIGHUP, and blocks no signals.
SIGNALS_OF_ALL = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGHUP", "SIGTERM") if hasattr(signal, name)
)


def ignore_signals_of_all() -> None:
    """Leave them to the broker's own process."""
    for number in SIGNALS_OF_ALL:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def blocked_signals_of_all() -> Iterator[None]:
    """Block them in this thread, and in a process that is started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS_OF_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
