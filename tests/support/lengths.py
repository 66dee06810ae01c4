"""How long a test runs: short in `make test`, as long as was promised in `make long`."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

LENGTH_VARIABLE = "ODRADEK_TEST_LENGTH"
LONG = os.environ.get(LENGTH_VARIABLE, "short") == "long"
# Of a test that goes on for a time that is chosen.
MINUTES = float(os.environ.get("ODRADEK_TEST_MINUTES", "10"))
# Of a test that kills a broker again and again.
KILLS = int(os.environ.get("ODRADEK_TEST_KILLS", "50"))
SEED = int(os.environ.get("ODRADEK_TEST_SEED", "20240229"))
RECORDS = os.environ.get("ODRADEK_RECORD_ANSWERS") == "yes"  # in `make answers`


def only_long(reason: str) -> pytest.MarkDecorator:
    """The mark of a test of `make long`; the reason says what `make test` has in its place.

    If it compares with kept answers, they are recorded all the same.
    """
    return pytest.mark.skipif(not LONG and not RECORDS, reason=f"long only: {reason}")


def by_length(short: T, long: T) -> T:
    """The one or the other."""
    return long if LONG else short
