"""How RE2 compiles patterns of clients: at a bounded cost, and without lines in the log."""

from typing import Any

import re2

MAX_MEMORY_BYTES = 1 << 20
"""Of a compiled program with its automaton."""


def bounded_options() -> Any:
    """Return new options, which may be changed."""
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    return options
