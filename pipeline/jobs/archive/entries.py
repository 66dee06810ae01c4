"""The format of the manifest: one JSON file per commit. On disk: never rename.

An entry adds ranges (offsets that were read from the log) and files (that hold their records), and
replaces files that earlier entries added.
"""

from typing import Literal

import msgspec

from odradek.pipeline.jobs.offset_spans import Span
from odradek.storage.topic_partition import TopicPartition

FORMAT = 1


class PartitionKey(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of a topic id. A topic that is created again has another id and begins at 0."""

    topic: str
    topic_id: str  # in hexadecimal digits; "" if the log directory does not contain it
    partition: int

    @property
    def without_id(self) -> TopicPartition:
        """The partition without the topic id."""
        return TopicPartition(self.topic, self.partition)


class ArchivedRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Offsets [start, end) were read, and their records are archived.

    `absent` is the number of offsets that have no record in the archive: those of control records,
    of aborted transactions, and of records that log compaction has removed. `gaps` are the first
    ranges of such offsets. `lost` are the ranges that were deleted before they could be read.
    """

    of: PartitionKey
    start: int
    end: int
    records: int = 0
    dead_letters: int = 0
    absent: int = 0
    gaps: tuple[Span, ...] = ()
    lost: tuple[Span, ...] = ()


class ArchivedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file with records of one partition and one date, in order of offset.

    `path` is relative to the archive, `staged` to the staging directory of the entry's run.
    `times_ms` are the smallest and the largest timestamp.
    """

    of: PartitionKey
    path: str
    staged: str
    date: str | None
    records: int
    size_bytes: int
    first_offset: int
    last_offset: int
    times_ms: tuple[int, int]
    schema_id: str  # only files with the same one can be merged
    is_dead_letters: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One commit. `partitions` holds the number of partitions of each topic.

    A takeover adds nothing. It uses up a number, so that an earlier run can no longer commit.
    """

    format: int
    number: int
    run_id: str
    created_ms: int
    kind: Literal["archive", "compaction", "takeover"]
    ranges: tuple[ArchivedRange, ...] = ()
    files: tuple[ArchivedFile, ...] = ()
    replaced: tuple[str, ...] = ()
    partitions: dict[str, int] = {}
