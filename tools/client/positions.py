"""Positions in partitions as people write them: earliest, latest, an offset, or a time.

An offset after the end of all partitions is refused, and so is a time in the future that no record
has: nothing would be found there, and it is a mistake, such as milliseconds taken for an offset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from .failure import CommandError
from .moments import now_ms, parse_moment_ms

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]

_NUMBER = re.compile("[0-9]+")


def parse_offset(text: str) -> int | None:
    """The offset that the text is, or None if it is none."""
    return int(text) if _NUMBER.fullmatch(text) else None


def resolve_position(
    text: str, starts: Offsets, ends: Offsets, offsets_at: Callable[[int], Offsets]
) -> Offsets:
    """The offset of a position in each partition. Raises CommandError.

    `starts` and `ends`: the first offset of each partition, and the one after its last record.
    `offsets_at`: the first offset whose record is as late as a time, or -1. The result lies between
    start and end.
    """
    if text == "earliest":
        return starts
    if text == "latest":
        return ends
    offset = parse_offset(text)
    if offset is not None:
        check_not_after_the_end(offset, ends)
        return {key: min(max(offset, starts[key]), end) for key, end in ends.items()}
    moment_ms = parse_moment_ms(text)
    found = offsets_at(moment_ms)
    if moment_ms > now_ms() and all(found[key] < 0 for key in ends):
        raise CommandError(f"{text} is in the future")
    return {key: end if found[key] < 0 else found[key] for key, end in ends.items()}


def check_not_after_the_end(offset: int, ends: Offsets) -> None:
    """Raise CommandError if an offset is after the end of all partitions."""
    if ends and offset > max(ends.values()):
        raise CommandError(
            f"offset {offset} is after the end, {max(ends.values())}; a time in milliseconds is"
            f" written @{offset}"
        )
