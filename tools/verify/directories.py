"""Checks the log directories of one node: their own files, and every log in them.

The directory with the metadata log is checked first, because the metadata log says which topic owns
each partition directory. Without a metadata log in the given directories, ownership is not checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from odradek.coordinator.metadata.quorum_state import QuorumStateError, read_quorum_state
from odradek.protocol.primitives import ZERO_UUID, uuid_text
from odradek.storage.checkpoints import (
    CheckpointError,
    MetaProperties,
    TopicPartition,
    read_meta_properties,
    read_offsets,
    read_topic_id,
)
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCH_CHECKPOINT,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    QUORUM_STATE,
    RECOVERY_POINT_CHECKPOINT,
    ROOT_FILES,
    DirectoryState,
    is_foreign_directory,
    parse_metadata_snapshot_file,
    parse_partition_directory,
    parse_segment_file,
)
from odradek.storage.files import Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.tools.transactions.stored_transactions import StoredTransactions

from .decision_check import DecisionCheck
from .findings import Findings
from .log_check import LogCheck
from .log_state import LogFacts
from .metadata_facts import MetadataFacts, TopicFacts
from .open_transaction_check import OpenTransactionCheck
from .progress import Progress
from .snapshot_check import check_snapshot

# Partition directories that are not served: what each is, and what a broker's start does with it.
_UNSERVED = {
    DirectoryState.DELETE: ("the log of a topic that is being deleted", "it is removed"),
    DirectoryState.STRAY: ("a log that no topic owned", "it is left as it is, and not served"),
    DirectoryState.FUTURE: (
        "a log that is being moved here from another directory",
        "the move continues",
    ),
}


@dataclass(frozen=True, slots=True)
class _LogDirectory:
    """One log directory, and the content of its own files."""

    path: Path
    meta: MetaProperties | None
    stopped_cleanly: bool
    recovery_points: dict[TopicPartition, int]
    log_starts: dict[TopicPartition, int]
    logs: dict[TopicPartition, str]  # to the name of the log's directory


def _turn(log: TopicPartition) -> int:
    """When to check a log: the metadata first, `__transaction_state` last."""
    return {CLUSTER_METADATA_TOPIC: 0, TRANSACTION_STATE_TOPIC: 2}.get(log[0], 1)


class DirectoriesCheck:
    """Checks all directories. `deep`: read every record, not only those of internal logs."""

    def __init__(
        self, files: Files, findings: Findings, progress: Progress, *, deep: bool, now_ms: int
    ) -> None:
        self._files = files
        self._findings = findings
        self._progress = progress
        self._deep = deep
        self._open_transactions = OpenTransactionCheck(findings, now_ms)
        self._stored_transactions = StoredTransactions()
        self._metadata = MetadataFacts()
        self._has_metadata = False

    def run(self, paths: Sequence[Path]) -> None:
        """Check everything. Raises OSError if one of `paths` cannot be listed."""
        log_dirs = [self._open(path) for path in paths]
        self._compare(log_dirs)
        logs = [(log_dir, log) for log_dir in log_dirs for log in sorted(log_dir.logs)]
        for log_dir, log in sorted(logs, key=lambda each: _turn(each[1])):
            self._check_log(log_dir, log, log_dir.path / log_dir.logs[log])
        self._check_open_transactions(log_dirs)
        if self._knows_owners:
            for log_dir in log_dirs:
                self._check_missing(log_dir)

    @property
    def _knows_owners(self) -> bool:
        """Whether a metadata log was read, with at least one record."""
        return self._has_metadata and self._metadata.is_known

    # --- the log directory itself

    def _open(self, path: Path) -> _LogDirectory:
        names = self._files.list_directory(path)
        logs = self._check_names(path, names)
        if self._files.is_locked(path / LOCK):
            what = "a broker is running on it: files may change while they are checked"
            self._findings.note(path, what)
        stopped_cleanly = CLEAN_SHUTDOWN in names
        if not stopped_cleanly and logs:
            what = "it was not stopped cleanly (or is in use)"
            self._findings.note(path, what, "logs are recovered from their recovery points on")
        offsets = {name: self._read_offsets(path / name, logs) for name in OFFSET_CHECKPOINTS}
        return _LogDirectory(
            path,
            self._read_meta(path, has_logs=bool(logs)),
            stopped_cleanly,
            offsets[RECOVERY_POINT_CHECKPOINT],
            offsets[LOG_START_OFFSET_CHECKPOINT],
            logs,
        )

    def _check_names(self, path: Path, names: Sequence[str]) -> dict[TopicPartition, str]:
        logs: dict[TopicPartition, str] = {}
        for name in names:
            if not self._files.is_directory(path / name):
                if name not in ROOT_FILES:
                    self._findings.note(path / name, "an unknown file", "it is left as it is")
                continue
            if is_foreign_directory(name):
                continue
            try:
                parsed = parse_partition_directory(name)
            except ValueError as error:
                self._findings.problem(path / name, str(error), "the broker refuses to start")
                continue
            if parsed.state is DirectoryState.LIVE:
                logs[parsed.topic, parsed.partition] = name
            else:
                self._findings.note(path / name, *_UNSERVED[parsed.state])
        return logs

    def _read_meta(self, path: Path, *, has_logs: bool) -> MetaProperties | None:
        try:
            meta = read_meta_properties(self._files, path)
        except (CheckpointError, OSError) as error:
            self._findings.problem(
                path / META_PROPERTIES, str(error), "the broker refuses to start"
            )
            return None
        if meta is None and has_logs:
            what = "missing, though there are logs"
            self._findings.problem(path / META_PROPERTIES, what, "the broker refuses to start")
        elif meta is None:
            self._findings.note(path / META_PROPERTIES, "missing", "the directory is formatted")
        return meta

    def _read_offsets(
        self, path: Path, logs: dict[TopicPartition, str]
    ) -> dict[TopicPartition, int]:
        try:
            offsets = read_offsets(self._files, path)
        except (CheckpointError, OSError) as error:
            self._findings.problem(path, str(error), "it is treated as empty")
            return {}
        for (topic, partition), offset in offsets.items():
            if offset < 0:
                what = f"the offset of {topic}-{partition} is {offset}"
                self._findings.problem(path, what, "it is treated as 0")
        gone = [log for log in offsets if log not in logs]
        if gone:
            topic, partition = gone[0]
            what = f"{len(gone)} of its logs are not here, the first is {topic}-{partition}"
            self._findings.note(path, what, "they are dropped when the file is next written")
        return offsets

    def _compare(self, log_dirs: Sequence[_LogDirectory]) -> None:
        known = [(log_dir.path, log_dir.meta) for log_dir in log_dirs if log_dir.meta is not None]
        for path, meta in known[1:]:
            first_path, first = known[0]
            pairs = ((meta.cluster_id, first.cluster_id), (meta.node_id, first.node_id))
            for key, (mine, theirs) in zip(("cluster.id", "node.id"), pairs, strict=True):
                if mine != theirs:
                    what = f"{key} is {mine}; in {first_path} it is {theirs}"
                    self._refused(path, what)
        seen: dict[bytes, Path] = {}
        for path, meta in known:
            if meta.directory_id is None:
                self._findings.note(path / META_PROPERTIES, "no directory.id", "one is added")
            elif (twin := seen.setdefault(meta.directory_id, path)) != path:
                shown = uuid_text(meta.directory_id)
                self._refused(path, f"directory.id is {shown}, the same as in {twin}")
        owners: dict[TopicPartition, Path] = {}
        for log_dir in log_dirs:
            for log, name in log_dir.logs.items():
                if (other := owners.setdefault(log, log_dir.path)) != log_dir.path:
                    what = f"the same log is also in {other}"
                    self._findings.problem(log_dir.path / name, what, "one of them is not served")

    def _refused(self, path: Path, what: str) -> None:
        self._findings.problem(path / META_PROPERTIES, what, "the broker refuses to start")

    # --- one log

    def _check_log(self, log_dir: _LogDirectory, log: TopicPartition, directory: Path) -> None:
        self._findings.totals.partitions += 1
        topic = self._check_owner(log, directory)
        is_metadata = log[0] == CLUSTER_METADATA_TOPIC
        recovery_point = max(log_dir.recovery_points.get(log, 0), 0)
        log_start = max(log_dir.log_starts.get(log, 0), 0)
        facts = LogFacts(
            topic=log[0],
            stopped_cleanly=log_dir.stopped_cleanly,
            recovery_point=recovery_point,
            log_start_offset=log_start,
            may_have_gaps=not is_metadata and (topic is None or topic.may_have_gaps),
            deep=self._deep,
        )
        on_record = None
        decisions = None
        try:
            if is_metadata:
                self._has_metadata = True
                on_record = self._metadata.add
                self._check_quorum(directory)
            elif log[0] == TRANSACTION_STATE_TOPIC:
                decisions = self._decision_check(log[1], directory)
                on_record = decisions.add
            self._check_other_files(directory)
            check = LogCheck(
                self._files, directory, facts, self._findings, self._progress, on_record
            )
            self._open_transactions.add(log, check.run())
        except OSError as error:
            what = f"it cannot be read: {error}"
            self._findings.problem(directory, what, "the log directory goes offline")
        if decisions is not None:
            decisions.end()

    # --- transactions

    def _decision_check(self, partition: int, directory: Path) -> DecisionCheck:
        topic = self._metadata.topics.get(TRANSACTION_STATE_TOPIC)
        count = None if topic is None else len(topic.directories)
        return DecisionCheck(directory, partition, count, self._stored_transactions, self._findings)

    def _check_open_transactions(self, log_dirs: Sequence[_LogDirectory]) -> None:
        directories = {
            partition: log_dir.path / name
            for log_dir in log_dirs
            for (topic, partition), name in log_dir.logs.items()
            if topic == TRANSACTION_STATE_TOPIC
        }
        existing: set[TopicPartition] | None = None
        if self._knows_owners:
            topics = self._metadata.topics.values()
            existing = {(each.name, partition) for each in topics for partition in each.directories}
        expected = {each[1] for each in existing or () if each[0] == TRANSACTION_STATE_TOPIC}
        if existing is None or not expected <= directories.keys():
            self._stored_transactions.is_complete = False
        self._open_transactions.run(self._stored_transactions, directories, existing)

    def _check_owner(self, log: TopicPartition, directory: Path) -> TopicFacts | None:
        path = directory / PARTITION_METADATA
        try:
            topic_id = read_topic_id(self._files, path)
        except (CheckpointError, OSError) as error:
            self._findings.problem(path, str(error), "the log is not served")
            return None
        if not self._knows_owners or log[0] == CLUSTER_METADATA_TOPIC:
            return None
        topic = self._metadata.topics.get(log[0])
        stray = "the directory becomes stray and is not served"
        if topic is None or log[1] not in topic.directories:
            self._findings.problem(directory, "no topic of the metadata log owns it", stray)
        elif topic_id is None:
            self._findings.note(path, "missing", "it is created with the topic's id")
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
                check_snapshot(self._files, path, self._findings, self._metadata.add)
            elif name.endswith(".checkpoint.deleted"):
                self._findings.note(path, "a snapshot that is about to be deleted", "it is removed")
            elif name.endswith((".tmp", ".part")):
                self._findings.note(path, "left by a write that was not finished", "it is ignored")
            else:
                self._findings.note(path, "an unknown file", "it is left as it is")

    def _check_quorum(self, directory: Path) -> None:
        try:
            if read_quorum_state(self._files, directory) is None:
                path = directory / QUORUM_STATE
                self._findings.note(path, "missing", "it is created")
        except (QuorumStateError, OSError) as error:
            self._findings.problem(
                directory / QUORUM_STATE, str(error), "the broker refuses to start"
            )

    def _check_missing(self, log_dir: _LogDirectory) -> None:
        if log_dir.meta is None or log_dir.meta.directory_id in (None, ZERO_UUID):
            return
        for name, topic in sorted(self._metadata.topics.items()):
            for partition, directories in sorted(topic.directories.items()):
                is_here = log_dir.meta.directory_id in directories
                if is_here and (name, partition) not in log_dir.logs:
                    what = "missing, though the metadata log places it here"
                    path = log_dir.path / f"{name}-{partition}"
                    self._findings.problem(path, what, "an empty log is created")
