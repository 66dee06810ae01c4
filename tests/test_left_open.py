"""What a slow test leaves open is closed at its own end, also if a log record refers to it."""

import logging
import weakref
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.slow


class Left:
    """Stands for a socket that nobody closes. Only the garbage collector can drop it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(scope="module")
def left() -> Iterator[list[weakref.ref[Left]]]:
    """References to what the test leaves. They are looked at after its own fixtures have ended."""
    references: list[weakref.ref[Left]] = []
    yield references
    assert [reference() for reference in references] == [None]


def test_what_was_logged_is_closed(left: list[weakref.ref[Left]]) -> None:
    something = Left()
    left.append(weakref.ref(something))
    logging.getLogger(__name__).error("refused: %s", something)
