"""Checks the entries of a segment's offset index and time index against the segment's batches.

An entry of the offset index must give the position where a batch begins, and that batch's last
offset, or that of a later batch: Apache Kafka up to 4.0.0 writes one entry for all batches of an
append, with the position of the first and the last offset of all. Their cleaner takes the last
offset that is left, which is inside a batch whose last records it has removed. An entry of the time
index must give the newest timestamp up to its offset exactly: a lookup would go wrong with a larger
one as well as with a smaller one.

The active segment's index may be missing, and its unused part is zeros. A kill leaves both.
"""

from pathlib import Path

from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.storage.files import Files
from odradek.storage.index_file import IndexFile
from odradek.storage.inspect.raw_batch import RawBatch
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.time_index import TimeIndex
from odradek.tools.dump.index_text import IndexEntries, check_offsets, check_times

from .findings import Findings, Kind, Tally
from .gap_check import is_cleaned_batch

REBUILT = "it is rebuilt from the log"
REBUILT_IF_WRONG = (
    "it is rebuilt after an unclean stop, or when a read finds a wrong entry (Apache Kafka "
    "uses it as it is after a clean stop)"
)


class _IndexCheck:
    """One index of one segment."""

    kind: type[IndexFile]

    def __init__(
        self,
        files: Files,
        path: Path,
        base_offset: int,
        findings: Findings,
        *,
        may_be_uncut: bool,
    ) -> None:
        """`may_be_uncut`: the file may still be preallocated, with unused zeros at its end.

        Then it may also be missing.
        """
        self._may_be_uncut = may_be_uncut
        self._path = path
        self._findings = findings
        self._wrong = Tally()
        self._slot = 0
        self._used = 0
        self._entries: IndexEntries | None = None
        try:
            self._entries = IndexEntries(files, path, base_offset, self.kind)
            self._used = self._entries.used if may_be_uncut else self._entries.count
            if self._used == self._entries.count:
                self._check(self._entries)
        except FileNotFoundError:
            report = findings.note if may_be_uncut else findings.problem
            report(path, "the index is missing", REBUILT, Kind.INDEX)
        except (UnreadableError, OSError) as error:
            what = f"the index fails a broker's startup check: {error}"
            findings.problem(path, what, REBUILT, Kind.INDEX)

    def _check(self, entries: IndexEntries) -> None:
        """Run a broker's startup check. Raises UnreadableError."""

    def stop(self) -> None:
        """Skip all later entries: what follows in the log cannot be read."""
        self._used = self._slot

    def end(self) -> None:
        """Report what was found, after the last batch."""
        if self._entries is None:
            return
        # A running broker may have appended since the log was read.
        later = () if self._may_be_uncut else range(self._slot, self._used)
        for slot in later:
            self._wrong.add(f"entry {slot} is after the end of the log: {self._shown(slot)}")
        if self._wrong.count:
            what = f"{self._wrong.count} of {self._used} entries do not match the log; "
            what += self._wrong.first
            self._findings.problem(self._path, what, REBUILT_IF_WRONG, Kind.INDEX)

    def _shown(self, slot: int) -> str:
        assert self._entries is not None
        first, second = self._entries.at(slot)
        return f"({first}, {second})"


class OffsetIndexCheck(_IndexCheck):
    """The offset index."""

    kind = OffsetIndex

    def __init__(
        self,
        files: Files,
        path: Path,
        base_offset: int,
        findings: Findings,
        *,
        may_be_uncut: bool,
    ) -> None:
        super().__init__(files, path, base_offset, findings, may_be_uncut=may_be_uncut)
        self._ahead: dict[int, str] = {}  # entries with the last offset of a later batch

    @property
    def last_position(self) -> int:
        """Where the last entry says that a batch begins; 0 without entries."""
        entries = self._entries
        return entries.at(entries.used - 1)[1] if entries is not None and entries.used else 0

    def _check(self, entries: IndexEntries) -> None:
        check_offsets(entries)

    def add(self, batch: RawBatch) -> None:
        """Compare the next batch of the segment with the entries up to it."""
        entries, last_offset = self._entries, batch.last_offset
        for offset in [each for each in self._ahead if each <= last_offset]:
            shown = self._ahead.pop(offset)
            if not _may_be_last(offset, batch):
                self._wrong.add(shown)
        while entries is not None and self._slot < self._used:
            relative, position = entries.at(self._slot)
            if position > batch.position:
                return
            offset = entries.base_offset + relative
            if position < batch.position:
                self._wrong.add(f"({offset}, {position}): no batch begins there")
            elif not _may_be_last(offset, batch):
                shown = f"({offset}, {position}): that batch ends at {last_offset}"
                if offset > last_offset:
                    self._ahead[offset] = shown
                else:
                    self._wrong.add(shown)
            self._slot += 1

    def skip_batch(self, position: int) -> None:
        """Skip the entry of the damaged batch at `position`, if there is one."""
        self._ahead.clear()  # it may be the batch whose last offset they have
        entries = self._entries
        if entries is not None and self._slot < self._used:
            self._slot += entries.at(self._slot)[1] == position

    def stop(self) -> None:
        super().stop()
        self._ahead.clear()

    def end(self) -> None:
        if not self._may_be_uncut:
            for shown in self._ahead.values():
                self._wrong.add(shown)
        super().end()


def _may_be_last(offset: int, batch: RawBatch) -> bool:
    """Whether it is the last offset of the batch, or may be the last that the cleaner has left."""
    if offset == batch.last_offset:
        return True
    is_inside = batch.offset <= offset < batch.last_offset
    return is_inside and not batch.is_message and is_cleaned_batch(batch.header)


class TimeIndexCheck(_IndexCheck):
    """The time index."""

    kind = TimeIndex

    def __init__(
        self,
        files: Files,
        path: Path,
        base_offset: int,
        findings: Findings,
        *,
        may_be_uncut: bool,
    ) -> None:
        super().__init__(files, path, base_offset, findings, may_be_uncut=may_be_uncut)
        self._newest_ms = NO_TIMESTAMP

    def _check(self, entries: IndexEntries) -> None:
        check_times(entries)

    def add(self, batch: RawBatch) -> None:
        """Compare the next batch of the segment with the entries up to it."""
        self._newest_ms = max(self._newest_ms, batch.max_timestamp)
        entries, last_offset = self._entries, batch.last_offset
        while entries is not None and self._slot < self._used:
            timestamp_ms, relative = entries.at(self._slot)
            offset = entries.base_offset + relative
            if offset > last_offset:
                return
            if timestamp_ms != self._newest_ms:
                self._wrong.add(
                    f"({timestamp_ms} ms, {offset}): up to there the newest is {self._newest_ms} ms"
                )
            self._slot += 1
