"""Many offsets are deleted in parts, one in each turn of the loop. They may change in between."""

from collections.abc import Iterator

import pytest

from odradek.coordinator.any_group import offsets as offsets_module
from odradek.coordinator.groups import offset_retention
from odradek.coordinator.runtime.outcome import JournalRecord
from tests.support.groups import GROUP, TOPIC, Groups
from tests.support.memory_log import MemoryLog

PARTITIONS = 100
OFFSETS_OF_A_PART = 10
DAY = 24 * 60 * 60 * 1000
OLD = ("topic", bytes(16))  # committed by a client that names no topic id


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    """A group with many offsets in two topics."""
    monkeypatch.setattr(offsets_module, "STEPS_OF_A_PART", 11 * OFFSETS_OF_A_PART)
    groups = Groups()
    for partition in range(PARTITIONS):
        groups.commit(1, partition=partition, topic=OLD)
    return groups


def left(groups: Groups) -> list[int]:
    """The partitions for which an offset is committed."""
    offsets = groups.coordinator.shards.of(GROUP).state.offsets
    return [key.partition for key, _ in offsets.committed(GROUP)]


def expire(groups: Groups) -> None:
    """Begin to delete the offsets, which have all expired."""
    groups.loop.now_ms += 30 * DAY
    groups.coordinator.alarm.expire_due()


def tombstones(log: MemoryLog, begun: int) -> int:
    return len(log.stored) - begun


@pytest.mark.parametrize("way", ["expired", "their topic is deleted"])
def test_a_turn_of_the_loop_deletes_a_part(groups: Groups, way: str) -> None:
    begun = len(groups.logs[0].stored)
    if way == "expired":
        expire(groups)
    else:
        groups.coordinator.retention.on_topics_deleted([TOPIC])
    turns = 1
    while left(groups):
        before = len(left(groups))
        groups.loop.turn()
        assert before - len(left(groups)) <= OFFSETS_OF_A_PART
        turns += 1
    assert turns >= PARTITIONS / OFFSETS_OF_A_PART
    assert tombstones(groups.logs[0], begun) == turns
    groups.advance(0)
    assert not left(groups.restarted())


def test_a_turn_deletes_a_part_of_one_shard_only() -> None:
    groups = Groups(partitions=10)
    names = [f"group-{number}" for number in range(30)]
    for name in names:
        groups.commit(1, topic=OLD, group_id=name)
    groups.coordinator.retention.on_topics_deleted([TOPIC])
    shards = {groups.coordinator.shards.partition_of(name) for name in names}
    found = [_shards_with_offsets(groups, names)]
    while found[-1]:
        groups.loop.turn()
        found.append(_shards_with_offsets(groups, names))
        assert found[-2] - found[-1] <= 1
    assert found[0] >= len(shards) - 1


def _shards_with_offsets(groups: Groups, names: list[str]) -> int:
    left = [name for name in names if groups.committed(OLD[0], group_id=name) is not None]
    return len({groups.coordinator.shards.partition_of(name) for name in left})


def test_an_offset_that_is_committed_between_two_parts_stays(groups: Groups) -> None:
    expire(groups)
    groups.commit(7, partition=PARTITIONS - 1, topic=OLD)  # it has not been looked at
    groups.commit(7, partition=0, topic=OLD)  # it has been deleted
    groups.advance(0)
    assert sorted(left(groups)) == [0, PARTITIONS - 1]
    assert GROUP in groups.coordinator.shards.of(GROUP).state.groups
    assert sorted(left(groups.restarted())) == [0, PARTITIONS - 1]


def test_an_offset_in_the_next_topic_of_a_name_stays(groups: Groups) -> None:
    groups.coordinator.retention.on_topics_deleted([TOPIC])
    groups.commit(7, partition=PARTITIONS - 1, topic=OLD)
    groups.advance(0)
    assert left(groups) == [PARTITIONS - 1]


def test_a_group_that_is_deleted_between_two_parts_ends_the_search(groups: Groups) -> None:
    expire(groups)
    groups.coordinator.admin.delete([GROUP])
    groups.advance(0)
    assert GROUP not in groups.restarted().coordinator.shards.of(GROUP).state.groups


def test_a_check_begins_when_the_last_one_has_ended(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []

    def expired_in_parts(*words: object) -> Iterator[list[JournalRecord]]:
        begun.append(words)
        return iter([[]] * 3)

    monkeypatch.setattr(offset_retention, "expired_in_parts", expired_in_parts)
    for _ in range(3):
        expire(groups)
    assert len(begun) == 1
    groups.loop.turn()
    groups.loop.turn()
    groups.loop.turn()
    expire(groups)
    assert len(begun) == 2
