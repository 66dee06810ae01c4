"""Paths into JSON: what is at their end."""

import pytest

from odradek.broker.console.messages.filters import json_of, parse_path
from odradek.coordinator.runtime.steps import no_step


def is_found(document: bytes, text: str) -> bool:
    return parse_path(f"$.at={text}").matches(json_of(b'{"at": %b}' % document), no_step)


@pytest.mark.parametrize(
    "text", [b"1", b"1.0", b"-0.5", b"1e3", b"1E+22", b"12345678901234567890", b"true", b"null"]
)
def test_a_number_is_found_by_the_text_that_is_in_the_json(text: bytes) -> None:
    assert is_found(text, text.decode())


@pytest.mark.parametrize(
    ("document", "text"),
    [(b"1.0", "1"), (b"1", "1.0"), (b"1000", "1e3"), (b"0.5", "0.50"), (b'"1.0"', "1.0")],
)
def test_numbers_are_compared_as_numbers(document: bytes, text: str) -> None:
    assert is_found(document, text)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (b"1.0", "1.5"),
        (b"1", "true"),
        (b"true", "1"),
        (b"1", "one"),
        (b"1", ""),
        (b'"1.0"', "1"),
        (b"null", "0"),
        (b"12345678901234567890", "12345678901234567891"),
        (b"1", "1" * 5000),
    ],
)
def test_what_is_not_the_same_is_not_found(document: bytes, text: str) -> None:
    assert not is_found(document, text)


def test_a_path_into_a_long_list_gives_way_to_others() -> None:
    steps: list[None] = []
    assert not parse_path("$[*]=x").matches([1] * 1000, lambda: steps.append(None))
    assert len(steps) == 1000
