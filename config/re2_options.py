"""How RE2 compiles patterns of clients: at a bounded cost, and without lines in the log.

`re2` is google-re2. It has no wheels for some interpreters and systems. There it is a part of its
syntax, which linear_patterns.py matches. `COST_OF_A_STEP`: the time for a character, to RE2's.
"""

from typing import Any

try:
    import re2 as _re2
except ImportError:
    from . import linear_patterns as _re2

re2: Any = _re2
COST_OF_A_STEP: int = getattr(re2, "COST_OF_A_STEP", 1)

MAX_MEMORY_BYTES = 1 << 20
"""Of a compiled program with its automaton."""

# RE2 takes time quadratic in the number of optional parts, and up to 0.5 ms for a Unicode class.
MAX_REPETITIONS = 1_000
MAX_UNICODE_CLASSES = 20


def bounded_options() -> Any:
    """Return new options, which may be changed."""
    options = re2.Options()
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
