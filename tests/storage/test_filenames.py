"""The names of the store's files and directories."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.storage.filenames import (
    MAX_NAME_LENGTH,
    DirectoryState,
    FileKind,
    FileState,
    MetadataSnapshotName,
    PartitionDirectoryName,
    SegmentFileName,
    is_foreign_directory,
    metadata_snapshot_file,
    parse_metadata_snapshot_file,
    parse_partition_directory,
    parse_segment_file,
    partition_directory,
    renamed_directory,
    segment_file,
)

UNIQUE_ID = "0123456789abcdef0123456789abcdef"
TOPICS = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=249)


def test_a_segments_files_are_named_by_its_first_offset() -> None:
    assert segment_file(0, FileKind.LOG) == "00000000000000000000.log"
    assert segment_file(42, FileKind.OFFSET_INDEX) == "00000000000000000042.index"
    assert segment_file(42, FileKind.TIME_INDEX) == "00000000000000000042.timeindex"
    assert segment_file(42, FileKind.TXN_INDEX) == "00000000000000000042.txnindex"
    assert segment_file(42, FileKind.PRODUCER_SNAPSHOT) == "00000000000000000042.snapshot"
    assert segment_file(2**63 - 1, FileKind.LOG) == "09223372036854775807.log"
    assert segment_file(7, FileKind.LOG, FileState.SWAP) == "00000000000000000007.log.swap"


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.sampled_from(FileKind), st.sampled_from(FileState))
def test_segment_files_are_parsed_as_they_were_made(
    offset: int, kind: FileKind, state: FileState
) -> None:
    name = SegmentFileName(offset, kind, state)
    assert parse_segment_file(segment_file(*name)) == name


@pytest.mark.parametrize(
    "name",
    ["", "0.log", "00000000000000000000", "00000000000000000000.log.bak", "x.log",
     "00000000000000000000.logs", "leader-epoch-checkpoint", "partition.metadata",
     "00000000000000000000-0000000000.checkpoint", "\N{FULLWIDTH DIGIT ZERO}" * 20 + ".log"],
)  # fmt: skip
def test_other_files_are_no_segments(name: str) -> None:
    assert parse_segment_file(name) is None


def test_snapshots_of_the_metadata_log_have_an_epoch() -> None:
    name = "00000000000000000012-0000000003.checkpoint"
    assert metadata_snapshot_file(12, 3) == name
    assert parse_metadata_snapshot_file(name) == MetadataSnapshotName(12, 3)
    assert parse_metadata_snapshot_file(name + ".part") is None
    assert parse_metadata_snapshot_file("00000000000000000012.snapshot") is None


def test_a_partition_directory_ends_with_the_partition() -> None:
    assert partition_directory("a-b.c", 17) == "a-b.c-17"
    assert parse_partition_directory("a-b.c-17") == PartitionDirectoryName("a-b.c", 17)
    assert parse_partition_directory("a--1") == PartitionDirectoryName("a-", 1)


@settings(deadline=None)
@given(TOPICS, st.integers(0, 10**9))
def test_partition_directories_are_parsed_as_they_were_made(topic: str, partition: int) -> None:
    name = partition_directory(topic, partition)
    assert parse_partition_directory(name) == PartitionDirectoryName(topic, partition)


def test_a_topic_may_look_like_a_renamed_directory() -> None:
    parsed = parse_partition_directory("x-0.y-delete-3")
    assert parsed == PartitionDirectoryName("x-0.y-delete", 3)


@pytest.mark.parametrize(
    "state", [DirectoryState.DELETE, DirectoryState.STRAY, DirectoryState.FUTURE]
)
def test_a_renamed_directory_has_a_unique_id(state: DirectoryState) -> None:
    name = renamed_directory("a.b-c", 5, state, UNIQUE_ID)
    assert name == f"a.b-c-5.{UNIQUE_ID}{state}"
    assert parse_partition_directory(name) == PartitionDirectoryName("a.b-c", 5, state)


@settings(deadline=None)
@given(st.integers(200, 249), st.integers(0, 10**6))
def test_a_renamed_directory_of_a_long_topic_fits_the_file_system(
    length: int, partition: int
) -> None:
    name = renamed_directory("t" * length, partition, DirectoryState.DELETE, UNIQUE_ID)
    assert len(name) <= MAX_NAME_LENGTH
    parsed = parse_partition_directory(name)
    assert (parsed.partition, parsed.state) == (partition, DirectoryState.DELETE)
    assert parsed.topic == "t" * min(length, 255 - len(f"-{partition}.{UNIQUE_ID}-delete"))


@pytest.mark.parametrize(
    "name",
    ["", "topic", "-0", "topic-", "topic-x", "topic-1x", "topic-0-delete", "topic-0-future",
     "topic-0.id-deleted", "topic-x.id-delete", "topic-2147483648", "topic-2147483648.id-delete",
     "topic-\N{ARABIC-INDIC DIGIT THREE}"],
)  # fmt: skip
def test_other_directories_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match="neither topic-partition nor"):
        parse_partition_directory(name)


def test_directories_that_hold_no_log_are_known() -> None:
    assert is_foreign_directory("remote-log-index-cache")
    assert is_foreign_directory("lost+found")
    assert is_foreign_directory(".snapshots-0")
    assert not is_foreign_directory("topic-0")
