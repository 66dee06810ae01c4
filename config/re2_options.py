"""How RE2 compiles patterns of clients: at a bounded cost, and without lines in the log.

google-re2 has no wheels for some interpreters and systems. There linear_patterns.py matches a part
of its syntax.
"""

from functools import cache
from typing import Any

MAX_MEMORY_BYTES = 1 << 20
"""Of a compiled program with its automaton."""

# RE2 takes time quadratic in the number of optional parts, and up to 0.5 ms for a Unicode class.
MAX_REPETITIONS = 1_000
MAX_UNICODE_CLASSES = 20


@cache
def re2_library() -> Any:
    """Return google-re2, or what takes its place. Imported at first use: few brokers need it."""
    try:
        import re2
    except ImportError:
        from . import linear_patterns

        return linear_patterns
    return re2


def cost_of_a_step() -> int:
    """Return how long the library takes for a character, relative to RE2."""
    cost: int = getattr(re2_library(), "COST_OF_A_STEP", 1)
    return cost


def bounded_options() -> Any:
    """Return new options, which may be changed."""
    options = re2_library().Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    return options


def why_costly(pattern: str) -> str | None:
    """Why RE2 could take long to compile a pattern; None if it cannot."""
    if sum(map(pattern.count, "?*+{")) > MAX_REPETITIONS:
        return f"more than {MAX_REPETITIONS} repetitions"
    if count_unicode_classes(pattern) > MAX_UNICODE_CLASSES:
        return f"more than {MAX_UNICODE_CLASSES} Unicode classes"
    return None


def count_unicode_classes(pattern: str) -> int:
    """Count classes like `\\pL`."""
    return pattern.count("\\p") + pattern.count("\\P")
