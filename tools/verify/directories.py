"""Checks the log directories of one node: the files in them that belong to no log."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from odradek.protocol.primitives import uuid_text
from odradek.storage.checkpoints import (
    CheckpointError,
    MetaProperties,
    read_meta_properties,
    read_offsets,
    read_topic_id,
)
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_INDEX_CACHE,
    ROOT_FILES,
    DirectoryState,
    is_foreign_directory,
    parse_partition_directory,
)
from odradek.storage.files import TEMPORARY_SUFFIX, Files
from odradek.storage.topic_partition import TopicPartition

from .findings import Findings
from .partition_check import LogDirectory

# Partition directories that are not served: what each is, and what a broker's start does with it.
_UNSERVED = {
    DirectoryState.DELETE: ("the log of a topic that is being deleted", "it is removed"),
    DirectoryState.STRAY: ("a log that no topic owned", "it is left as it is, and not served"),
    DirectoryState.FUTURE: (
        "a log that is being moved here from another directory",
        "the move continues",
    ),
}


class DirectoriesCheck:
    """Checks the files beside the logs."""

    def __init__(self, files: Files, findings: Findings) -> None:
        self._files = files
        self._findings = findings

    def run(self, paths: Sequence[Path]) -> list[LogDirectory]:
        """Check all directories, and return what is in them. Raises OSError."""
        log_dirs = [self._open(path) for path in paths]
        self._compare(log_dirs)
        return log_dirs

    def _open(self, path: Path) -> LogDirectory:
        # Tested first: a broker that has just started changes what was written at its last stop.
        is_in_use = self._files.is_locked(path / LOCK)
        names = self._files.list_directory(path)
        logs, arriving = self._check_names(path, names)
        if is_in_use:
            what = "a broker is running on it: files may change while they are checked"
            self._findings.note(path, what)
        stopped_cleanly = CLEAN_SHUTDOWN in names and not is_in_use
        if not stopped_cleanly and logs:
            what = "it was not stopped cleanly (or is in use)"
            self._findings.note(path, what, "logs are recovered from their recovery points on")
        topic_ids = self._topic_ids(path, logs)
        offsets = {name: self._read_offsets(path / name, logs) for name in OFFSET_CHECKPOINTS}
        return LogDirectory(
            path,
            self._read_meta(path, has_logs=bool(logs)),
            stopped_cleanly,
            offsets[RECOVERY_POINT_CHECKPOINT],
            offsets[LOG_START_OFFSET_CHECKPOINT],
            offsets[CLEANER_OFFSET_CHECKPOINT],
            logs,
            arriving,
            topic_ids,
            is_in_use=is_in_use,
        )

    def _check_names(
        self, path: Path, names: Sequence[str]
    ) -> tuple[dict[TopicPartition, str], set[TopicPartition]]:
        """Return the logs by the names of their directories, and those that are moved here."""
        logs: dict[TopicPartition, str] = {}
        arriving: set[TopicPartition] = set()
        for name in names:
            if not self._files.is_directory(path / name):
                if name not in ROOT_FILES and not name.endswith(TEMPORARY_SUFFIX):
                    self._findings.note(path / name, "an unknown file", "it is left as it is")
                continue
            if name == REMOTE_INDEX_CACHE:
                continue
            is_foreign = is_foreign_directory(name)
            try:
                parsed = parse_partition_directory(name)
            except ValueError as error:
                report = self._findings.note if is_foreign else self._findings.problem
                at_start = "odradek ignores it. Apache Kafka refuses to start"
                report(path / name, str(error), at_start)
                continue
            if is_foreign:
                at_start = "odradek ignores it. Apache Kafka takes it for a log"
                self._findings.note(path / name, "a hidden directory", at_start)
                continue
            if parsed.state is DirectoryState.LIVE:
                logs[parsed.key] = name
            else:
                self._findings.note(path / name, *_UNSERVED[parsed.state])
            if parsed.state is DirectoryState.FUTURE:
                arriving.add(parsed.key)
        return logs, arriving

    def _topic_ids(
        self, path: Path, logs: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, bytes]:
        topic_ids = {}
        for log, name in logs.items():
            with suppress(CheckpointError, OSError):  # the check of the log reports it
                topic_id = read_topic_id(self._files, path / name / PARTITION_METADATA)
                if topic_id is not None:
                    topic_ids[log] = topic_id
        return topic_ids

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

    def _compare(self, log_dirs: Sequence[LogDirectory]) -> None:
        known = [(log_dir.path, log_dir.meta) for log_dir in log_dirs if log_dir.meta is not None]
        for path, meta in known[1:]:
            first_path, first = known[0]
            pairs = ((meta.cluster_id, first.cluster_id), (meta.node_id, first.node_id))
            for key, (mine, theirs) in zip(("cluster.id", "node.id"), pairs, strict=True):
                if mine != theirs:
                    what = f"{key} is {mine}; in {first_path} it is {theirs}"
                    self._add_refusal(path, what)
        seen: dict[bytes, Path] = {}
        for path, meta in known:
            if meta.directory_id is None:
                self._findings.note(path / META_PROPERTIES, "no directory.id", "one is added")
            elif (twin := seen.setdefault(meta.directory_id, path)) != path:
                shown = uuid_text(meta.directory_id)
                self._add_refusal(path, f"directory.id is {shown}, the same as in {twin}")
        owners: dict[TopicPartition, LogDirectory] = {}
        for log_dir in log_dirs:
            for log, name in log_dir.logs.items():
                if (other := owners.setdefault(log, log_dir)) is not log_dir:
                    self._report_twin(log_dir, name, other)

    def _report_twin(self, log_dir: LogDirectory, name: str, other: LogDirectory) -> None:
        path, what = log_dir.path / name, f"the same log is also in {other.path}"
        if log_dir.is_in_use and other.is_in_use:
            # The broker has not found both when it started.
            self._findings.note(path, f"{what}: it was moved while the directories were listed")
        else:
            at_start = "the broker refuses to start (odradek continues a move that was interrupted)"
            self._findings.problem(path, what, at_start)

    def _add_refusal(self, path: Path, what: str) -> None:
        self._findings.problem(path / META_PROPERTIES, what, "the broker refuses to start")
