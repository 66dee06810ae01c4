"""Subscriptions by regular expression: checked, and resolved to topic names by the broker.

A member sends a pattern in RE2's syntax; a topic is meant when the pattern matches its whole name.
All topics count, internal ones too. What a pattern
stood for is written down with the version of the metadata that was looked at.

Patterns are strangers' texts, so all costs are bounded. RE2 matches in time linear to the name. The
program and the automaton behind a pattern stay below MAX_MEMORY_BYTES, and nothing of it is kept
after use: compiling again costs a tenth of a millisecond. A text that RE2 would chew on for long
is refused by what it holds. To go through 10,000 names takes 10 to 20 ms for a pattern, less where
it begins with a fixed text, as most do: only names that begin with it are looked at. That is long
for an event loop, so `resolution` goes on in steps of about a millisecond.

Kafka compiles with RE2/J, which differs from RE2 in what follows:

    \\C                  refused by RE2/J, and so here
    ((a{99}){99}){99}   RE2/J builds it, whatever it takes; RE2 refuses more than 1,000 repetitions
                        in all, and what needs more than its memory
    (?P<n>a)(?P<n>b)    refused by RE2/J: the same name twice
    \\p{Kawi}            refused by RE2/J: scripts that came to Unicode after it
    \\é                  refused by RE2: a backslash before a character beyond ASCII

Kafka: TopicRegexResolver, ResolvedRegularExpression, Utils.throwIfRegularExpressionIsInvalid.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import re2

from odradek.protocol.errors import ApiError, ErrorCode

from .subscriptions import ResolvedRegex

MAX_MEMORY_BYTES = 2 << 20
MAX_PATTERN_BYTES = (1 << 15) - 1  # ConsumerGroupRegularExpressionKey: a length of 16 bits
# RE2 takes time in the square of optional parts; for a class of Unicode, 0.1 ms.
MAX_REPETITIONS = 1_000
MAX_UNICODE_CLASSES = 100

MAX_PREFIX_BYTES = 64
NAMES_PER_STEP = 500
# A larger program takes longer for each name, at worst in proportion to its size.
SMALL_PROGRAM = 200

# RE2's words to RE2/J's, where these say as much.
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
# Quoted text, or a backslash with what it is before.
_ESCAPE = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|.)", re.DOTALL)


def check_pattern(pattern: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION unless topics may be subscribed to by this pattern."""
    _compile(pattern)


def resolution(
    patterns: Iterable[str],
    names: Sequence[str],
    *,
    version: int,
    now_ms: int,
) -> Generator[None, None, dict[str, ResolvedRegex]]:
    """Resolve patterns against `names`, which are sorted: a generator that yields now and then.

    `names` and `version` are those of one moment; whoever waits between the steps must compare the
    version afterwards. A pattern that cannot be compiled (another broker let it in) matches
    nothing.
    """
    resolved = {}
    for pattern in patterns:
        found = yield from _matches(pattern, names)
        resolved[pattern] = ResolvedRegex(
            topics=frozenset(found), version=version, timestamp_ms=now_ms
        )
    return resolved


# Whether a pattern matches a whole name.
Matcher = Callable[[bytes], object]


def _matches(pattern: str, names: Sequence[str]) -> Generator[None, None, list[str]]:
    try:
        compiled = _compile(pattern)
    except ApiError:
        return []
    first, last = _range_of(compiled, names)
    step = _names_per_step(compiled)
    matches = _matcher(compiled)
    found: list[str] = []
    for start in range(first, last, step):
        some = names[start : min(start + step, last)]
        found += [name for name in some if matches(name.encode())]
        yield
    return found


def _range_of(compiled: Any, names: Sequence[str]) -> tuple[int, int]:
    """From where to where names may match, by what each match begins with."""
    try:
        least, most = compiled.possiblematchrange(MAX_PREFIX_BYTES)
    except re2.error:
        return 0, len(names)
    # UTF-8 sorts as code points do.
    return (
        bisect_left(names, least, key=str.encode),
        bisect_right(names, most, key=str.encode),
    )


def _matcher(compiled: Any) -> Matcher:
    """A Set of one is three times as quick, for it tells no positions.

    But it has only its automaton to match by, and says no where that outgrows its memory, which
    that of a small program cannot.
    """
    matches: Matcher = compiled.fullmatch
    if compiled.programsize <= SMALL_PROGRAM:
        alone = re2.Set.FullMatchSet(_options())
        alone.Add(compiled.pattern)
        alone.Compile()
        matches = alone.Match
    return matches


def _names_per_step(compiled: Any) -> int:
    share = min(1.0, SMALL_PROGRAM / compiled.programsize)
    return max(1, int(NAMES_PER_STEP * share**2))


def _compile(pattern: str) -> Any:
    """A pattern of RE2. Raises INVALID_REGULAR_EXPRESSION."""
    if len(pattern.encode()) > MAX_PATTERN_BYTES:
        text = f"SubscribedTopicRegex is longer than {MAX_PATTERN_BYTES} bytes."
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    if sum(map(pattern.count, "?*+{")) > MAX_REPETITIONS:
        raise _invalid(pattern, f"more than {MAX_REPETITIONS} repetitions")
    if pattern.count("\\p") + pattern.count("\\P") > MAX_UNICODE_CLASSES:
        raise _invalid(pattern, f"more than {MAX_UNICODE_CLASSES} Unicode classes")
    if any(escape.group() == "\\C" for escape in _ESCAPE.finditer(pattern)):
        raise _invalid(pattern, "invalid escape sequence")
    try:
        compiled = re2.compile(pattern, _options())
    except re2.error as error:
        raise _invalid(pattern, _description(error)) from None
    re2.purge()  # it would keep the last 128
    return compiled


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    return options


def _description(error: Exception) -> str:
    """`missing ): (abc` -> `missing closing )`, as RE2/J says."""
    text: str = error.args[0].decode(errors="replace")
    code = text.partition(": ")[0]
    return _DESCRIPTIONS.get(code, code)


def _invalid(pattern: str, why: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}.",
    )
