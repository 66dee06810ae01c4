"""Subscriptions by regular expression."""

from collections.abc import Iterable

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.config import re2_options
from odradek.config.re2_options import MAX_OPTIONAL_PARTS, MAX_UNICODE_CLASSES
from odradek.coordinator.consumer_groups.subscription_regex import (
    MAX_PATTERN_BYTES,
    check_pattern,
    resolve_patterns,
)
from odradek.coordinator.consumer_groups.subscriptions import ResolvedRegex
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.java_program import java_answers

pytestmark = pytest.mark.skipif(
    re2_options.re2_library() is not re2,
    reason="without google-re2: tests/config/test_linear_patterns.py",
)

NAMES = sorted(
    [
        "__consumer_offsets",
        "Orders",
        "a",
        "ab",
        "audit-log",
        "b.c",
        "orders",
        "orders-1",
        "orders.dlq",
    ]
)

# Refused by both, in these words.
BAD = {
    "(abc": "missing closing )",
    "(?:": "missing closing )",
    "[a": "missing closing ]",
    "[]": "missing closing ]",
    "*": "missing argument to repetition operator",
    "a|*": "missing argument to repetition operator",
    "{2}": "missing argument to repetition operator",
    "a**": "invalid nested repetition operator",
    "a++": "invalid nested repetition operator",
    "x{2}{3}": "invalid nested repetition operator",
    "a{1001}": "invalid repeat count",
    "a{2,1}": "invalid repeat count",
    "\\": "trailing backslash at end of expression",
    "[\\": "trailing backslash at end of expression",
    "(?P<n": "invalid named capture",
    "(?P<n-m>a)": "invalid named capture",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?!a)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    "(?z)": "invalid or unsupported Perl syntax",
    "[z-a]": "invalid character class range",
    "[[:foo:]]": "invalid character class range",
    "\\p{Foo}": "invalid character class range",
    "(a)\\1": "invalid escape sequence",
    "\\Z": "invalid escape sequence",
    "\\C": "invalid escape sequence",
    "a\\\\\\Cb": "invalid escape sequence",
    "\\u0041": "invalid escape sequence",
    "[\\b]": "invalid escape sequence",
}
GOOD = [
    "",
    "orders",
    "orders.*",
    "ord",
    ".*",
    "(?i)ORDERS",
    "(?i)o.*",
    "^orders$",
    "\\Aorders\\z",
    "a|ab",
    "(a|ab)(|-log|udit-log)",
    "orders[.-].*",
    "orders\\.dlq",
    "\\Qorders.dlq\\E",
    "\\Q\\C\\E|a",
    "\\Qa",
    "\\\\C|b.c",
    "__.*",
    "[^_].*",
    "\\w+",
    "\\pL+",
    "[[:lower:]]+",
    "(?P<name>a)b?",
    "(?<name>a)b?",
    "a{,2}|a{1,2}b",
    "(?U)a.*",
    "(?s).+\\b",
    "\\x61|\\141b",
]
# Only one of the two takes it; why, the module says.
RE2J_ALONE = ["((a{99}){99}){99}", "(a{2}){501}", "\\é", "a?" * (MAX_OPTIONAL_PARTS + 1)]
RE2_ALONE = ["(?P<n>a)(?P<n>b)", "\\p{Kawi}"]


def resolve(patterns: Iterable[str], names: Iterable[str] = NAMES) -> dict[str, ResolvedRegex]:
    """All steps in one go."""
    steps = resolve_patterns(patterns, sorted(names), version=7, now_ms=9)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: dict[str, ResolvedRegex] = end.value
            return result


def topics(pattern: str, names: Iterable[str] = NAMES) -> frozenset[str]:
    return resolve([pattern], names)[pattern].topics


@pytest.mark.parametrize("pattern", GOOD)
def test_a_pattern_must_match_the_whole_topic_name(pattern: str) -> None:
    check_pattern(pattern)
    plain = re2.compile(pattern)
    assert topics(pattern) == {name for name in NAMES if plain.fullmatch(name)}


@pytest.mark.parametrize(("pattern", "words"), BAD.items())
def test_an_invalid_pattern_is_refused_with_kafkas_message(pattern: str, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_pattern(pattern)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert caught.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {words}."
    )


def test_a_parenthesis_too_many_is_named() -> None:
    """RE2/J says "regexp/syntax: internal error"."""
    with pytest.raises(ApiError, match=r"expression: unexpected \)\.$"):
        check_pattern("a)")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a" * (MAX_PATTERN_BYTES + 1), "longer than 32767 bytes"),
        ("é" * (MAX_PATTERN_BYTES // 2 + 1), "longer than 32767 bytes"),
        ("a?" * (MAX_OPTIONAL_PARTS + 1), "more than 2000 optional parts"),
        ("a{0,1000}" * 30, "more than 2000 optional parts"),
        ("a{1000}" * 33, "more than 32768 parts"),
        ("[[:" * 10_000, "more than 100 named classes"),
        ("\\pL" * (MAX_UNICODE_CLASSES + 1), "more than 20 Unicode classes"),
        ("\\pL{60}", "pattern too large"),
        ("((a{99}){99}){99}", "more than 32768 parts"),
        ("(x*){1000}" * 400, "more than 2000 optional parts"),
    ],
)
def test_a_pattern_that_costs_too_much_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "|".join(f"team-{number}.topic-of-{number * 7919 % 1000}" for number in range(1_000)),
        "a?" * (MAX_OPTIONAL_PARTS - 1) + "b",
        "\\pL" * 15,
        "[a-z0-9._-]{1,249}",
        "[a-z]{1,249}(-[a-z]{1,100}){0,5}",
        "orders-.{0,100}",
        "(" * 5_000 + "a" + ")" * 5_000,
    ],
    ids=["names", "optional", "classes", "counted", "counted twice", "prefix", "nested"],
)
def test_a_long_pattern_is_served(pattern: str) -> None:
    check_pattern(pattern)
    plain = re2.compile(pattern)
    names = ["team-3.topic-of-757", "aaab", "b", "a", "ab" * 120]
    assert topics(pattern, names) == {name for name in names if plain.fullmatch(name)}


def test_a_pattern_that_cannot_be_compiled_matches_nothing() -> None:
    found = resolve(["(", "a"])
    assert {pattern: each.topics for pattern, each in found.items()} == {
        "(": frozenset(),
        "a": {"a"},
    }


def test_a_resolution_has_the_metadata_version_and_its_time() -> None:
    for resolved in resolve(["a", "no.such.topic"]).values():
        assert (resolved.version, resolved.timestamp_ms) == (7, 9)


def test_a_resolution_runs_in_steps() -> None:
    names = sorted(f"topic-{number:05}" for number in range(10_000))
    steps = list(resolve_patterns([".*9", "topic-0000."], names, version=1, now_ms=1))
    assert 15 < len(steps) < 30
    # A large program takes longer for each name, so it is given fewer at a time.
    assert len(list(resolve_patterns(["(.*[ab].*){300}"], names, version=1, now_ms=1))) > 200


LITERALS = st.sampled_from(["a", "b", "ab", "-", "\\.", "orders", "O", "é", "."])
ATOMS = LITERALS | st.sampled_from(["[^a]", "[a-o]", "\\w", "\\b", "^", "$", "\\pL", "(?i)", ""])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda part: f"(?i:{part})"),
        st.tuples(inner, st.integers(0, 90)).map(lambda pair: f"(?:{pair[0]}){{{pair[1]}}}"),
    ),
    max_leaves=8,
)
TEXTS = st.text(alphabet="aboO-._dersé", max_size=12)


@given(PATTERNS, st.sets(TEXTS, max_size=12))
@example("(?i:orders).*", {"Orders", "orders", "ordert"})
@example("(?:(?:[^a]){90}){9}", {"b" * 810, "b" * 809, "a" * 810})
def test_the_prefix_bounds_exclude_no_matching_name(pattern: str, names: set[str]) -> None:
    try:
        check_pattern(pattern)
    except ApiError:
        return
    plain = re2.compile(pattern)
    assert topics(pattern, names) == {name for name in names if plain.fullmatch(name)}


@pytest.mark.java
@pytest.mark.slow
def test_re2j_gives_the_same_result_except_for_a_few_patterns() -> None:
    answers = asked_of_re2j([*GOOD, *BAD, *RE2J_ALONE, *RE2_ALONE])
    for pattern in GOOD:
        assert answers[pattern] == " ".join(["ok", *sorted(topics(pattern))]), pattern
    for pattern, words in BAD.items():
        assert answers[pattern] == f"bad {words}", pattern
    for pattern in RE2J_ALONE:
        assert answers[pattern].startswith("ok"), pattern
        with pytest.raises(ApiError):
            check_pattern(pattern)
    for pattern in RE2_ALONE:
        assert answers[pattern].startswith("bad"), pattern
        check_pattern(pattern)


def asked_of_re2j(patterns: list[str]) -> dict[str, str]:
    """Of each pattern, `ok` and which NAMES it matches, or `bad` and why."""
    lines = [" ".join(NAMES), *(pattern.encode().hex() for pattern in patterns)]
    answers = java_answers("TopicPatterns.java", lines)
    return dict(zip(patterns, map(str.strip, answers), strict=True))
