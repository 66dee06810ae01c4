"""What stands in the manifest of an archive: one JSON file per commit. On disk: never rename.

An entry adds ranges (what was read of the log) and files (what lies there now), and replaces
files that earlier ones have added.
"""

from typing import Literal

import msgspec

from odradek.pipeline.jobs.offset_spans import Span

FORMAT = 1


class PartitionKey(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of one life of a topic: made anew, a topic has another id and begins at 0."""

    topic: str
    topic_id: str  # in hexadecimal digits; "" where the log directory does not tell
    partition: int


class ArchivedRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Offsets [start, end) have been read, and what was there is archived.

    An offset without a record belongs to a control record, an aborted transaction, or a record that
    compaction has removed. `gaps` are the first such ranges, `absent` counts the offsets of all.
    `lost` were deleted before they could be read.
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
    """A file with records of one partition and one date, in the order of their offsets.

    `path` is relative to the archive, `staged` to the staging directory of the entry's run.
    `times_ms` are the oldest and the newest timestamp.
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
    schema_id: str  # files of different ones cannot be merged
    is_dead_letters: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One commit. `partitions` tells how many each topic had.

    A takeover adds nothing: behind it, no run that began earlier can commit any more.
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
