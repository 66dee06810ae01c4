"""How RE2 compiles patterns of clients: at a bounded cost, and without lines in the log.

RE2 writes a repetition out before it compiles it: `(ab){3}` becomes `ababab`, and `a{0,3}` becomes
`(a(aa?)?)?`. Neighbours like `a{0,9}a{0,9}` become one repetition. RE2's limit of memory does not
bound the time, which grows with the square of the number of optional parts: 30,000 of them take
1.5 s. So the parts are counted in the text of a pattern before it is compiled. Measured: of 40,000
random patterns that are accepted, the slowest takes 14 ms to compile. Counting takes 16 ms at most,
for 32 KB of parentheses. `[a-z]{1,249}` takes 0.3 ms in all.

google-re2 has no wheels for some interpreters and systems. There linear_patterns.py matches a part
of its syntax.
"""

import re
from functools import cache
from typing import Any, NamedTuple

MAX_MEMORY_BYTES = 1 << 19
"""The limit of a compiled program together with its automaton (RE2's max_mem)."""

MAX_PARTS = 1 << 15
"""The limit of characters, classes and operators after repetitions are written out."""

MAX_OPTIONAL_PARTS = 2_000
"""The limit of parts that may be left out or repeated without end."""

MAX_UNICODE_CLASSES = 20
"""The limit of classes like `\\pL` in a pattern; RE2 takes up to 0.5 ms to read one."""

MAX_NAMED_CLASSES = 100
"""The limit of classes like `[:alpha:]`: RE2 looks for the end of each up to the pattern's end."""

_REPETITIONS = ("sign", "least", "comma")  # groups of _TOKEN
_DIGITS = 9  # of a number of repetitions; RE2 refuses more than 1,000
# A class that is not closed goes on to the end: else the search would start again at each [.
_TOKEN = re.compile(
    r"""
      (?P<atoms>(?:
          [^\\\[()?*+{]
        | \\Q.*?(?:\\E|\Z)
        | \\[pPx]\{[^}]{,40}\}
        | \\(?!Q).?
        | \[\^?\]?(?:\[:\^?\w*:\]|\\.?|[^\]\\])*(?:\]|\Z)
      )+)
    | (?P<flags>\(\?[A-Za-z-]*\))
    | (?P<open>\((?:\?(?:[A-Za-z-]*:|P?<\w*>))?)
    | (?P<close>\))
    | (?P<sign>[?*+])\??
    | \{(?P<least>[0-9]+)(?P<comma>,(?P<most>[0-9]*))?\}\??
    | \{
    """,
    re.VERBOSE | re.DOTALL,
)


class PatternSize(NamedTuple):
    """An upper bound of the parts of a pattern after its repetitions are written out.

    `optional`: how many of them may be left out or repeated without end.
    """

    parts: int
    optional: int


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
    size = pattern_size(pattern)
    if size.optional > MAX_OPTIONAL_PARTS:
        return f"more than {MAX_OPTIONAL_PARTS} optional parts"
    if size.parts > MAX_PARTS:
        return f"more than {MAX_PARTS} parts"
    if pattern.count("\\p") + pattern.count("\\P") > MAX_UNICODE_CLASSES:
        return f"more than {MAX_UNICODE_CLASSES} Unicode classes"
    if pattern.count("[:") > MAX_NAMED_CLASSES:
        return f"more than {MAX_NAMED_CLASSES} named classes"
    return None


def pattern_size(pattern: str) -> PatternSize:
    """Count the parts of a pattern in its text. A pattern that RE2 refuses may have any size."""
    operators = sum(map(pattern.count, "?*+{"))
    is_too_large = len(pattern) > MAX_PARTS or operators > MAX_OPTIONAL_PARTS
    if is_too_large or "{" not in pattern:
        return PatternSize(len(pattern), operators)
    around: list[tuple[int, int]] = []  # parts and optional parts before each open group
    parts = optional = 0
    last_parts = last_optional = 0  # of the last part, which may be repeated: not yet in the sums
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind in _REPETITIONS:
            count, more = _bounds(token)
            last_parts = last_parts * count + more
            last_optional = last_optional * count + more
            continue
        parts += last_parts
        optional += last_optional
        last_parts, last_optional = 1, 0
        if kind == "atoms":
            parts += token.end() - token.start() - 1
        elif kind == "open":
            around.append((parts, optional))
            parts = optional = 0
        elif kind == "close" and around:
            last_parts, last_optional = parts, optional
            parts, optional = around.pop()
    around.append((last_parts, last_optional))
    return PatternSize(parts + sum(p for p, _ in around), optional + sum(o for _, o in around))


def _bounds(repetition: re.Match[str]) -> tuple[int, int]:
    """How many copies RE2 makes of a part, and how many of them are optional or a loop."""
    sign, least, comma, most = repetition.group("sign", "least", "comma", "most")
    if sign is not None:
        return 1, 1
    low = int(least[:_DIGITS])
    if comma is None:
        return max(low, 1), 0
    if not most:
        return max(low, 1), 1
    high = int(most[:_DIGITS])
    return max(high, 1), max(high - low, 0)
