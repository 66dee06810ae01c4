"""A real partition log in a directory, without a log manager."""

from pathlib import Path

from odradek.config.topic_config import TopicConfig
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import partition_directory
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.recovering.log_source import LogSource
from odradek.storage.recovering.recovery import load_log
from tests.support.timer import Timer


class UnsyncedFiles(Files):
    """Files that do not wait for the disk: for tests that open logs by the hundred."""

    def fsync(self, file: OpenFile) -> None:
        pass

    def fsync_directory(self, path: Path) -> None:
        pass


def open_log(
    data_directory: Path,
    topic: str,
    partition: int = 0,
    *,
    topic_id: bytes | None = None,
    config: TopicConfig | None = None,
    files: Files | None = None,
    clean: bool = False,
) -> PartitionLog:
    """Load (or make) the log, recovering it unless it was closed (`clean`)."""
    source = LogSource(
        files=files or Files(),
        directory=data_directory / partition_directory(topic, partition),
        config=config or TopicConfig(),
        now_ms=0,
        had_clean_shutdown=clean,
        recovery_point=0,
        log_start_offset=0,
        producer_id_expiration_ms=86_400_000,
        deletions=Deletions(Timer()),
        report=lambda line: None,
    )
    return PartitionLog(
        source, load_log(source), topic=topic, partition=partition, topic_id=topic_id
    )
