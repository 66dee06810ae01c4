"""Makes and parses every file and directory name of the store. On disk: never rename.

    log.dirs/
      meta.properties  .lock  .kafka_cleanshutdown  .space-check
      recovery-point-offset-checkpoint  log-start-offset-checkpoint
      replication-offset-checkpoint  cleaner-offset-checkpoint
      TOPIC-PARTITION/                                one log
        00000000000000000000.log                      a segment, named by its base offset
        00000000000000000000.index .timeindex .txnindex
        00000000000000000042.snapshot                 producer state before offset 42
        leader-epoch-checkpoint  partition.metadata
      TOPIC-PARTITION.UNIQUEID-delete/                about to be deleted
      TOPIC-PARTITION.UNIQUEID-future/                being moved here from another log directory
      TOPIC-PARTITION.UNIQUEID-stray/                 a log that is not in the metadata
      __cluster_metadata-0/  quorum-state  00000000000000000000-0000000000.checkpoint

A file of a segment is renamed to `.deleted` before it is removed. A file that the cleaner writes is
named `.cleaned`, then `.swap`, before it replaces a segment. After a crash the suffix says how far
that was.

Kafka: LogFileUtils, LocalLog.parseTopicPartitionName, LogManager, org.apache.kafka.snapshot.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from odradek.protocol.primitives import INT32_MAX

from .topic_partition import TopicPartition

META_PROPERTIES = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
SPACE_CHECK = ".space-check"  # exists while free space is looked for on a disk that was full
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"

OFFSET_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
# Files in a log directory, next to the directories of logs.
ROOT_FILES = frozenset(
    {
        META_PROPERTIES,
        LOCK,
        CLEAN_SHUTDOWN,
        SPACE_CHECK,
        BOOTSTRAP_CHECKPOINT,
        *OFFSET_CHECKPOINTS,
    }
)

OFFSET_DIGITS = 20
EPOCH_DIGITS = 10
MAX_NAME_LENGTH = 255  # of a file system's directory entry

REMOTE_INDEX_CACHE = "remote-log-index-cache"  # Kafka's, of the indexes of tiered segments
# The latter is what mkfs creates in the root of a volume. (Apache Kafka refuses to start if it
# exists, so a log directory cannot be the root of a volume.)
_FOREIGN_DIRECTORIES = frozenset({REMOTE_INDEX_CACHE, "lost+found"})


class FileKind(StrEnum):
    """The kind of a segment's file, by its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TXN_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"


class FileState(StrEnum):
    """The state of a segment's file, by its second suffix."""

    LIVE = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"


class SegmentFileName(NamedTuple):
    """A parsed name of a segment's file."""

    offset: int
    kind: FileKind
    state: FileState


class DirectoryState(StrEnum):
    """The state of a log's directory, by its suffix."""

    LIVE = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class PartitionDirectoryName(NamedTuple):
    """A parsed name of a log's directory.

    In the name of a deleted or stray directory, a long topic name may be cut off.
    """

    topic: str
    partition: int
    state: DirectoryState = DirectoryState.LIVE

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class MetadataSnapshotName(NamedTuple):
    """A parsed name of a snapshot of the metadata log: its end offset (exclusive) and epoch."""

    end_offset: int
    epoch: int


_SEGMENT_FILE = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(|\.deleted|\.cleaned|\.swap)",
    re.ASCII,
)
UNFINISHED_SNAPSHOT_SUFFIXES = (".checkpoint.part", ".checkpoint.deleted")
_LIVE_DIRECTORY = re.compile(r"(.+)-(\d+)", re.ASCII | re.DOTALL)
_RENAMED_DIRECTORY = re.compile(r"(\S+)-(\d+)\.[^\s.]+(-delete|-future|-stray)", re.ASCII)
_METADATA_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


def segment_file(offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> str:
    """`00000000000000000042.log`; a producer snapshot holds the state before `offset`."""
    return f"{offset:0{OFFSET_DIGITS}d}{kind}{state}"


def parse_segment_file(name: str) -> SegmentFileName | None:
    """Parse the name of a segment's file. Returns None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    offset, kind, state = match.groups()
    return SegmentFileName(int(offset), FileKind(kind), FileState(state))


def live_offsets(names: Iterable[str], kind: FileKind) -> list[int]:
    """The offsets in those of the names that are of live segment files of this kind."""
    parsed = (parse_segment_file(name) for name in names if name.endswith(kind))
    return [name.offset for name in parsed if name is not None]


def metadata_snapshot_file(end_offset: int, epoch: int) -> str:
    """`00000000000000000000-0000000000.checkpoint`."""
    return f"{end_offset:0{OFFSET_DIGITS}d}-{epoch:0{EPOCH_DIGITS}d}.checkpoint"


def parse_metadata_snapshot_file(name: str) -> MetadataSnapshotName | None:
    """Parse the name of a snapshot. Returns None for other names and unfinished snapshots."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    return None if match is None else MetadataSnapshotName(int(match[1]), int(match[2]))


def is_unfinished_snapshot(name: str) -> bool:
    """Whether it is a snapshot that is being written (`.part`) or deleted (`.deleted`)."""
    return name.endswith(UNFINISHED_SNAPSHOT_SUFFIXES)


def partition_directory(topic: str, partition: int) -> str:
    """`TOPIC-PARTITION`."""
    return f"{topic}-{partition}"


def renamed_directory(topic: str, partition: int, state: DirectoryState, unique_id: str) -> str:
    """`TOPIC-PARTITION.UNIQUEID-delete`, with the topic cut off if the name would be too long.

    `unique_id` is 32 hexadecimal digits, because a topic may be deleted and created many times. The
    topic of a future directory is not cut, because that directory becomes the live one.
    """
    tail = f"-{partition}.{unique_id}{state}"
    keep = None if state is DirectoryState.FUTURE else MAX_NAME_LENGTH - len(tail)
    return topic[:keep] + tail


def parse_partition_directory(name: str) -> PartitionDirectoryName:
    """Parse the name of a log's directory.

    Raises ValueError for any other name. Kafka refuses to start if a directory has one.
    """
    for state in (DirectoryState.DELETE, DirectoryState.FUTURE, DirectoryState.STRAY):
        if name.endswith(state):
            match = _RENAMED_DIRECTORY.fullmatch(name)
            break
    else:
        state, match = DirectoryState.LIVE, _LIVE_DIRECTORY.fullmatch(name)
    if match is None or int(match[2]) > INT32_MAX:
        raise ValueError(
            f"{name!r} is neither topic-partition nor topic-partition.uniqueid-delete "
            "(-future, -stray); a log directory must not contain other directories"
        )
    return PartitionDirectoryName(match[1], int(match[2]), state)


def is_foreign_directory(name: str) -> bool:
    """Whether a directory is no log and is ignored, because it is expected in a log directory."""
    return name in _FOREIGN_DIRECTORIES or name.startswith(".")
