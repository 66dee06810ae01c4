"""Commits and deletions of thousands of offsets give way; what happens meanwhile is respected.

The CPU time between two steps is measured, because in each step other requests may be served.
"""

import random
from collections.abc import Callable

import pytest

from odradek.coordinator.any_group.group_offsets import CommittedOffset
from odradek.coordinator.any_group.joined_offsets import JoinedCommits, joined_offsets
from odradek.coordinator.any_group.offsets import Offsets
from odradek.coordinator.groups.group_decisions import MAX_ATTEMPTS
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.steps import Step
from odradek.protocol.batch_header import NO_PRODUCER_ID
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopic
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from tests.support.group_snapshot import state_snapshot
from tests.support.groups import GROUP, SESSION_MS, TOPIC, Groups
from tests.support.stretches import ATTEMPTS, Stretches
from tests.support.turns import TURN_MS

pytestmark = pytest.mark.slow

PARTITIONS = 9_900  # of one request that fits into a batch
INDEXES = 100_000
FEW = 20
# A stretch of this length keeps nobody waiting. TURN_MS is for one with an append.
SHORT_MS = 4.0


class Once:
    """A step that does something the first time."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do: Callable[[], object] | None = do

    def step(self) -> None:
        do, self._do = self._do, None
        if do is not None:
            do()


def wanted(count: int, offset: int = 1) -> list[OffsetCommitRequestTopic]:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        for index in range(count)
    ]
    return [OffsetCommitRequestTopic(name=TOPIC[0], topic_id=TOPIC[1], partitions=partitions)]


def commit_all(
    groups: Groups,
    step: Step,
    *,
    count: int = PARTITIONS,
    member_id: str = "",
    generation_id: int = -1,
) -> list[int]:
    """Commit offset 1 of many partitions. Returns their error codes."""
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id_or_member_epoch=generation_id,
        topics=[],
    )
    (answer,) = groups.coordinator.offsets.commit(request, wanted(count), 9, step)
    return [each.error_code for each in answer.partitions]


def commit_all_in_transaction(
    groups: Groups, step: Step, verify: Callable[[], None] = lambda: None
) -> None:
    request = TxnOffsetCommitRequest(
        transactional_id="t", group_id=GROUP, producer_id=1, producer_epoch=0, topics=[]
    )
    topics = wanted(PARTITIONS)
    groups.coordinator.offsets.commit_in_transaction(request, topics, 5, step, verify)


def delete_offsets(groups: Groups, step: Step) -> None:
    indexes = [OffsetDeleteRequestPartition(partition_index=index) for index in range(PARTITIONS)]
    topic = OffsetDeleteRequestTopic(name=TOPIC[0], partitions=indexes)
    groups.coordinator.offsets.delete(GROUP, [topic], step)


def delete_group(groups: Groups, step: Step) -> int:
    (result,) = groups.coordinator.admin.delete([GROUP], step)
    return result.error_code


def committed(groups: Groups) -> dict[int, int]:
    fetch = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    found = groups.coordinator.offsets.fetch(fetch, None)
    return {each.partition_index: each.committed_offset for t in found for each in t.partitions}


def nothing(_groups: Groups) -> None:
    pass


def with_offsets(groups: Groups) -> None:
    commit_all(groups, Stretches().step)


def with_pending_offsets(groups: Groups) -> None:
    with_offsets(groups)
    commit_all_in_transaction(groups, Stretches().step)


def end_transaction(groups: Groups, _step: Step) -> None:
    """As the marker does."""
    groups.coordinator.shards.of(GROUP).state.end_transaction(1, committed=True)


@pytest.mark.parametrize(
    ("before", "work"),
    [
        (nothing, commit_all),
        (with_offsets, commit_all),
        (nothing, commit_all_in_transaction),
        (with_pending_offsets, commit_all_in_transaction),
        (with_pending_offsets, end_transaction),
        (with_offsets, delete_offsets),
        (with_offsets, delete_group),
    ],
)
def test_work_on_many_offsets_gives_way(
    before: Callable[[Groups], None], work: Callable[[Groups, Step], object]
) -> None:
    longest_ms = float("inf")
    for _ in range(ATTEMPTS):
        groups = Groups(partitions=1)
        before(groups)
        stretches = Stretches()
        work(groups, stretches.step)
        longest_ms = min(longest_ms, stretches.longest_ms())
        if longest_ms <= TURN_MS:
            break
    assert longest_ms <= TURN_MS


def test_the_tombstones_of_a_hundred_thousand_offsets_are_made_in_steps() -> None:
    commits = JoinedCommits(GROUP, [], {}, [])
    for number in range(INDEXES):
        partition = number % 10
        commits.add(f"t{number // 10}", partition, CommittedOffset(1, -1, "", 0, -1, TOPIC[1], 0))
    offsets = Offsets()
    offsets.replay_commits(commits, ReplayContext(INDEXES - 1, 0))
    longest_ms = float("inf")
    for _ in range(ATTEMPTS):
        stretches = Stretches()
        tombstones = offsets.tombstones(GROUP, stretches.step)
        longest_ms = min(longest_ms, stretches.longest_ms())
        if longest_ms <= SHORT_MS:
            break
    assert longest_ms <= SHORT_MS
    assert len(tombstones) == INDEXES


def many_indexes() -> list[OffsetFetchRequestTopic]:
    indexes = list(range(INDEXES))
    return [OffsetFetchRequestTopic(name=TOPIC[0], topic_id=TOPIC[1], partition_indexes=indexes)]


@pytest.mark.parametrize("topics", [None, many_indexes()], ids=["all", "named"])
def test_a_fetch_of_many_offsets_gives_way(topics: list[OffsetFetchRequestTopic] | None) -> None:
    groups = Groups()
    commit_all(groups, Stretches().step)
    longest_ms = float("inf")
    for _ in range(ATTEMPTS):
        stretches = Stretches()
        fetch = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        (answer,) = groups.coordinator.offsets.fetch(fetch, topics, step=stretches.step)
        longest_ms = min(longest_ms, stretches.longest_ms())
        assert len(answer.partitions) == (PARTITIONS if topics is None else INDEXES)
        if longest_ms <= SHORT_MS:
            break
    assert longest_ms <= SHORT_MS


def random_records(choose: random.Random) -> list[JournalRecord]:
    """Records of one batch: commits and tombstones of few partitions, in any order."""
    records = []
    for _ in range(choose.randrange(1, 12)):
        topic, partition = choose.choice("tu"), choose.randrange(4)
        key = OffsetCommitKey(group=choose.choice("gh"), topic=topic, partition=partition)
        value = OffsetCommitValue(
            offset=choose.randrange(1_000), metadata="", commit_timestamp=1, topic_id=TOPIC[1]
        )
        records.append(JournalRecord(value if choose.random() < 0.8 else None, 4, key))
    return records


@pytest.mark.parametrize("seed", range(30))
def test_joined_records_do_what_the_records_do_one_by_one(seed: int) -> None:
    choose = random.Random(seed)
    joined, one_by_one = GroupState(), GroupState()
    offset = 0
    for _ in range(60):
        producer_id = choose.choice((NO_PRODUCER_ID, 1, 2, 3))
        if choose.random() < 0.2:
            for state in (joined, one_by_one):
                state.end_transaction(producer_id, committed=offset % 2 == 0)
        records = random_records(choose)
        for record in records:
            one_by_one.replay(record, ReplayContext(offset, 0, producer_id))
            offset += 1
        replayed = offset - len(records)
        for each in joined_offsets(records, lambda: None):
            replayed += each.count
            joined.replay(each.record, ReplayContext(replayed - 1, 0, producer_id))
        assert state_snapshot(joined) == state_snapshot(one_by_one)
    for producer_id in (1, 2, 3):
        for state in (joined, one_by_one):
            state.end_transaction(producer_id, committed=True)
    assert state_snapshot(joined) == state_snapshot(one_by_one)
    assert not joined.offsets.pending("g")


# -- what happens meanwhile ------------------------------------------------------------------------


@pytest.mark.parametrize("are_named", [False, True])
def test_the_offsets_of_a_fetch_are_of_one_moment(are_named: bool) -> None:
    groups = Groups()
    commit_all(groups, Stretches().step, count=FEW)
    topics = many_indexes() if are_named else None

    def change() -> None:
        for partition in range(2 * FEW):
            groups.commit(7, partition=partition)

    fetch = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
    (answer,) = groups.coordinator.offsets.fetch(fetch, topics, step=Once(change).step)
    found = {
        each.partition_index: each.committed_offset
        for each in answer.partitions
        if each.committed_offset >= 0
    }
    assert found == dict.fromkeys(range(FEW), 1)
    assert len(committed(groups)) == 2 * FEW


def test_each_partition_of_a_commit_is_checked_in_a_step_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = Groups()
    (member,) = groups.stable_group()
    checked = [0]

    def check(*_partition: object) -> None:
        checked[-1] += 1

    monkeypatch.setattr(groups.group(), "check_commit", lambda _committer: check)
    commit_all(groups, lambda: checked.append(0), count=FEW, member_id=member, generation_id=1)
    assert max(checked) == 1
    assert sum(checked) == FEW


def test_a_commit_is_checked_again_when_the_member_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = Groups()
    (member,) = groups.stable_group()
    checked: list[int] = []

    def new_check(_committer: object) -> Callable[[str, bytes, int], None]:
        return lambda _topic, _topic_id, partition: checked.append(partition)

    monkeypatch.setattr(groups.group(), "check_commit", new_check)
    with pytest.raises(ApiError) as caught:
        commit_all(groups, lambda: None, count=FEW, member_id=member, generation_id=1)
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert checked == [*range(FEW)] * (1 + MAX_ATTEMPTS)
    assert committed(groups) == {}


def test_a_member_that_leaves_meanwhile_does_not_commit() -> None:
    groups = Groups()
    (member,) = groups.stable_group()
    leaving = Once(lambda: groups.leave(member))
    with pytest.raises(ApiError) as caught:
        commit_all(groups, leaving.step, count=FEW, member_id=member, generation_id=1)
    assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(groups.restarted()) == committed(groups) == {}


def test_a_shard_that_goes_offline_meanwhile_takes_no_commit() -> None:
    groups = Groups()
    offline = Once(lambda: groups.coordinator.partition_offline(0))
    with pytest.raises(ApiError) as caught:
        commit_all(groups, offline.step, count=FEW)
    assert caught.value.code is ErrorCode.NOT_COORDINATOR
    assert committed(groups.restarted()) == {}


@pytest.mark.parametrize("work", [commit_all, commit_all_in_transaction])
def test_a_topic_that_is_deleted_meanwhile_takes_no_commit(
    work: Callable[[Groups, Step], object],
) -> None:
    topic_ids = {TOPIC[1]}
    groups = Groups(topic_ids=topic_ids)

    def delete_topic() -> None:
        topic_ids.remove(TOPIC[1])
        groups.coordinator.retention.on_topics_deleted([TOPIC])

    with pytest.raises(ApiError) as caught:
        work(groups, Once(delete_topic).step)
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not groups.logs[0].stored


def test_a_transaction_is_verified_after_the_last_step() -> None:
    groups = Groups()
    stretches = Stretches()
    steps_before: list[int] = []

    def verify() -> None:
        steps_before.append(stretches.count)
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "it has ended")

    with pytest.raises(ApiError):
        commit_all_in_transaction(groups, stretches.step, verify)
    assert steps_before == [stretches.count]
    assert not groups.logs[0].stored


def test_an_offset_that_is_committed_meanwhile_is_deleted_with_the_group() -> None:
    groups = Groups()
    commit_all(groups, Stretches().step, count=FEW)
    committing = Once(lambda: groups.commit(7, partition=FEW))
    assert delete_group(groups, committing.step) == ErrorCode.NONE
    assert committed(groups) == committed(groups.restarted()) == {}


def test_a_group_that_changes_at_each_step_is_deleted_all_the_same() -> None:
    groups = Groups()
    commit_all(groups, Stretches().step, count=FEW)
    others = iter(range(FEW, 100 * FEW))
    assert delete_group(groups, lambda: groups.commit(7, partition=next(others))) == 0
    assert committed(groups) == committed(groups.restarted()) == {}


def test_a_group_that_a_member_joins_meanwhile_is_not_deleted() -> None:
    groups = Groups()
    commit_all(groups, Stretches().step, count=FEW)
    joining = Once(groups.stable_group)
    assert delete_group(groups, joining.step) == ErrorCode.NON_EMPTY_GROUP
    assert len(committed(groups)) == len(committed(groups.restarted())) == FEW


def test_a_session_is_extended_from_the_end_of_a_commit() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group()

    def pass_time() -> None:
        groups.loop.now_ms += SESSION_MS - 1

    commit_all(groups, Once(pass_time).step, count=FEW, member_id=member_id, generation_id=1)
    groups.advance(SESSION_MS - 1)
    assert list(groups.group().members) == [member_id]
    groups.advance(1)
    assert not groups.group().members
