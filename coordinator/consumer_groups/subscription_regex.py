"""Subscriptions by regular expression: validates patterns, and resolves them to topic names.

A member sends a pattern in RE2's syntax. The pattern must match the whole name of a topic. All
topics are considered, including internal ones. The result has the version of the metadata whose
topics were searched.

Patterns come from untrusted clients, so the cost of each is bounded:

- Compiling: config/re2_options.py limits the memory, and refuses patterns that RE2 would take long
  to compile. Of the others the slowest takes about 14 ms, and a usual one less than 0.1 ms. So a
  compiled pattern is not kept after its use.
- Matching: RE2's time is linear in the length of a name. 10,000 names take 10 to 20 ms. Most
  patterns begin with fixed text; then only names with this prefix are matched. 20 ms is too long
  for an event loop, so `resolve_patterns` is a generator that yields about every millisecond.

Kafka uses RE2/J, the Java version of RE2. These patterns are treated differently by the two:

    \\C                  refused by RE2/J, and here
    ((a{99}){99}){99}   RE2/J accepts it at any cost; RE2 refuses more than 1,000 repetitions in
                        total, and patterns that exceed its memory
    (?P<n>a)(?P<n>b)    refused by RE2/J: duplicate group name
    \\p{Kawi}            refused by RE2/J: scripts added to Unicode after its release
    \\é                  refused by RE2: a backslash before a non-ASCII character

Without google-re2 a part of its syntax is available (config/linear_patterns.py).

Kafka: TopicRegexResolver, ResolvedRegularExpression, Utils.throwIfRegularExpressionIsInvalid.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from odradek.config.re2_options import (
    bounded_options,
    cost_of_a_step,
    re2_library,
    why_costly,
)
from odradek.coordinator.any_group.caller import MayDescribe
from odradek.protocol.errors import ApiError, ErrorCode

from .subscriptions import ResolvedRegex

MAX_PATTERN_BYTES = (1 << 15) - 1  # ConsumerGroupRegularExpressionKey has a 16-bit length
MAX_PREFIX_BYTES = 64
NAMES_PER_STEP = 500  # of a pattern with a small program
SMALL_PROGRAM = 200  # instructions

# RE2/J's text of an error by RE2's text, where they differ.
_DESCRIPTIONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
# Quoted text (`\Q...\E`), or a backslash and the character after it.
_ESCAPE = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|.)", re.DOTALL)


def check_pattern(pattern: str) -> None:
    """Raise ApiError INVALID_REGULAR_EXPRESSION unless the pattern is valid."""
    compile_pattern(pattern)


def resolve_patterns(
    patterns: Iterable[str],
    names: Sequence[str],
    *,
    version: int,
    now_ms: int,
    may_describe: MayDescribe = None,
) -> Generator[None, None, dict[str, ResolvedRegex]]:
    """Resolve patterns against the sorted `names`; a generator that yields after each step.

    Only topics that `may_describe` accepts are found. `names` and `version` belong to the same
    state of the metadata. A caller that does other work between steps must compare the version
    afterwards. A pattern that cannot be compiled (another broker has accepted it) matches nothing.
    """
    resolved = {}
    for pattern in patterns:
        found = yield from _matches(pattern, names, may_describe)
        resolved[pattern] = ResolvedRegex(
            topics=frozenset(found), version=version, timestamp_ms=now_ms
        )
    return resolved


# Returns a true value if the pattern matches the whole name.
Matcher = Callable[[bytes], object]


def _matches(
    pattern: str, names: Sequence[str], may_describe: MayDescribe
) -> Generator[None, None, list[str]]:
    try:
        compiled = compile_pattern(pattern)
    except ApiError:
        return []
    first, last = _range_of(compiled, names)
    count = _names_per_step(compiled)
    matches = _matcher(compiled)
    found: list[str] = []
    for start in range(first, last, count):
        searched = names[start : min(start + count, last)]
        matching = [name for name in searched if matches(name.encode())]
        found += matching if may_describe is None else filter(may_describe, matching)
        yield
    return found


def _range_of(compiled: Any, names: Sequence[str]) -> tuple[int, int]:
    """The index range [first, last) of the sorted names that may match.

    RE2 knows the lowest and the highest text that may match if a pattern begins with fixed text.
    """
    try:
        lowest, highest = compiled.possiblematchrange(MAX_PREFIX_BYTES)
    except re2_library().error:
        return 0, len(names)
    # UTF-8 sorts in the order of code points.
    return (
        bisect_left(names, lowest, key=str.encode),
        bisect_right(names, highest, key=str.encode),
    )


def _matcher(compiled: Any) -> Matcher:
    """Return a match function. For a small program that is an RE2 Set with one pattern.

    A Set is three times as fast, because it reports no positions. But it matches by its automaton
    only, and reports no match when that exceeds its memory. A small program's automaton cannot.
    """
    matches: Matcher = compiled.fullmatch
    if compiled.programsize <= SMALL_PROGRAM and hasattr(re2_library(), "Set"):
        alone = re2_library().Set.FullMatchSet(_options())
        alone.Add(compiled.pattern)
        alone.Compile()
        matches = alone.Match
    return matches


def _names_per_step(compiled: Any) -> int:
    """How many names are matched in about a millisecond.

    At worst the time for one name grows with the program's size, and it is longer by
    `cost_of_a_step` if another library replaces RE2. The number of names falls with the square of
    both: a step with a large program is shorter than necessary.
    """
    share = min(1.0, SMALL_PROGRAM / (compiled.programsize * cost_of_a_step()))
    return max(1, int(NAMES_PER_STEP * share**2))


def compile_pattern(pattern: str) -> Any:
    """Compile a client's pattern with RE2, at a bounded cost.

    Raises ApiError INVALID_REGULAR_EXPRESSION.
    """
    if len(pattern.encode()) > MAX_PATTERN_BYTES:
        text = f"SubscribedTopicRegex is longer than {MAX_PATTERN_BYTES} bytes."
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    if (problem := why_costly(pattern)) is not None:
        raise _invalid(pattern, problem)
    if any(escape.group() == "\\C" for escape in _ESCAPE.finditer(pattern)):
        raise _invalid(pattern, "invalid escape sequence")
    re2 = re2_library()
    try:
        compiled = re2.compile(pattern, _options())
    except re2.error as error:
        raise _invalid(pattern, _description(error)) from None
    re2.purge()  # otherwise the library caches the last 128
    return compiled


def _options() -> Any:
    options = bounded_options()
    options.never_capture = True
    return options


def _description(error: Exception) -> str:
    """Translate RE2's error to RE2/J's: `missing ): (abc` -> `missing closing )`."""
    text: str = error.args[0].decode(errors="replace")
    code = text.partition(": ")[0]
    return _DESCRIPTIONS.get(code, code)


def _invalid(pattern: str, problem: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}.",
    )
