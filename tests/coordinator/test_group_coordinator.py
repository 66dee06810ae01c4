"""The async face: partitions, loading, parked replies, alarms, restarts."""

import asyncio
import logging
from typing import Any

import pytest

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.groups.group_coordinator import GroupCoordinator, ModernGroupParts, NewIds
from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.log import AppendOrigin
from tests.support.groups import SESSION_MS, AtOnce, Groups, NoShareStates, Waiting, subscription
from tests.support.memory_log import MemoryLog


def test_each_group_is_written_to_its_own_partition_and_found_there_again() -> None:
    groups = Groups(partitions=50)
    names = [f"group-{n}" for n in range(100)]
    for name in names:
        groups.commit(1, group_id=name)
    after = groups.restarted()
    for name in names:
        assert after.committed(group_id=name) == 1
        assert name in after.coordinator.shards.of(name).state.groups
    used = [log.partition for log in groups.logs if log.stored]
    assert used == sorted({partition_of(name, 50) for name in names})


def test_before_the_offsets_topic_exists_nobody_coordinates() -> None:
    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    not_coordinator = ErrorCode.NOT_COORDINATOR
    assert groups.send_join().error_code == not_coordinator
    assert groups.send_sync("m", 1).error_code == not_coordinator
    assert groups.heartbeat("m", 1) is not_coordinator
    assert groups.leave("m").error_code == not_coordinator
    with pytest.raises(ApiError) as caught:
        groups.commit(1)
    assert caught.value.code is not_coordinator
    assert list(groups.coordinator.admin.groups()) == []


def test_the_offsets_topic_is_made_when_it_is_first_asked_for() -> None:
    groups = Groups(partitions=3)
    groups.coordinator = groups.closed_coordinator()
    assert not groups.coordinator.shards.is_served("g")
    groups.open()
    assert groups.coordinator.shards.is_served("g")
    assert groups.join().generation_id == 1


def test_while_a_partition_loads_its_groups_say_so_and_take_heartbeats() -> None:
    groups = Groups()
    groups.coordinator = groups.closed_coordinator()
    groups.coordinator.shards.prepare(1)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert groups.send_join("m").error_code == loading
    assert groups.heartbeat("m", 1) is ErrorCode.NONE
    with pytest.raises(ApiError) as caught:
        groups.coordinator.admin.groups()
    assert caught.value.code is loading
    assert groups.coordinator.shards.is_served("g")


def test_a_partition_that_cannot_be_read_takes_only_its_own_groups_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    groups = Groups(partitions=2)
    names = {partition_of(name, 2): name for name in ("a", "b")}
    for name in names.values():
        groups.commit(1, group_id=name)
    broken = build_batch([Record(b"\x00\x02\x00\x09torn", None, 0)])
    groups.logs[0].append(bytes(broken), now_ms=0, origin=AppendOrigin.COORDINATOR)
    after = groups.restarted()
    assert after.committed(group_id=names[1]) == 1
    with pytest.raises(ApiError) as caught:
        after.committed(group_id=names[0])
    assert caught.value.code is ErrorCode.NOT_COORDINATOR
    assert not after.coordinator.shards.is_served(names[0])
    assert "__consumer_offsets-0" in caplog.text


def test_a_partition_whose_log_is_offline_has_no_coordinator() -> None:
    groups = Groups(partitions=2)
    groups.coordinator = groups.closed_coordinator()
    groups.coordinator.open_topic(groups.logs[:1], 2)  # type: ignore[arg-type] # a MemoryLog serves a journal
    served = {name: groups.coordinator.shards.is_served(name) for name in ("a", "b")}
    assert served == {name: partition_of(name, 2) == 0 for name in ("a", "b")}


def test_a_restart_gives_every_member_a_whole_session_to_be_heard_again() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    groups.advance(SESSION_MS - 1)
    after = groups.restarted()
    after.advance(SESSION_MS - 1)
    assert after.heartbeat(leader) is ErrorCode.NONE
    assert after.heartbeat(follower) is ErrorCode.NONE
    assert after.sync(follower).assignment == follower.encode()


def test_a_restart_forgets_a_rebalance_that_was_under_way() -> None:
    groups = Groups()
    leader, _ = groups.stable_group(2)
    groups.parked_join()
    groups.send_join(leader)
    after = groups.restarted()
    assert after.heartbeat(leader, 2) is ErrorCode.NONE
    assert len(after.group().members) == 2


def test_a_client_that_goes_away_only_takes_its_parked_answer_with_it() -> None:
    groups = Groups()
    (leader,) = groups.stable_group(1)
    gone, waiting = groups.parked_join()
    waiting.cancel()
    assert groups.join(leader).generation_id == 2
    assert gone in groups.group().members
    groups.send_sync(leader, assignments={leader: b"", gone: b""})
    groups.advance(SESSION_MS - 1)
    groups.heartbeat(leader)
    groups.advance(1)
    assert gone not in groups.group().members


def test_there_is_one_alarm_however_many_groups_there_are() -> None:
    groups = Groups()
    for number in range(100):
        groups.join(group_id=f"g{number}")
    groups.advance(5_000)
    for number in range(100):
        name = f"g{number}"
        (member_id,) = groups.group(name).members
        groups.heartbeat(member_id, group_id=name)
    assert len([alarm for alarm in groups.loop.alarms if not alarm.cancelled]) == 1
    groups.advance(SESSION_MS)
    left = [groups.group(group.group_id) for group in groups.coordinator.admin.groups()]
    assert all(not group.members for group in left)


def test_who_was_heard_from_before_an_alarm_that_rings_late_is_a_member() -> None:
    groups = Groups()
    alive, silent = groups.stable_group(2)
    groups.loop.arrived.append(lambda: groups.heartbeat(alive))
    groups.loop.now_ms += 3 * SESSION_MS  # nothing was done meanwhile
    groups.advance(0)
    assert set(groups.group().members) == {alive}, silent
    assert groups.heartbeat(alive) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.advance(SESSION_MS)
    assert not groups.group().members


def test_closing_sends_those_who_wait_to_another_coordinator() -> None:
    groups = Groups()
    (leader,) = groups.stable_group(1)
    newcomer, join = groups.parked_join()
    other = Groups()
    other.join()
    follower, _ = other.parked_join()
    other.send_join(other.group().leader_id)
    sync = other.send_sync(follower)
    for closing, waiting in ((groups, join), (other, sync)):
        closing.coordinator.close()
        assert waiting.response.error_code == ErrorCode.NOT_COORDINATOR
        closing.advance(0)
        assert not closing.loop.alarms, "a closed coordinator has nothing to do"
    assert join.response.member_id == newcomer
    assert groups.heartbeat(leader, 1) is ErrorCode.NOT_COORDINATOR


def test_without_its_topic_the_coordinator_stops_and_with_a_new_one_it_begins_anew() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group(1)
    groups.coordinator.close()
    assert groups.heartbeat(member_id, 1) is ErrorCode.NOT_COORDINATOR
    groups.logs = [MemoryLog("__consumer_offsets")]
    groups.open()
    assert groups.heartbeat(member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    groups.stable_group(1)
    groups.advance(SESSION_MS)
    assert not groups.group().members


def test_each_rebalance_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    groups = Groups()
    leader, follower = groups.stable_group(2)
    caplog.clear()
    groups.leave(follower)
    groups.join(leader)
    groups.sync(leader)
    (line,) = caplog.messages
    assert line.startswith("group g: generation 3 stable with 1 member,")
    assert follower in line
    caplog.clear()
    groups.leave(leader)
    assert caplog.messages == ["group g: generation 4 is empty"]


async def test_on_a_real_event_loop_a_parked_join_is_answered_when_its_time_comes() -> None:
    loop = asyncio.get_running_loop()
    coordinator = GroupCoordinator(
        GroupSettings(initial_rebalance_delay_ms=20),
        loop=loop,
        clock=lambda: Now(wall_ms=0, timer_ms=int(loop.time() * 1000)),
        after_arrivals=loop.call_soon,
        new_ids=NewIds(lambda: "uuid", lambda: "uuid"),
        topics=ClusterTopics(ClusterMetadata("cluster")),
        topic_ids=(),
        modern=ModernGroupParts(Groups().configs, AtOnce(), NoShareStates(), loop.call_soon),
    )
    coordinator.open_topic([MemoryLog("__consumer_offsets")], 1)  # type: ignore[list-item] # a MemoryLog serves a journal
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    parked: Any = coordinator.members.join_group(request, Caller("client", "/127.0.0.1", 3))
    assert isinstance(parked, asyncio.Future)
    async with asyncio.timeout(10):
        response = await parked
    assert (response.error_code, response.generation_id) == (ErrorCode.NONE, 1)
    coordinator.close()


def test_a_parked_reply_is_a_future_and_an_immediate_one_is_not() -> None:
    groups = Groups()
    (leader,) = groups.stable_group(1)
    assert not isinstance(groups.send_join(), Waiting)
    assert isinstance(groups.send_join(leader), Waiting)


def test_a_log_in_which_a_member_changes_its_mind_is_read_as_it_was_lived() -> None:
    groups = Groups()
    words: dict[str, Any] = {"instance": "i1", "session_ms": 20_000}
    first = groups.join(protocols={"range": subscription("a")}, **words).member_id
    groups.sync(first, assignments={first: b"1"}, instance="i1")
    groups.leave(first)
    groups.join(protocols={"sticky": subscription("b")}, **words)
    (again,) = groups.group().members
    groups.sync(again, assignments={again: b"2"}, instance="i1")
    words["session_ms"] = 30_000
    third = groups.join(protocols={"sticky": subscription("c")}, **words).member_id
    after = groups.restarted().group()
    for life in (groups.group(), after):
        assert life.protocol_name == "sticky"
        assert life.subscriptions.topics == {"c"}
        assert life.members[third].assignment == b"2"
        assert life.members[third].protocols == (("sticky", subscription("c")),)
