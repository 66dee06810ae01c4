"""odradek with a wall clock that a test can set. `python -m tests.support.jumping_clock FILE ...`

The file holds how many nanoseconds the clock is ahead; the other arguments are odradek's.
"""

import sys
import time
from pathlib import Path

from odradek.tools.cli import main

_true_time_ns = time.time_ns


def put_clock(file: Path) -> None:
    """Let `time_ns` read the file from now on."""

    def time_ns() -> int:
        return _true_time_ns() + int(file.read_text() or "0")

    time.time_ns = time_ns


if __name__ == "__main__":
    put_clock(Path(sys.argv.pop(1)))
    main()
