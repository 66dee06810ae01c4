"""Share and streams groups that a directory has in `__consumer_offsets`."""

import logging
from itertools import chain

import pytest

from odradek.coordinator.classic_groups.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.protocol.records.share_group import SHARE_GROUP_TYPES
from odradek.protocol.records.streams_group import STREAMS_GROUP_TYPES
from odradek.protocol.schema import Message, replace
from odradek.storage.log import AppendOrigin
from tests.support.groups import GROUP, Groups
from tests.support.messages import sample

CODEC = CoordinatorRecordCodec(RECORD_TYPES)
OTHER = "other"
MONTH_MS = 30 * 24 * 3_600_000  # offsets are kept for a week
OTHER_TYPES = [SHARE_GROUP_TYPES, STREAMS_GROUP_TYPES]
# A version and four types of which nobody knows anything.
UNREADABLE = [
    Record(b"\x00\x18\x00\x09torn", b"\x00\x00", 0),
    Record(b"\x00\x19\x00\x01g", b"\x00\x00torn", 0),
    Record(b"\x00\x08\x00\x01g\x00\x01m", b"\x00\x63of tomorrow", 0),
    Record(b"\x00\x12\x00\x01g", None, 0),
    Record(b"\x00\x63anything", b"anything", 0),
]


def records_of(*types: int, dead: bool = False, group: str | None = None) -> list[Record]:
    """A record of each type, or its tombstone; all are of one group, and of one member."""
    pairs = [RECORD_TYPES[number] for number in types]
    made = [
        JournalRecord(None if dead else sample(value, 0), 0, key_of(key, group))
        for key, value in pairs
    ]
    return [Record(*CODEC.encode(record), 0) for record in made]


def key_of(key: type[Message], group: str | None) -> Message:
    made = sample(key, 0)
    return made if group is None else replace(made, group_id=group)


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
    assert [group.group_id for group in state_of(after).of_type(ClassicGroup)] == [GROUP]
    assert len(state_of(after).offsets) == 1
    assert after.committed() == 5
    assert after.group().state is ClassicState.STABLE
    for member in (leader, follower):
        assert after.heartbeat(member) is ErrorCode.NONE
        assert after.sync(member).assignment == member.encode()
    carried = 2 * len(UNREADABLE)
    assert f"kept {carried} records" in caplog.text


@pytest.mark.parametrize("types", OTHER_TYPES, ids=["share", "streams"])
def test_a_group_of_another_type_is_known_from_its_first_record_to_its_tombstone(
    types: dict[int, object],
) -> None:
    groups = Groups()
    append(groups, records_of(*types))
    [(name, group)] = state_of(groups.restarted()).groups.items()
    assert state_of(groups.restarted()).groups[name].group_type is group.group_type
    append(groups, records_of(*types, dead=True))
    assert state_of(groups.restarted()).groups.get(name) is None
    append(groups, records_of(next(reversed(types))))
    assert state_of(groups.restarted()).groups.get(name) is not None


def test_nobody_joins_commits_or_reads_under_the_name_of_a_share_group() -> None:
    groups = of_type(SHARE_GROUP_TYPES)
    joined = groups.send_join(group_id=OTHER)
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    for epoch in (-1, 3):
        with pytest.raises(ApiError) as refusal:
            groups.commit(5, generation_id=epoch, group_id=OTHER)
        assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.committed(group_id=OTHER) is None
    with pytest.raises(ApiError) as refusal:
        groups.coordinator.offsets.delete(OTHER, [])
    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_share_group_never_expires() -> None:
    groups = of_type(SHARE_GROUP_TYPES)
    groups.advance(MONTH_MS)
    assert state_of(groups.restarted()).groups[OTHER].state_name == "Empty"


def test_an_empty_share_group_is_deleted_with_all_its_records() -> None:
    groups = of_type(SHARE_GROUP_TYPES)
    [answer] = groups.coordinator.admin.delete([OTHER])
    assert answer.error_code == ErrorCode.NON_EMPTY_GROUP
    groups.advance(MONTH_MS)  # its member's session ends
    [answer] = groups.coordinator.admin.delete([OTHER])
    assert answer.error_code == ErrorCode.NONE
    assert OTHER not in state_of(groups.restarted()).groups
    newest = dict(stored_pairs(groups))
    assert not any(newest[key] for key, _ in records_as_pairs(SHARE_GROUP_TYPES))


def of_type(types: dict[int, object], **settings: int) -> Groups:
    """A coordinator whose log holds one group of that type, OTHER."""
    groups = Groups(**settings)
    append(groups, records_of(*types, group=OTHER))
    return groups.restarted(**settings)


def stored_pairs(groups: Groups) -> list[tuple[bytes, bytes | None]]:
    return [
        (bytes(record.key), None if record.value is None else bytes(record.value))
        for batch in groups.logs[0].stored
        for record in read_records(batch)
    ]


def records_as_pairs(types: dict[int, object]) -> list[tuple[bytes, bytes | None]]:
    return [(record.key, record.value) for record in records_of(*types, group=OTHER)]
