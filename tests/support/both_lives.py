"""Compare a living coordinator with one that a restart would make of its logs."""

from collections.abc import Sequence

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.groups.group_shards import GroupShards, group_shards
from odradek.protocol.batch_header import HEADER_BYTES, pack_header, read_header
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support.group_snapshot import classic_group_snapshot, is_at_rest, state_snapshot
from tests.support.groups import Groups
from tests.support.memory_log import MemoryLog


def assert_log_agrees(groups: Groups) -> None:
    """Read the logs into another state, and compare all groups and offsets with the living ones."""
    _assert_same(groups.coordinator.shards, _read(groups, groups.logs))


def assert_cleaned_log_agrees(groups: Groups) -> None:
    """The same with logs of which compaction has left the newest record of each key."""
    _assert_same(groups.coordinator.shards, _read(groups, [_cleaned(log) for log in groups.logs]))


def _assert_same(in_life: GroupShards, in_logs: GroupShards) -> None:
    for living, read in zip(in_life.serving(), in_logs.serving(), strict=True):
        assert state_snapshot(living.state) == state_snapshot(read.state)
        for group in living.state.of_type(ClassicGroup):
            if group.journaled is not None and is_at_rest(group):
                again = read.state.classic_group(group.group_id)
                assert classic_group_snapshot(group) == classic_group_snapshot(again)


def _read(groups: Groups, logs: Sequence[MemoryLog]) -> GroupShards:
    shards = group_shards(groups.settings)
    shards.open_topic(logs, len(logs))  # type: ignore[arg-type] # a MemoryLog serves a journal
    return shards


def _cleaned(log: MemoryLog) -> MemoryLog:
    """The newest record of each key, without tombstones."""
    cleaned = MemoryLog(log.topic, log.partition)
    newest: dict[bytes | None, Record] = {}
    for batch in log.stored:
        if read_header(batch).producer_id >= 0:
            return log  # which records of transactions may go, is the cleaner's affair
        for record in read_records(batch):
            newest.pop(record.key, None)
            if record.value is not None:
                newest[record.key] = record
    for record in newest.values():
        batch = bytes(build_batch([record]))
        header = read_header(batch)._replace(base_offset=record.offset)
        cleaned.stored.append(pack_header(header) + batch[HEADER_BYTES:])
    return cleaned
