"""Reads from data directories what the retention rules need to know about each segment.

The settings are those that the broker will have at its next start. A topic's own settings in the
metadata log come first, then the settings stored there of the node that has the directories, then
the configuration file. If the given directories have no metadata log, only the file counts.

Nothing is written. Indexes are not used: the newest timestamp of a segment is taken from the
headers of its batches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from odradek.broker.common.effective_config import EffectiveConfig
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.metadata_reading import read_metadata
from odradek.coordinator.metadata.quorum_state import QuorumStateError
from odradek.coordinator.runtime.record_codec import CorruptJournalError
from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.checkpoints import CheckpointError, read_meta_properties, read_offsets
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    DirectoryState,
    FileKind,
    is_foreign_directory,
    parse_partition_directory,
    segment_file,
)
from odradek.storage.files import Files
from odradek.storage.inspect.open_transactions import OpenTransaction, OpenTransactions
from odradek.storage.log_reader import LogReader, SegmentFile
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot
from odradek.storage.retention_explanation import LogFacts, SegmentFacts
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition
from odradek.tools.transactions.ownership import what_ends_it
from odradek.tools.transactions.stored_transactions import StoredTransactions

_ATTEMPTS = 3  # to read a log whose segments a broker deletes meanwhile

PartitionFilter = Callable[[str, int], bool]  # whether to include a topic's partition


class StoredLog(NamedTuple):
    """One log. `facts` is the input of the rules, `oldest` the oldest open transaction."""

    topic: str
    partition: int
    directory: Path
    facts: LogFacts
    oldest: OpenTransaction | None


class StoredRetention:
    """The logs of some data directories. `warnings` lists what could not be read."""

    def __init__(
        self, files: Files, directories: Sequence[Path], file_config: BrokerConfig
    ) -> None:
        self.warnings: list[str] = []
        self._files = files
        self._directories = directories
        self._node_id = file_config.node_id
        self._metadata = self._read_metadata()
        self._topic_configs: dict[str, TopicConfig] = {}
        self._config = file_config
        if self._metadata is not None:
            node_id = self._node_id
            self._config = EffectiveConfig(file_config, self._metadata.configs, node_id).current

    @property
    def check_interval_ms(self) -> int:
        """How often a broker applies the retention rules."""
        return self._config.log_retention_check_interval_ms

    def logs(self, is_included: PartitionFilter) -> Iterator[StoredLog]:
        """The logs of the included partitions.

        The metadata log is never included: other rules apply to it.
        """
        for root in self._directories:
            starts = self._log_starts(root)
            for key, path in sorted(self._logs_in(root).items()):
                topic, partition = key
                if is_included(topic, partition):
                    start = starts.get(key, 0)
                    if topic not in self._topic_configs:
                        self._topic_configs[topic] = self._config_of(topic)
                    found = self._facts(path, self._topic_configs[topic], start)
                    if found is not None:
                        yield StoredLog(topic, partition, path, *found)

    def _logs_in(self, root: Path) -> dict[TopicPartition, Path]:
        found = {}
        for name in self._files.list_directory(root):
            if is_foreign_directory(name) or not self._files.is_directory(root / name):
                continue
            try:
                parsed = parse_partition_directory(name)
            except ValueError:
                continue
            if parsed.state is DirectoryState.LIVE and parsed.topic != CLUSTER_METADATA_TOPIC:
                found[parsed.key] = root / name
        return found

    # --- transactions

    def what_ends(self, transaction: OpenTransaction, where: TopicPartition) -> str:
        """Say who has an open transaction, and how it ends."""
        return what_ends_it(transaction, where, self._stored_transactions)

    @cached_property
    def _stored_transactions(self) -> StoredTransactions:
        stored = StoredTransactions()
        read = set()
        for root in self._directories:
            for (topic, partition), path in self._logs_in(root).items():
                if topic == TRANSACTION_STATE_TOPIC:
                    read.add(partition)
                    stored.read(partition, LogReader(path, self._files))
        if self._metadata is None:
            stored.is_complete = False
        elif TRANSACTION_STATE_TOPIC in self._metadata.topics:
            partitions = self._metadata.topics[TRANSACTION_STATE_TOPIC].partitions
            stored.is_complete &= partitions.keys() <= read
        return stored

    # --- settings

    def _read_metadata(self) -> ClusterMetadata | None:
        for root in self._directories:
            path = root / f"{CLUSTER_METADATA_TOPIC}-0"
            if not self._files.exists(path):
                continue
            try:
                properties = read_meta_properties(self._files, root)
                cluster_id = properties.cluster_id if properties else ""
                if properties is not None:
                    self._node_id = properties.node_id
                reading = read_metadata(self._files, path, cluster_id, allow_torn_end=True)
            except (CheckpointError, CorruptJournalError, QuorumStateError) as error:
                self.warnings.append(
                    f"{path} cannot be read, so topics are shown with the defaults: {error}"
                )
                return None
            return reading.metadata
        self.warnings.append(
            "no metadata log is in these directories: topics are shown with the defaults"
        )
        return None

    def _config_of(self, topic: str) -> TopicConfig:
        """The settings of a topic. Those that another version of Kafka allowed are left out."""
        valid = {}
        stored = {} if self._metadata is None else self._metadata.configs.of_topic(topic)
        for key, value in stored.items():
            try:
                self._config.stored_topic_config({key: value})
            except ConfigError as error:
                self.warnings.append(f"topic {topic} is shown without this setting: {error}")
            else:
                valid[key] = value
        return self._config.stored_topic_config(valid)

    def _log_starts(self, root: Path) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, root / LOG_START_OFFSET_CHECKPOINT)
        except CheckpointError as error:
            self.warnings.append(f"log start offsets are unknown: {error}")
            return {}

    # --- segments

    def _facts(
        self, path: Path, config: TopicConfig, start_offset: int
    ) -> tuple[LogFacts, OpenTransaction | None] | None:
        """None if there is no segment, or the log was deleted meanwhile."""
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                return self._facts_now(path, config, start_offset)
        return None

    def _facts_now(
        self, path: Path, config: TopicConfig, start_offset: int
    ) -> tuple[LogFacts, OpenTransaction | None] | None:
        """The same. Raises FileNotFoundError if a file is deleted meanwhile."""
        reader = LogReader(path, self._files)
        segments = reader.segments()
        if not segments:
            return None
        found = []
        log_start_offset = max(start_offset, segments[0].base_offset)
        transactions = OpenTransactions(log_start_offset)
        for index, segment in enumerate(segments):
            following = segments[index + 1] if index + 1 < len(segments) else None
            found.append(self._segment(reader, segment, following, transactions))
        self._adopt_snapshot(path, found[-1].end_offset, transactions)
        oldest = next(iter(transactions), None)
        stable = None if oldest is None else oldest.first_offset
        return LogFacts(config, log_start_offset, found, stable), oldest

    def _adopt_snapshot(self, path: Path, end_offset: int, transactions: OpenTransactions) -> None:
        """Use the snapshot of a clean stop: it knows what began before the log does."""
        snapshot = path / segment_file(end_offset, FileKind.PRODUCER_SNAPSHOT)
        with suppress(FileNotFoundError, CorruptSnapshotError):
            transactions.reset(decode_snapshot(self._files.read(snapshot)), end_offset)

    def _segment(
        self,
        reader: LogReader,
        segment: SegmentFile,
        following: SegmentFile | None,
        transactions: OpenTransactions,
    ) -> SegmentFacts:
        newest_ms, end_offset, end_position = NO_TIMESTAMP, segment.base_offset, 0
        try:
            for position, header in reader.headers(segment):
                newest_ms = max(newest_ms, header.max_timestamp)
                end_offset, end_position = header.next_offset, position + header.size_bytes
                if not header.is_control:
                    transactions.add(header)
                elif header.record_count:  # else the cleaner has removed the marker
                    transactions.end(header.producer_id)
        except CorruptBatchError as error:
            self.warnings.append(f"the rest of the segment cannot be read: {error}")
        is_file_time = newest_ms == NO_TIMESTAMP
        return SegmentFacts(
            segment.base_offset,
            end_offset if following is None else following.base_offset,
            end_position if following is None else segment.size_bytes,
            self._files.modified_ms(segment.path) if is_file_time else newest_ms,
            is_file_time,
        )
