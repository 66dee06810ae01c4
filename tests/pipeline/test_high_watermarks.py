"""How far the log of a replica may be read: records that can be truncated are left out."""

from pathlib import Path

import pytest

from odradek.coordinator.metadata.metadata_reading import read_metadata
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.pipeline.reading import missing_files
from odradek.pipeline.reading.bounds import offset_bounds
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.single_replicas import SingleReplicas
from odradek.protocol.primitives import METADATA_TOPIC_ID
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import PartitionChangeRecord, PartitionRecord
from odradek.protocol.schema import Message
from odradek.storage.checkpoints import write_offsets
from odradek.storage.filenames import (
    PARTITION_METADATA,
    REPLICATION_OFFSET_CHECKPOINT,
    metadata_snapshot_file,
)
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition
from tests.support.golden import GOLDEN
from tests.support.log_box import NOW_MS, TOPIC, LogBox, put
from tests.support.partition_logs import open_log

FILES = Files()
PARTITION = TopicPartition(TOPIC, 0)
TOPIC_ID = b"o" * 16
END = 10


def framed(*messages: Message) -> bytes:
    """A batch of records of the metadata log."""
    codec = MetadataRecordCodec.of_cluster()
    values = [codec.encode(JournalRecord(each))[1] for each in messages]
    records = [Record(None, value, NOW_MS, offset=at) for at, value in enumerate(values)]
    return bytes(build_batch(records))


class Replica:
    """A log directory with a log of END records, the metadata, and the checkpoint."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = LogBox(root).open()
        self.log.assign_topic_id(TOPIC_ID)
        for _ in range(END):
            put(self.log, b"v")
        self.directories = LogDirectories([root])
        self._metadata: PartitionLog | None = None

    def know(self, *messages: Message) -> None:
        """Append records to the metadata log."""
        if self._metadata is None:
            self._metadata = open_log(self.root, "__cluster_metadata", topic_id=METADATA_TOPIC_ID)
        self._metadata.append(framed(*messages), now_ms=NOW_MS)

    def take_snapshot(self, *messages: Message) -> None:
        """Replace the metadata so far by these records."""
        assert self._metadata is not None
        name = metadata_snapshot_file(self._metadata.log_end_offset, 0)
        (self._metadata.directory / name).write_bytes(framed(*messages))

    def checkpoint(self, offset: int, topic: str = TOPIC) -> None:
        write_offsets(FILES, self.root / REPLICATION_OFFSET_CHECKPOINT, {(topic, 0): offset})

    def end(self) -> int:
        return offset_bounds(self.directories, PARTITION).end


def assigned(*replicas: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=list(replicas),
        isr=list(replicas),
        removing_replicas=[],
        adding_replicas=[],
    )


def changed(*replicas: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, replicas=list(replicas))


def test_a_replicated_log_is_read_up_to_its_high_watermark(tmp_path: Path) -> None:
    """What follows may be truncated when another replica becomes the leader."""
    replica = Replica(tmp_path)
    replica.know(assigned(1, 2, 3))
    replica.checkpoint(4)
    assert replica.end() == 4
    replica.checkpoint(7)
    assert replica.end() == 7
    replica.checkpoint(END)
    assert replica.end() == END


def test_a_single_replica_is_read_to_its_end(tmp_path: Path) -> None:
    """Its records are committed as soon as they are in the log; the checkpoint is seconds old."""
    replica = Replica(tmp_path)
    replica.know(assigned(1))
    replica.checkpoint(4)
    assert replica.end() == END


class DeletesMeanwhile(Files):
    """A broker that deletes the log after its end was read, and before its topic's id is."""

    def read(self, path: Path) -> bytes:
        if path.name == PARTITION_METADATA:
            path.parent.rename(path.parent.with_name(f"{path.parent.name}.{'0' * 32}-delete"))
        return super().read(path)


def test_a_log_that_is_deleted_while_it_is_read_has_no_end(tmp_path: Path) -> None:
    """Its checkpoint may be older than what was read: that would look like another log."""
    replica = Replica(tmp_path)
    replica.know(assigned(1))
    replica.checkpoint(4)
    replica.directories = LogDirectories([tmp_path], DeletesMeanwhile())
    with pytest.raises(FileNotFoundError):
        replica.end()


def test_a_log_that_gets_more_replicas_keeps_what_was_committed(tmp_path: Path) -> None:
    replica = Replica(tmp_path)
    replica.checkpoint(4)
    replica.know(assigned(1))
    assert replica.end() == END
    replica.know(changed(1, 2))
    put(replica.log, b"may be truncated")
    assert replica.end() == END
    replica.checkpoint(END + 1)
    assert replica.end() == END + 1


def test_a_log_that_has_just_lost_its_other_replicas_is_still_bounded(tmp_path: Path) -> None:
    """The broker may not have applied that record yet."""
    replica = Replica(tmp_path)
    replica.checkpoint(4)
    replica.know(assigned(1, 2), changed(1))
    assert replica.end() == 4


def test_without_metadata_the_checkpoint_decides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(tmp_path)
    replica.checkpoint(4)
    assert [replica.end(), replica.end()] == [4, 4]
    (warning,) = caplog.messages
    assert "there is no __cluster_metadata-0" in warning


def test_the_checkpoint_decides_when_the_metadata_are_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(tmp_path)
    replica.know(assigned(1, 2))
    replica.checkpoint(4)
    assert replica.end() == 4
    (tmp_path / "__cluster_metadata-0").rename(tmp_path / "elsewhere")
    replica.checkpoint(7)
    assert [replica.end(), replica.end()] == [7, 7]
    (warning,) = caplog.messages
    assert "there is no __cluster_metadata-0" in warning


def test_a_file_that_is_listed_and_stays_missing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_files, "_WAIT_S", 0)
    replica = Replica(tmp_path)
    (replica.log.directory / f"{END:020}.log").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match=rf"{END}\.log"):
        replica.end()


def test_a_copied_log_without_checkpoint_and_metadata_is_read_to_its_end(tmp_path: Path) -> None:
    assert Replica(tmp_path).end() == END


def test_a_replica_without_a_checkpoint_has_no_known_records(tmp_path: Path) -> None:
    replica = Replica(tmp_path)
    replica.know(assigned(1, 2))
    assert replica.end() == 0
    replica.checkpoint(4, topic="another")
    assert replica.end() == 0


def test_the_end_is_never_before_the_start(tmp_path: Path) -> None:
    replica = Replica(tmp_path)
    replica.log.roll(NOW_MS)
    replica.log.delete_first_segments(1, NOW_MS)
    put(replica.log, b"may be truncated")
    replica.know(assigned(1, 2))
    replica.checkpoint(4)
    assert offset_bounds(replica.directories, PARTITION) == (END, END)


def test_damaged_metadata_decide_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    replica = Replica(tmp_path)
    replica.know(assigned(1))
    replica.checkpoint(4)
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert replica.end() == 4
    assert "the CRC is not" in caplog.text


def test_the_newest_snapshot_replaces_the_metadata_before_it(tmp_path: Path) -> None:
    replica = Replica(tmp_path)
    replica.checkpoint(4)
    replica.know(assigned(1, 2))
    replica.know(changed(1))
    assert replica.end() == 4
    replica.take_snapshot(assigned(1))
    replica.directories = LogDirectories([tmp_path])
    assert replica.end() == END


@pytest.mark.parametrize("quorum", ["static", "dynamic"])
def test_the_metadata_of_apache_kafka_are_read(quorum: str) -> None:
    """`orders` has four partitions with one replica each."""
    data = GOLDEN.parent / "metadata" / quorum
    directory = data / "__cluster_metadata-0"
    reading = read_metadata(FILES, directory, "any")
    topic_id = reading.metadata.topics["orders"].id
    single = SingleReplicas(FILES, directory)
    assert [single.contain(topic_id, partition) for partition in range(5)] == [True] * 4 + [False]
