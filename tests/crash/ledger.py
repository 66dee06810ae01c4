"""What the broker has promised: written down as the answers arrive, and held against it later."""

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Stored(NamedTuple):
    """A record that is in the log."""

    offset: int
    value: bytes


class Ledger:
    """Acknowledged records of one topic, by partition. Written by clients' threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._acknowledged: defaultdict[int, dict[int, bytes]] = defaultdict(dict)

    def acknowledge(self, partition: int, offset: int, value: bytes) -> None:
        """The broker said that it holds `value` there."""
        with self._lock:
            before = self._acknowledged[partition].setdefault(offset, value)
        assert before == value, f"offset {offset} was given to {before!r} and to {value!r}"

    def __len__(self) -> int:
        with self._lock:
            return sum(len(offsets) for offsets in self._acknowledged.values())

    def promises(self) -> dict[int, dict[int, bytes]]:
        """What has been acknowledged so far: partition -> offset -> value."""
        with self._lock:
            return {partition: dict(held) for partition, held in self._acknowledged.items()}


def broken(promised: dict[int, bytes], stored: Iterable[Stored]) -> list[str]:
    """What was acknowledged and is not there, or is something else."""
    found = dict(stored)
    return [
        f"offset {offset}: {value!r} became {found.get(offset)!r}"
        for offset, value in promised.items()
        if found.get(offset) != value
    ]


def out_of_order(stored: Iterable[Stored]) -> list[str]:
    """Where the numbers of an idempotent writer (`name-number`) do not rise: doubles, too."""
    wrong = []
    last: dict[bytes, int] = {}
    for offset, value in stored:
        name, _, number = value.rpartition(b"-")
        if int(number) <= last.get(name, -1):
            wrong.append(f"offset {offset}: {value!r} behind {last[name]}")
        last[name] = int(number)
    return wrong
