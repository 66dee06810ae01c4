"""The signals that a terminal or a service manager sends to all processes of the broker.

Only the broker's own process handles them: it ends the others.
"""

import signal

SIGNALS_OF_ALL = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


def ignore_signals_of_all() -> None:
    """Leave them to the broker's own process."""
    for number in SIGNALS_OF_ALL:
        signal.signal(number, signal.SIG_IGN)
