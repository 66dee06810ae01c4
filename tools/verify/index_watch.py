"""Whether the entries of a segment's two indexes are true, told while its batches go by.

An entry of the offset index must name a batch: where it begins, and its last offset. One of the
time index must name the newest timestamp up to its offset, no more and no less: a lookup trusts it
both ways. The index of the segment that is being written to may be missing still, and what is not
used of it is zeros; so it is after a kill.
"""

from pathlib import Path

from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.storage.files import Files
from odradek.storage.index_file import IndexFile
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.raw_message import UnreadableError
from odradek.storage.raw_scan import RawBatch
from odradek.storage.time_index import TimeIndex
from odradek.tools.dump.index_text import IndexEntries, check_offsets, check_times

from .findings import Findings, Tally

MADE_ANEW = "it is made anew from the log"
MADE_ANEW_IF_MET = (
    "it is made anew after an unclean stop, or when a read meets a wrong entry (Apache Kafka "
    "trusts it after a clean stop)"
)


class _IndexWatch:
    """One index of one segment."""

    kind: type[IndexFile]

    def __init__(
        self, files: Files, path: Path, base_offset: int, findings: Findings, *, in_use: bool
    ) -> None:
        """`in_use`: the segment's last owner was writing to it when it ended, or still is."""
        self._path = path
        self._findings = findings
        self._wrong = Tally()
        self._slot = 0
        self._used = 0
        self._entries: IndexEntries | None = None
        try:
            self._entries = IndexEntries(files, path, base_offset, self.kind)
            self._used = self._entries.used
            if not in_use or self._used == self._entries.count:
                self._check(self._entries)
        except FileNotFoundError:
            tell = findings.note if in_use else findings.problem
            tell(path, "the index is missing", MADE_ANEW)
        except (UnreadableError, OSError) as error:
            findings.problem(path, f"the index fails the check of a start: {error}", MADE_ANEW)

    def _check(self, entries: IndexEntries) -> None:
        """Raises UnreadableError."""

    def stop(self) -> None:
        """What follows in the log cannot be known: no entry behind this is judged."""
        self._used = self._slot

    def end(self) -> None:
        """All batches went by."""
        if self._entries is None:
            return
        for slot in range(self._slot, self._used):
            self._wrong.add(f"entry {slot} lies behind the log: {self._shown(slot)}")
        if self._wrong.count:
            what = f"{self._wrong.count} of {self._used} entries are not true of the log; "
            self._findings.problem(self._path, what + self._wrong.first, MADE_ANEW_IF_MET)

    def _shown(self, slot: int) -> str:
        assert self._entries is not None
        first, second = self._entries.at(slot)
        return f"({first}, {second})"


class OffsetIndexWatch(_IndexWatch):
    """The offset index."""

    kind = OffsetIndex

    def _check(self, entries: IndexEntries) -> None:
        check_offsets(entries)

    def see(self, batch: RawBatch) -> None:
        """The next batch of the segment."""
        entries = self._entries
        while entries is not None and self._slot < self._used:
            relative, position = entries.at(self._slot)
            if position > batch.position:
                return
            offset = entries.base_offset + relative
            if position < batch.position:
                self._wrong.add(f"({offset}, {position}): no batch begins there")
            elif offset != batch.last_offset:
                self._wrong.add(f"({offset}, {position}): that batch ends at {batch.last_offset}")
            self._slot += 1

    def pass_over(self, position: int) -> None:
        """A batch that is broken begins there: an entry of it is not judged."""
        entries = self._entries
        if entries is not None and self._slot < self._used:
            self._slot += entries.at(self._slot)[1] == position


class TimeIndexWatch(_IndexWatch):
    """The time index."""

    kind = TimeIndex

    def __init__(
        self, files: Files, path: Path, base_offset: int, findings: Findings, *, in_use: bool
    ) -> None:
        super().__init__(files, path, base_offset, findings, in_use=in_use)
        self._newest_ms = NO_TIMESTAMP

    def _check(self, entries: IndexEntries) -> None:
        check_times(entries)

    def see(self, batch: RawBatch) -> None:
        """The next batch of the segment."""
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
