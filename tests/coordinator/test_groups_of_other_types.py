"""Share and streams groups in `__consumer_offsets`: carried along, whatever they hold."""

import logging
from itertools import chain

import pytest

from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.group_state import GroupState
from odradek.coordinator.outcome import JournalRecord
from odradek.coordinator.record_codec import CoordinatorRecordCodec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.protocol.records.share_group import SHARE_GROUP_TYPES
from odradek.protocol.records.streams_group import STREAMS_GROUP_TYPES
from odradek.storage.log import AppendOrigin
from tests.support.groups import GROUP, Groups
from tests.support.messages import sample

CODEC = CoordinatorRecordCodec(RECORD_TYPES)
OTHER_TYPES = [SHARE_GROUP_TYPES, STREAMS_GROUP_TYPES]
# A torn key, a torn value, a version and two types of which nobody knows anything.
UNREADABLE = [
    Record(b"\x00\x0a\x00\x09torn", b"\x00\x00", 0),
    Record(b"\x00\x17\x00\x01g", b"\x00\x00torn", 0),
    Record(b"\x00\x08\x00\x01g\x00\x01m", b"\x00\x63of tomorrow", 0),
    Record(b"\x00\x12\x00\x01g", None, 0),
    Record(b"\x00\x63anything", b"anything", 0),
]


def records_of(*types: int, dead: bool = False) -> list[Record]:
    """A record of each type, or its tombstone; all are of one group, and of one member."""
    pairs = [RECORD_TYPES[number] for number in types]
    made = [
        JournalRecord(None if dead else sample(value, 0), 0, sample(key, 0)) for key, value in pairs
    ]
    return [Record(*CODEC.encode(record), 0) for record in made]


def append(groups: Groups, records: list[Record]) -> None:
    batch = bytes(build_batch(records))
    groups.logs[0].append(batch, now_ms=0, origin=AppendOrigin.COORDINATOR)


def state_of(groups: Groups) -> GroupState:
    return groups.coordinator.shards.of(GROUP).state


def test_records_of_other_groups_change_nothing_and_stay_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    groups = Groups()
    append(groups, [*records_of(*chain(*OTHER_TYPES)), *UNREADABLE])
    leader, follower = groups.stable_group(2)
    groups.commit(5, member_id=leader, generation_id=groups.group().generation_id)
    append(groups, [*UNREADABLE, *records_of(*chain(*OTHER_TYPES))])
    stored = list(groups.logs[0].stored)
    with caplog.at_level(logging.WARNING):
        after = groups.restarted()
    assert groups.logs[0].stored == stored
    assert list(state_of(after).groups) == [GROUP]
    assert len(state_of(after).offsets) == 1
    assert after.committed() == 5
    assert after.group().state is ClassicState.STABLE
    for member in (leader, follower):
        assert after.heartbeat(member) is ErrorCode.NONE
        assert after.sync(member).assignment == member.encode()
    read = len(records_of(11, 17))
    carried = 2 * (sum(map(len, OTHER_TYPES)) + len(UNREADABLE) - read)
    assert f"carried along {carried} records" in caplog.text


@pytest.mark.parametrize("types", OTHER_TYPES, ids=["share", "streams"])
def test_a_group_of_another_type_is_known_from_its_epoch_to_its_tombstone(
    types: dict[int, object],
) -> None:
    groups = Groups()
    append(groups, records_of(*types))
    name = next(iter(state_of(groups.restarted()).of_other_types))
    assert groups.restarted().send_join(group_id=name).error_code == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    append(groups, records_of(*types, dead=True))
    assert groups.restarted().join(group_id=name).generation_id == 1
