"""Checks the directory of one log: its owner, its other files, and the log."""

from dataclasses import dataclass, replace
from pathlib import Path

from odradek.coordinator.metadata.metadata_snapshot import newest_sound_snapshot
from odradek.coordinator.metadata.quorum_state import QuorumStateError, read_quorum_state
from odradek.coordinator.runtime.record_codec import CorruptJournalError
from odradek.protocol.primitives import uuid_text
from odradek.storage.checkpoints import CheckpointError, MetaProperties, read_topic_id
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCH_CHECKPOINT,
    LOCK,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_metadata_snapshot_file,
    parse_segment_file,
)
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader
from odradek.storage.metadata_snapshots import snapshots_in
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition
from odradek.tools.transactions.stored_transactions import StoredTransactions

from .decision_check import DecisionCheck
from .findings import Findings, Kind
from .log_check import LogCheck
from .log_state import LogFacts, LogState
from .metadata_facts import MetadataFacts, TopicFacts
from .record_check import OnRecord
from .snapshot_check import check_snapshot
from .unsynced_files import report_damage


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory, and the content of its own files.

    `topic_ids` are those in the logs' `partition.metadata`, and are older than all else that is
    read: where one has changed since, the topic was deleted and created again. If a broker uses the
    directory, it counts as not stopped cleanly.
    """

    path: Path
    meta: MetaProperties | None
    stopped_cleanly: bool
    recovery_points: dict[TopicPartition, int]
    log_starts: dict[TopicPartition, int]
    cleaner_offsets: dict[TopicPartition, int]
    logs: dict[TopicPartition, str]  # to the name of the log's directory
    arriving: set[TopicPartition]  # logs that are being moved here from another directory
    topic_ids: dict[TopicPartition, bytes]
    is_in_use: bool

    def now(self, files: Files) -> "LogDirectory":
        """The same, in use if a broker has started on it since."""
        is_clean = files.exists(self.path / CLEAN_SHUTDOWN)
        has_started = files.is_locked(self.path / LOCK) or is_clean != self.stopped_cleanly
        if self.is_in_use or not has_started:
            return self
        return replace(self, stopped_cleanly=False, is_in_use=True)


class PartitionCheck:
    """One log. `metadata` takes the records of a metadata log, `stored` those of transactions.

    `end` is the state at the log's end; None if the log cannot be read.
    """

    def __init__(
        self,
        files: Files,
        findings: Findings,
        *,
        deep: bool,
        metadata: MetadataFacts,
        stored: StoredTransactions,
    ) -> None:
        self.metadata = metadata
        self.stored = stored
        self.end: LogState | None = None
        self._files = files
        self._findings = findings
        self._deep = deep

    def run(self, log_dir: LogDirectory, log: TopicPartition) -> None:
        """Check everything, and report it."""
        directory = log_dir.path / log_dir.logs[log]
        try:
            topic_id = self._topic_id(directory / PARTITION_METADATA)
            is_another = topic_id is not None and topic_id != log_dir.topic_ids.get(log, topic_id)
            if is_another or not self._files.is_directory(directory):
                self.stored.is_complete &= log[0] != TRANSACTION_STATE_TOPIC
                return  # its topic was deleted meanwhile
            self._findings.totals.partitions += 1
            topic = self._check_owner(log, directory, topic_id)
            facts = self._facts(log_dir, log, topic)
            if log[0] == CLUSTER_METADATA_TOPIC:
                self._check_quorum(directory)
                self._check_log(directory, facts, self.metadata.add)
                self._check_snapshots(directory)
            elif log[0] == TRANSACTION_STATE_TOPIC:
                self._check_decisions(directory, facts, log[1])
            else:
                self._check_log(directory, facts, None)
        except OSError as error:
            what = f"it cannot be read: {error}"
            self._findings.problem(directory, what, "the log directory goes offline")

    def _facts(
        self, log_dir: LogDirectory, log: TopicPartition, topic: TopicFacts | None
    ) -> LogFacts:
        is_metadata = log[0] == CLUSTER_METADATA_TOPIC
        start_offset = max(log_dir.log_starts.get(log, 0), 0)
        if is_metadata:  # no checkpoint has it: the log begins where its oldest snapshot ends
            snapshots = snapshots_in(self._files, log_dir.path / log_dir.logs[log])
            start_offset = snapshots[0].end_offset if snapshots else 0
        return LogFacts(
            topic=log[0],
            stopped_cleanly=log_dir.stopped_cleanly,
            recovery_point=max(log_dir.recovery_points.get(log, 0), 0),
            log_start_offset=start_offset,
            cleaner_offset=max(log_dir.cleaner_offsets.get(log, 0), 0),
            may_have_gaps=not is_metadata and (topic is None or topic.may_have_gaps),
            is_compacted=topic is not None and topic.is_compacted,
            deep=self._deep,
        )

    def _check_log(self, directory: Path, facts: LogFacts, on_record: OnRecord | None) -> None:
        self._check_other_files(directory)
        check = LogCheck(self._files, directory, facts, self._findings, on_record)
        self.end = check.run()

    def _check_decisions(self, directory: Path, facts: LogFacts, partition: int) -> None:
        topic = self.metadata.topics.get(TRANSACTION_STATE_TOPIC)
        count = None if topic is None else len(topic.directories)
        check = DecisionCheck(directory, partition, count, self.stored, self._findings)
        try:
            self._check_log(directory, facts, check.add)
        finally:
            check.end()
            if self.end is None or not self.end.transactions.is_known:
                self.stored.is_complete = False

    def _topic_id(self, path: Path) -> bytes | None:
        try:
            return read_topic_id(self._files, path)
        except CheckpointError as error:
            report_damage(self._files, error, self._findings, "it is written again", Kind.FILE)
            return None

    def _check_owner(
        self, log: TopicPartition, directory: Path, topic_id: bytes | None
    ) -> TopicFacts | None:
        if not self.metadata.is_known or log[0] == CLUSTER_METADATA_TOPIC:
            return None
        topic = self.metadata.topics.get(log[0])
        path = directory / PARTITION_METADATA
        stray = "the directory becomes stray and is not served"
        if topic is None or log[1] not in topic.directories:
            self._findings.problem(directory, "no topic of the metadata log owns it", stray)
        elif topic_id is None:
            if not self._files.exists(path) or not self._files.read(path):  # else it is damaged
                self._findings.note(path, "missing or empty", "it is written with the topic's id")
        elif topic_id != topic.topic_id:
            what = f"it belongs to topic id {uuid_text(topic_id)}, {log[0]} has "
            self._findings.problem(path, what + uuid_text(topic.topic_id), stray)
        return topic

    def _check_other_files(self, directory: Path) -> None:
        known = {LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, QUORUM_STATE}
        for name in self._files.list_directory(directory):
            path = directory / name
            if name in known or parse_segment_file(name) is not None:
                continue
            if parse_metadata_snapshot_file(name) is not None:
                check_snapshot(self._files, path, self._findings, self.metadata.add)
            elif name.endswith(".checkpoint.deleted"):
                self._findings.note(path, "a snapshot that is about to be deleted", "it is removed")
            elif name.endswith((".tmp", ".part")):
                self._findings.note(path, "left by a write that was not finished", "it is ignored")
            else:
                self._findings.note(path, "an unknown file", "it is left as it is")

    def _check_snapshots(self, directory: Path) -> None:
        """Check that snapshots and log together have all metadata."""
        segments = LogReader(directory, self._files).segments()
        try:
            newest_sound_snapshot(
                self._files, directory, segments[0].base_offset if segments else 0
            )
        except CorruptJournalError as error:
            self._findings.problem(
                directory, str(error), "the broker refuses to start", Kind.SNAPSHOT
            )
            self.metadata.is_known = False

    def _check_quorum(self, directory: Path) -> None:
        try:
            if read_quorum_state(self._files, directory) is None:
                path = directory / QUORUM_STATE
                self._findings.note(path, "missing", "it is created")
        except (QuorumStateError, OSError) as error:
            self._findings.problem(
                directory / QUORUM_STATE, str(error), "the broker refuses to start"
            )
