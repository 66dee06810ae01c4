"""How the cost of compiling a pattern is bounded by its text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.config.re2_options import (
    MAX_OPTIONAL_PARTS,
    bounded_options,
    pattern_size,
    re2_library,
    why_costly,
)


@pytest.mark.parametrize(
    ("pattern", "parts", "optional"),
    [
        ("abc", 3, 0),
        ("a?b*", 4, 2),
        ("a{3}", 3, 0),
        ("ab{3}c", 5, 0),
        ("a{0,9}", 18, 9),
        ("a{0,9}?", 18, 9),
        ("a{2,9}a{3,}", 16 + 4, 7 + 1),
        ("a{0}", 1, 0),  # RE2 drops it after it has written out what is inside
        ("(ab){3}", 9, 0),
        ("(?:ab){3}(?P<n>a|b){2}", 9 + 8, 0),
        ("((a{2}b){3}c){4}", 4 * (3 * (2 + 1 + 1) + 1 + 1), 0),
        ("((a?){30}b){30}", 30 * (30 * (1 + 1 + 1) + 1 + 1), 900),
        ("[a-z]{1,249}", 249 + 248 + 4, 248),
        ("[{9}\\]{9}]{2}", 2 + 9, 0),
        ("[]{9}]{2}[^]{9}]{2}", (2 + 5) + (2 + 6), 0),
        ("[[:alpha:]{9}]{2}", 2 + 13, 0),
        ("\\Qa{9}\\E{2}", 2 + 7, 0),
        ("\\{{2}", 2 + 1, 0),
        ("\\x{41}{2}\\p{Greek}{2}", (2 + 5) + (2 + 8), 0),
        ("(?i)a{2}", 1 + 2, 0),
    ],
)
def test_repetitions_are_written_out(pattern: str, parts: int, optional: int) -> None:
    assert pattern_size(pattern) == (parts, optional)


@pytest.mark.parametrize("part", ["a{0,1000}", "(?:ab?){1000}", "((a?){30}){30}", "(.*){900}"])
def test_the_sum_of_optional_parts_is_bounded(part: str) -> None:
    assert why_costly(part) is None
    assert why_costly(part * 3) == f"more than {MAX_OPTIONAL_PARTS} optional parts"


ATOMS = st.sampled_from(
    ["a", "ab", "[a-c]", "[]{9}]", "\\{", "\\Qa{3}\\E", "\\x{41}", "{", "a{x", "^"]
)
COUNTS = st.sampled_from(["?", "*", "+?", "{3}", "{0,4}", "{2,}", "{1,9}?"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, COUNTS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(ATOMS, COUNTS).map("".join),
    ),
    max_leaves=8,
)


@given(PATTERNS)
def test_a_program_is_not_larger_than_the_parts(pattern: str) -> None:
    library = re2_library()
    try:
        size = library.compile(pattern, bounded_options()).programsize
    except library.error:
        return
    # A part is one or two instructions, a group has two more, and a program begins with four.
    assert size <= 3 * pattern_size(pattern).parts + 10
