"""How much Python runs: a measure without a clock."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class CallCount:
    """The calls and generator steps of Python so far."""

    def __init__(self) -> None:
        self.steps = 0

    def count(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.steps += event == "call"


@contextmanager
def counted_calls() -> Iterator[CallCount]:
    """Count calls in the block."""
    counted = CallCount()
    before = sys.getprofile()
    sys.setprofile(counted.count)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def steps_of(action: Callable[[], Any]) -> int:
    """How many calls and generator steps of Python an action takes."""
    with counted_calls() as counted:
        action()
    return counted.steps
