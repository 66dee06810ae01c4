"""Every file and directory name of the store, made and parsed. On disk: never rename.

    log.dirs/
      meta.properties  .lock  .kafka_cleanshutdown
      recovery-point-offset-checkpoint  log-start-offset-checkpoint
      replication-offset-checkpoint  cleaner-offset-checkpoint
      TOPIC-PARTITION/                                one log
        00000000000000000000.log                      a segment, by its first offset
        00000000000000000000.index .timeindex .txnindex
        00000000000000000042.snapshot                 producer state before offset 42
        leader-epoch-checkpoint  partition.metadata
      TOPIC-PARTITION.UNIQUEID-delete/                about to be deleted
      TOPIC-PARTITION.UNIQUEID-future/                being moved here from another log directory
      TOPIC-PARTITION.UNIQUEID-stray/                 a log that the metadata does not know
      __cluster_metadata-0/  quorum-state  00000000000000000000-0000000000.checkpoint

A segment's file is renamed before it goes (`.deleted`) and before it comes (`.cleaned`, then
`.swap`): after a crash the suffix tells what was going on.

Kafka: LogFileUtils, LocalLog.parseTopicPartitionName, LogManager, org.apache.kafka.snapshot.
"""

import re
from enum import StrEnum
from typing import NamedTuple

META_PROPERTIES = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
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
# What lies in a log directory beside the directories of logs.
ROOT_FILES = frozenset(
    {META_PROPERTIES, LOCK, CLEAN_SHUTDOWN, BOOTSTRAP_CHECKPOINT, *OFFSET_CHECKPOINTS}
)

OFFSET_DIGITS = 20
EPOCH_DIGITS = 10
MAX_NAME_LENGTH = 255  # of a file system's directory entry

# Kafka's cache of tiered segments' indexes, and what mkfs puts into the root of a volume. (Apache
# Kafka refuses to start on the latter, which helps nobody whose volume is the log directory.)
_FOREIGN_DIRECTORIES = frozenset({"remote-log-index-cache", "lost+found"})


class FileKind(StrEnum):
    """What a file of a segment holds, by its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TXN_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"


class FileState(StrEnum):
    """Where a segment's file stands in its life, by its second suffix."""

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
    """What a log's directory is kept for, by its suffix."""

    LIVE = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class PartitionDirectoryName(NamedTuple):
    """A parsed name of a log's directory. Of a long topic a retired directory keeps the head."""

    topic: str
    partition: int
    state: DirectoryState = DirectoryState.LIVE

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


class MetadataSnapshotName(NamedTuple):
    """A parsed name of a snapshot of the metadata log: the offset behind it, and that epoch."""

    end_offset: int
    epoch: int


_SEGMENT_FILE = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(|\.deleted|\.cleaned|\.swap)",
    re.ASCII,
)
UNFINISHED_SNAPSHOT_SUFFIXES = (".checkpoint.part", ".checkpoint.deleted")
_LIVE_DIRECTORY = re.compile(r"(.+)-(\d+)", re.ASCII | re.DOTALL)
_RETIRED_DIRECTORY = re.compile(r"(\S+)-(\d+)\.[^\s.]+(-delete|-future|-stray)", re.ASCII)
_METADATA_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


def segment_file(offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> str:
    """`00000000000000000042.log`; of a producer snapshot `offset` is the one behind it."""
    return f"{offset:0{OFFSET_DIGITS}d}{kind}{state}"


def parse_segment_file(name: str) -> SegmentFileName | None:
    """None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    offset, kind, state = match.groups()
    return SegmentFileName(int(offset), FileKind(kind), FileState(state))


def metadata_snapshot_file(end_offset: int, epoch: int) -> str:
    """`00000000000000000000-0000000000.checkpoint`."""
    return f"{end_offset:0{OFFSET_DIGITS}d}-{epoch:0{EPOCH_DIGITS}d}.checkpoint"


def parse_metadata_snapshot_file(name: str) -> MetadataSnapshotName | None:
    """None for any other name, and for one that was not finished (`.part`)."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    return None if match is None else MetadataSnapshotName(int(match[1]), int(match[2]))


def is_unfinished_snapshot(name: str) -> bool:
    """Whether a snapshot is still being written (`.part`), or is about to go (`.deleted`)."""
    return name.endswith(UNFINISHED_SNAPSHOT_SUFFIXES)


def partition_directory(topic: str, partition: int) -> str:
    """`TOPIC-PARTITION`."""
    return f"{topic}-{partition}"


def retired_directory(topic: str, partition: int, state: DirectoryState, unique_id: str) -> str:
    """`TOPIC-PARTITION.UNIQUEID-delete`, the topic cut where that would be too long.

    `unique_id` is 32 hexadecimal digits: a topic may be deleted and made again many times. A future
    directory is not cut: it becomes the live one, so its topic must be whole.
    """
    tail = f"-{partition}.{unique_id}{state}"
    keep = None if state is DirectoryState.FUTURE else MAX_NAME_LENGTH - len(tail)
    return topic[:keep] + tail


def parse_partition_directory(name: str) -> PartitionDirectoryName:
    """Raises ValueError for what is no log's directory: Kafka refuses to start where one lies."""
    for state in (DirectoryState.DELETE, DirectoryState.FUTURE, DirectoryState.STRAY):
        if name.endswith(state):
            match = _RETIRED_DIRECTORY.fullmatch(name)
            break
    else:
        state, match = DirectoryState.LIVE, _LIVE_DIRECTORY.fullmatch(name)
    if match is None:
        raise ValueError(
            f"{name!r} is neither topic-partition nor topic-partition.uniqueid-delete "
            "(-future, -stray); a log directory holds nothing else"
        )
    return PartitionDirectoryName(match[1], int(match[2]), state)


def is_foreign_directory(name: str) -> bool:
    """Directories in a log directory that hold no log and are nobody's mistake: leave them be."""
    return name in _FOREIGN_DIRECTORIES or name.startswith(".")
