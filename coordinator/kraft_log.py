"""Opening `__cluster_metadata-0` as Kafka's KRaft log.

A start is an election that this node wins. It opens a new epoch: `quorum-state` names it, and a
LeaderChange control batch begins it in the log; the batches that follow carry it as their partition
leader epoch. A log without records is then given its first ones, those of `bootstrap.checkpoint`,
inside a metadata transaction; a transaction that was left open is aborted. After that the log is a
journal like any other.

Kafka: KafkaRaftClient, LeaderState.appendStartOfEpochControlRecords, ActivationRecordsGenerator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..protocol.record_batch import CorruptRecordError, build_batch
from ..protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from ..protocol.schema import DecodeError
from ..storage.filenames import (
    BOOTSTRAP_CHECKPOINT,
    MetadataSnapshotName,
    metadata_snapshot_file,
)
from ..storage.files import Files
from ..storage.log import AppendOrigin, PartitionLog
from .cluster_metadata import ClusterMetadata
from .configs import ConfigResourceType
from .features import METADATA_VERSION, bootstrap_records
from .journal import CorruptJournalError, Journal, replay_stored, stored_records
from .metadata_snapshot import newest_snapshot, read_snapshot
from .outcome import JournalRecord, Outcome
from .quorum import Quorum, QuorumMember, check_alone, epoch_start, find_quorum
from .quorum_state import QuorumState, read_quorum_state, write_quorum_state
from .record_codec import MetadataRecordCodec

ELR_VERSION = "eligible.leader.replicas.version"
FIRST_VERSION_WITH_TRANSACTIONS = 13  # metadata.version 3.6-IV1


class UnservableMetadataError(Exception):
    """The metadata asks for what odradek does not do; says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftLog:
    """The metadata log, open and led by this node."""

    journal: Journal
    metadata: ClusterMetadata
    quorum: Quorum
    me: QuorumMember
    leader_epoch: int


def open_kraft_log(
    log: PartitionLog,
    files: Files,
    cluster_id: str,
    me: QuorumMember,
    *,
    now_ms: int,
    default_min_insync_replicas: int = 1,
) -> KraftLog:
    """Replay the metadata and become its leader.

    Nothing is written when it raises: NotAloneError, UnservableMetadataError, CorruptJournalError,
    QuorumStateError. All that was written is on the disk when it returns.
    """
    state = read_quorum_state(files, log.directory)
    name = newest_snapshot(files, log.directory)
    snapshot = (
        [] if name is None else read_snapshot(files, log.directory / metadata_snapshot_file(*name))
    )
    snapshot_end = 0 if name is None else name.end_offset
    try:
        quorum = find_quorum(snapshot, snapshot_end, log.batches(log.log_start_offset))
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{log.name}: {error}") from error
    check_alone(quorum, state, me)
    metadata = ClusterMetadata(cluster_id)
    journal = _replay(log, metadata, snapshot, name)
    obstacles = metadata.obstacles()
    if obstacles:
        raise UnservableMetadataError("; ".join(obstacles))

    epoch = 1 + max(state.leader_epoch if state else 0, log.leader_epoch, name.epoch if name else 0)
    _begin_epoch(log, files, quorum, me, epoch, now_ms)
    first = _first_records(files, log.directory.parent)
    journal.commit(_activation(metadata, first, default_min_insync_replicas), now_ms)
    log.flush(now_ms)
    return KraftLog(journal=journal, metadata=metadata, quorum=quorum, me=me, leader_epoch=epoch)


def _replay(
    log: PartitionLog,
    metadata: ClusterMetadata,
    snapshot: Sequence[memoryview],
    name: MetadataSnapshotName | None,
) -> Journal:
    codec = MetadataRecordCodec.of_cluster()
    if name is None:
        return Journal(log, metadata, codec)
    if not log.log_start_offset <= name.end_offset <= log.log_end_offset:
        raise CorruptJournalError(
            f"{log.directory}: the log has offsets {log.log_start_offset} to {log.log_end_offset}, "
            f"its newest snapshot ends at {name.end_offset}"
        )
    place = f"{log.directory}/{metadata_snapshot_file(*name)}"
    stored = (
        (record, context._replace(offset=name.end_offset - 1))
        for record, context in stored_records(snapshot, codec, place)
    )
    replay_stored(stored, metadata, -1, place)
    return Journal(log, metadata, codec, start_offset=name.end_offset)


def _begin_epoch(
    log: PartitionLog, files: Files, quorum: Quorum, me: QuorumMember, epoch: int, now_ms: int
) -> None:
    voters = (me.node_id,) if quorum.kraft_version == 0 else None
    won = QuorumState(leader_id=me.node_id, leader_epoch=epoch, voters=voters)
    write_quorum_state(files, log.directory, won)
    batch = build_batch(
        [record._replace(timestamp_ms=now_ms) for record in epoch_start(quorum, me)],
        is_control=True,
    )
    log.become_leader(epoch)
    log.append(batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)


def _first_records(files: Files, data_directory: Path) -> tuple[JournalRecord, ...]:
    """What formatting left for an empty log; our own first records where that is lost."""
    path = data_directory / BOOTSTRAP_CHECKPOINT
    if not files.exists(path):
        return bootstrap_records()
    stored = stored_records(read_snapshot(files, path), MetadataRecordCodec.of_cluster(), str(path))
    return tuple(record for record, _ in stored)


def _activation(
    metadata: ClusterMetadata, first: Sequence[JournalRecord], min_insync_replicas: int
) -> Outcome[None]:
    """What a new leader writes before anything else."""
    abort = AbortTransactionRecord(reason="Controller failover")
    records = [JournalRecord(abort)] if metadata.in_transaction else []
    if not metadata.is_bootstrapped:
        levels = _feature_levels(first)
        body = list(first)
        if levels.get(ELR_VERSION):
            body.append(_min_insync_replicas(min_insync_replicas))
        if levels.get(METADATA_VERSION, 0) >= FIRST_VERSION_WITH_TRANSACTIONS:
            begin = JournalRecord(BeginTransactionRecord(name="Bootstrap records"))
            body = [begin, *body, JournalRecord(EndTransactionRecord())]
        records += body
    return Outcome(reply=None, records=tuple(records))


def _feature_levels(records: Sequence[JournalRecord]) -> dict[str, int]:
    return {
        record.value.name: record.value.feature_level
        for record in records
        if isinstance(record.value, FeatureLevelRecord)
    }


def _min_insync_replicas(value: int) -> JournalRecord:
    """Where eligible leader replicas are on, Kafka wants the cluster's default written down."""
    return JournalRecord(
        ConfigRecord(
            resource_type=ConfigResourceType.BROKER,
            resource_name="",
            name="min.insync.replicas",
            value=str(value),
        )
    )
