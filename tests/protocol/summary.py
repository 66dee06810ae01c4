"""What the oracles compare, counted while they do it: python -m tests.protocol.summary

Three judge the declarations: Kafka's definitions (the JSON files in its jars), Kafka's own message
classes, and kio. The comparisons are those of the tests of the same names; here every difference is
shown, and the exit code is 1 if there is one.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from odradek.protocol.schema import Message
from tests.protocol import test_declarations, test_kafkas_classes, test_kio
from tests.support.messages import all_messages, versions_of


class Compared(NamedTuple):
    """One version of a message: how many values of it went through, and what was not equal."""

    message: str
    version: int
    values: int
    differences: Sequence[str] = ()


def by_kafkas_definitions() -> Iterator[Compared]:
    """Declarations: no values."""
    check = test_declarations.test_a_declaration_says_what_kafkas_definition_says
    for message in all_messages():
        differences = attempt(check, message)[1]
        for version in versions_of(message):
            yield Compared(message.__name__, version, 0, differences)
            differences = []  # of the message as a whole: told once


def by_kafkas_classes() -> Iterator[Compared]:
    """Bytes of ours, read and written again by the classes."""
    written = test_kafkas_classes.everything()
    values = Counter((name, version) for name, version, _ in written)
    told = test_kafkas_classes.differences(written)
    for (name, version), count in values.items():
        ours = [line for line in told if line.startswith(f"{name} v{version}: ")]
        yield Compared(name, version, count, ours)


def by_kio() -> Iterator[Compared]:
    """Values that hypothesis draws, there and back."""
    for message, versions in test_kio.SHARED.items():
        for version in versions:
            exchanged, differences = attempt(test_kio.exchange, message, version)
            yield Compared(message.__name__, version, exchanged or 0, differences)


def attempt(
    check: Callable[..., int | None], message: type[Message], *version: int
) -> tuple[int | None, list[str]]:
    """What a check gives, and what it complains of. Every exception is a difference."""
    try:
        return check(message, *version), []
    except Exception as error:  # noqa: BLE001 # a reader may fail in any way; it is shown
        spoken = "".join(f" v{number}" for number in version)
        return None, [f"{message.__name__}{spoken}: {type(error).__name__}: {error}"]


ORACLES: dict[str, Callable[[], Iterator[Compared]]] = {
    "Kafka's definitions": by_kafkas_definitions,
    "Kafka's own classes": by_kafkas_classes,
    "kio": by_kio,
}
ROW = "{:<20} {:>8} {:>8} {:>8} {:>11}\n"


def main() -> int:
    """Print the table, and every difference; returns the exit code."""
    sys.stdout.write(ROW.format("oracle", "messages", "versions", "values", "differences"))
    told: list[str] = []
    for name, oracle in ORACLES.items():
        try:
            compared = list(oracle())
        except pytest.skip.Exception as skipped:
            sys.stdout.write(f"{name:<20} SKIPPED: {skipped}\n")
            continue
        found = [line for each in compared for line in each.differences]
        messages = len({each.message for each in compared})
        values = sum(each.values for each in compared) or "-"
        sys.stdout.write(ROW.format(name, messages, len(compared), values, len(found)))
        told += found
    sys.stdout.writelines(f"{line}\n" for line in told)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
