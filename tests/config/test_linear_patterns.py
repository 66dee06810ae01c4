"""Patterns without google-re2: what they match is what RE2 matches, and the time is linear."""

import time
from typing import Any

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from odradek.config import linear_patterns

TEXTS = ["", "a", "A", "b", "ab", "aab", "orders-1", "Orders.DLQ", "a\nb", "_", "é", "0x", "]-^"]

PARTS = r"""a b A é . \. [ab] [^a] [a-c_] []-] \d \W [\w-] ^ $ \x61 \x{e9} orders - {
a{,2} \n \A \z \_ [^\S] [^-a]"""
parts = st.sampled_from(PARTS.split())
quantifiers = st.sampled_from(["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}"])
groups = st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?i)(", "(?-s:"])


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{}|{}".format, inner, inner),
        st.builds("{}{}){}".format, groups, inner, quantifiers),
    )


patterns = st.recursive(st.builds(str.__add__, parts, quantifiers), _combined, max_leaves=8)


def _compiled(library: Any, pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return library.compile(pattern, options)
    except library.error:
        return None


@given(patterns, st.text("aAbB1._-\n\u00e9", max_size=8))
def test_a_pattern_matches_as_in_re2(pattern: str, text: str) -> None:
    theirs, ours = _compiled(re2, pattern), _compiled(linear_patterns, pattern)
    assert (theirs is None) == (ours is None)
    for each in [*TEXTS, text] if ours and theirs else ():
        assert (theirs.fullmatch(each) is None) == (ours.fullmatch(each) is None), each
        assert (theirs.search(each) is None) == (ours.search(each) is None), each
        assert ours.fullmatch(each.encode()) == ours.fullmatch(each)


@given(st.text("ab()[]{}*+?|^$\\\\.-,:<>Pims12xzd", max_size=10))
def test_no_pattern_is_accepted_that_re2_refuses(pattern: str) -> None:
    ours = _compiled(linear_patterns, pattern)
    if ours is not None:
        theirs = _compiled(re2, pattern)
        assert theirs is not None
        for text in TEXTS:
            assert (theirs.fullmatch(text) is None) == (ours.fullmatch(text) is None), text


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("\\pL+", r"\p is not available without google-re2"),
        (r"a\b", r"\b is not available without google-re2"),
        ("[[:alpha:]]", "[[: is not available without google-re2"),
        ("(?U)a*", "(?U is not available without google-re2"),
        ("(a{99}){99}", "pattern too large"),
        ("(" * 200 + ")" * 200, "expression nests too deeply"),
        ("(?=a)", "invalid perl operator"),
        ("(abc", "missing )"),
        ("a**", "bad repetition operator"),
    ],
)
def test_a_pattern_is_refused_in_words(pattern: str, problem: str) -> None:
    with pytest.raises(linear_patterns.error) as refused:
        linear_patterns.compile(pattern)
    assert refused.value.args[0].decode() == problem


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "(.*)(.*)(.*)(.*)x", "(a|b)*a(a|b){40}"])
def test_the_time_is_linear_in_the_text(pattern: str) -> None:
    def seconds(size: int) -> float:
        runs = []
        for _ in range(3):
            compiled = linear_patterns.compile(pattern)
            started = time.process_time()
            compiled.fullmatch("aab" * (size // 3) + "c")
            runs.append(time.process_time() - started)
        return min(runs)

    assert seconds(16_000) < 40 * max(seconds(1_000), 0.001)


def test_what_is_kept_of_a_pattern_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_patterns, "MAX_KEPT", 50)
    compiled = linear_patterns.compile("(a|b)*a(a|b){9}")
    texts = [f"{number:b}".replace("0", "a").replace("1", "b") for number in range(3_000)]
    expected = [len(text) >= 10 and text[-10] == "a" for text in texts]
    assert [compiled.fullmatch(text) is not None for text in texts] == expected
    assert len(compiled._kept) <= 25
