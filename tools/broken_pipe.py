"""What a command does when whoever read its output has gone, as `| head` does."""

import contextlib
import os
import sys


def leave_quietly() -> int:
    """Nothing is left to say, not even at exit. Returns the exit code."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
