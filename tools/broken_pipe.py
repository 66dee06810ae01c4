"""Handles the end of the process that reads a command's output, as in `odradek verify … | head`."""

import contextlib
import os
import sys


def handle_broken_pipe() -> int:
    """Send the rest of stdout to /dev/null; returns the exit code for the command, 0.

    Without this, Python's flush at exit would raise BrokenPipeError once more.
    """
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
