"""Collects the errors that a dump finds; they are printed to stderr at the end, as Kafka does.

Files are printed in the order of Java's HashMap. Where Kafka keeps errors in a map by offset, a
later error replaces an earlier one about the same offset.

Kafka: DumpLogSegments.main, TimeIndexDumpErrors.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from .java_text import hash_map_order

_Pairs = list[tuple[int, int]]
_Found = TypeVar("_Found")


class Findings:
    """The errors of all files, by the absolute path of each file. The methods say what they are."""

    def __init__(self) -> None:
        self.index_mismatches: dict[str, dict[int, int]] = {}
        self.time_mismatches: dict[str, _Pairs] = {}
        self.times_out_of_order: dict[str, _Pairs] = {}
        self.offsets_not_found: dict[str, _Pairs] = {}
        self.offset_gaps: dict[str, dict[int, int]] = {}

    def note_offsets(self, path: str, previous: int, offset: int) -> None:
        """Note a gap between two records' offsets. `previous` is -1 for a file's first record.

        So a file that starts after offset 0 always has a gap noted, as in Kafka's tool.
        """
        if offset != previous + 1:
            self.offset_gaps.setdefault(path, {})[previous] = offset

    def note_index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """Note an entry of an offset index at whose position the log has another offset."""
        self.index_mismatches.setdefault(path, {})[index_offset] = log_offset

    def note_time_mismatch(self, path: str, index_ms: int, log_ms: int) -> None:
        """Note an entry of a time index whose batch has another largest timestamp."""
        self.time_mismatches.setdefault(path, []).append((index_ms, log_ms))

    def note_time_out_of_order(self, path: str, index_ms: int, previous_ms: int) -> None:
        """Note an entry of a time index that is not newer than the entry before it."""
        self.times_out_of_order.setdefault(path, []).append((index_ms, previous_ms))

    def note_offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        """Note a wrong entry of a time index; `log_offset` is -1 if the log ends before it."""
        self.offsets_not_found.setdefault(path, []).append((index_offset, log_offset))

    def write(self, write: Callable[[str], object]) -> None:
        """Print all errors."""
        for path, pairs in _in_order(self.index_mismatches):
            write(f"Mismatches in :{path}\n")
            for index, log in sorted(pairs.items(), reverse=True):
                write(f"  Index offset: {index}, log offset: {log}\n")
        self._write_times(write)
        for path, pairs in _in_order(self.offset_gaps):
            write(f"Non-consecutive offsets in {path}\n")
            for previous, offset in sorted(pairs.items()):
                write(f"  {previous} is followed by {offset}\n")

    def _write_times(self, write: Callable[[str], object]) -> None:
        for path, found in _in_order(self.time_mismatches):
            write(f"Found timestamp mismatch in :{path}\n")
            for index, log in found:
                write(f"  Index timestamp: {index}, log timestamp: {log}\n")
        for path, found in _in_order(self.times_out_of_order):
            write(f"Found out of order timestamp in :{path}\n")
            for index, previous in found:
                write(f"  Index timestamp: {index}, Previously indexed timestamp: {previous}\n")
        for path, found in _in_order(self.offsets_not_found):
            write(f"The following indexed offsets are not found in :{path}\n")
            for index, log in found:
                write(f"Indexed offset: {index}, found log offset: {log}\n")


def _in_order(found: Mapping[str, _Found]) -> list[tuple[str, _Found]]:
    return [(path, found[path]) for path in hash_map_order(found)]
