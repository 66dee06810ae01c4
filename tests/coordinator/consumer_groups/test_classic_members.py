"""Members of a consumer group that use the classic protocol."""

from functools import partial

import pytest

from odradek.coordinator.any_group.group_settings import MigrationPolicy
from odradek.coordinator.consumer_groups.group import ConsumerState
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    encode_versioned,
)
from tests.support.both_lives import assert_log_agrees
from tests.support.classic_consumers import (
    ClassicConsumer,
    Consumer,
    Place,
    assigned_places,
    settle,
    subscription_bytes,
)
from tests.support.groups import GROUP, REBALANCE_MS, SESSION_MS
from tests.support.heartbeats import Heartbeats

STRANGER = ErrorCode.UNKNOWN_MEMBER_ID
REJOIN = ErrorCode.REBALANCE_IN_PROGRESS
INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.fixture
def beats() -> Heartbeats:
    beats = Heartbeats()
    beats.topic("t", 4)
    return beats


@pytest.fixture
def host(beats: Heartbeats) -> Consumer:
    """A member of the consumer protocol, which makes the group."""
    host = Consumer(beats, "host", "t")
    settle(beats, host)
    return host


def offers(*names: str, owned: set[Place] | None = None) -> dict[str, bytes]:
    return {name: subscription_bytes(["t"], owned or set()) for name in names}


def leave(beats: Heartbeats, *leaving: tuple[str, str | None]) -> list[int]:
    identities = [
        LeaveGroupMemberIdentity(member_id=member, group_instance_id=instance)
        for member, instance in leaving
    ]
    answer = beats.groups.coordinator.members.leave_group(GROUP, identities)
    assert answer.error_code == ErrorCode.NONE
    return [member.error_code for member in answer.members]


# -- join


def test_a_new_member_first_asks_for_its_id(beats: Heartbeats, host: Consumer) -> None:
    before = beats.batches
    answer = beats.groups.send_join(protocols=offers("range"))
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id
    assert beats.batches == before
    assert answer.member_id not in beats.group().members


@pytest.mark.parametrize(("version", "instance"), [(3, None), (9, "i")])
def test_older_and_static_members_get_theirs_at_once(
    beats: Heartbeats, host: Consumer, version: int, instance: str | None
) -> None:
    answer = beats.groups.send_join(protocols=offers("range"), version=version, instance=instance)
    assert answer.error_code == ErrorCode.NONE
    member = beats.member(answer.member_id)
    assert answer.generation_id == member.member_epoch == beats.group().epoch
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert (answer.leader, answer.members, answer.skip_assignment) == ("", [], False)
    assert member.state is MemberState.UNRELEASED_PARTITIONS


def test_members_of_both_protocols_share_and_the_log_knows_it(
    beats: Heartbeats, host: Consumer
) -> None:
    guests = [ClassicConsumer(beats, "t"), ClassicConsumer(beats, "t", cooperative=True)]
    members: list[Consumer | ClassicConsumer] = [host, *guests]
    settle(beats, *members)
    assert beats.group().state is ConsumerState.STABLE
    assert [len(member.reads) for member in members] in ([2, 1, 1], [1, 2, 1], [1, 1, 2])
    assert all(member.commit() is ErrorCode.NONE for member in members)
    assert_log_agrees(beats.groups)


@pytest.mark.parametrize(
    ("protocol_type", "names"),
    [("connect", ("range",)), ("", ("range",)), ("consumer", ())],
)
def test_a_member_with_another_protocol_type_or_without_protocols_cannot_join(
    beats: Heartbeats, host: Consumer, protocol_type: str, names: tuple[str, ...]
) -> None:
    answer = beats.groups.send_join("m", protocol_type=protocol_type, protocols=offers(*names))
    assert (answer.error_code, answer.member_id) == (INCONSISTENT, "")


def test_a_protocol_must_be_common_to_all_classic_members(
    beats: Heartbeats, host: Consumer
) -> None:
    join = beats.groups.send_join
    assert join("a", protocols=offers("x")).error_code == ErrorCode.NONE
    assert join("b", protocols=offers("y")).error_code == INCONSISTENT
    assert join("b", protocols=offers("y", "x")).protocol_name == "y"
    assert join("a", protocols=offers("y")).error_code == INCONSISTENT
    assert leave(beats, ("a", None)) == [0]
    assert join("b", protocols=offers("y")).error_code == ErrorCode.NONE


def test_a_subscription_that_cannot_be_decoded_is_an_error(
    beats: Heartbeats, host: Consumer
) -> None:
    before = beats.batches
    answer = beats.groups.send_join("m", protocols={"range": b"\0"})
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert beats.batches == before


def test_a_group_that_may_not_migrate_accepts_no_classic_member() -> None:
    beats = Heartbeats(migration_policy=MigrationPolicy.DISABLED)
    beats.topic("t", 1)
    beats.join("host", "t")
    answer = beats.groups.send_join("m", protocols=offers("range"))
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_members_count_towards_the_maximum_group_size() -> None:
    beats = Heartbeats(max_size=1)
    beats.topic("t", 1)
    beats.join("host", "t")
    answer = beats.groups.send_join("m", protocols=offers("range"))
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_join_that_cannot_be_written_changes_nothing(beats: Heartbeats, host: Consumer) -> None:
    beats.fail_next_append()
    answer = beats.groups.send_join("m", protocols=offers("range"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.NOT_COORDINATOR, "")
    assert list(beats.group().members) == ["host"]
    beats.advance(REBALANCE_MS)
    assert_log_agrees(beats.groups)


def test_a_classic_join_replaces_a_regular_expression_by_topic_names(beats: Heartbeats) -> None:
    beats.join("one", topics=None, regex="t.*", instance="i")
    beats.join("two", "t")
    beats.advance()
    back = ClassicConsumer(beats, "t", instance="i")
    back.poll()
    member = beats.member(back.member_id)
    assert (member.subscribed_topics, member.subscribed_regex) == ({"t"}, "")
    assert not beats.group().subscriptions.resolved_regexes
    assert_log_agrees(beats.groups)


# -- static members


def test_a_static_member_that_comes_back_without_its_id_is_replaced(
    beats: Heartbeats, host: Consumer
) -> None:
    first = ClassicConsumer(beats, "t", instance="i")
    settle(beats, host, first)
    epoch, assigned = beats.group().epoch, set(first.reads)
    back = ClassicConsumer(beats, "t", instance="i")
    settle(beats, back, host)
    assert (beats.group().epoch, back.reads) == (epoch, assigned)
    first.poll()
    assert first.last_error is ErrorCode.FENCED_INSTANCE_ID
    assert beats.group().static_member_ids == {"i": back.member_id}


def test_requests_with_a_wrong_member_or_instance_id_are_refused(
    beats: Heartbeats, host: Consumer
) -> None:
    static = ClassicConsumer(beats, "t", instance="i")
    settle(beats, host, static)
    epoch = static.generation
    groups = beats.groups
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat("other", epoch, instance="i") is fenced
    assert groups.heartbeat(static.member_id, epoch, instance="j") is STRANGER
    assert groups.heartbeat("other", epoch) is STRANGER
    assert groups.heartbeat("host", host.epoch) is STRANGER  # it speaks the other protocol
    assert groups.heartbeat(static.member_id, epoch - 1) is ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat(static.member_id, epoch) is ErrorCode.NONE
    assert groups.send_sync("other", epoch, instance="i").error_code == fenced
    assert groups.send_sync("host", host.epoch).error_code == STRANGER
    join = groups.send_join("other", instance="i", protocols=offers("range"))
    assert (join.error_code, join.member_id) == (fenced, "")
    join = groups.send_join("other", instance="j", protocols=offers("range"))
    assert join.error_code == STRANGER


# -- sync and heartbeat


def test_a_sync_names_the_protocol_of_the_join(beats: Heartbeats, host: Consumer) -> None:
    sync = beats.groups.send_sync
    epoch = beats.groups.send_join("m", protocols=offers("x", "y")).generation_id
    for kind, name in (("connect", "x"), ("consumer", "y")):
        answer = sync("m", epoch, protocol_type=kind, protocol_name=name)
        assert answer.error_code == INCONSISTENT
    assert sync("m", epoch, protocol_type=None).error_code == ErrorCode.NONE
    answer = sync("m", epoch, protocol_name="x")
    assert (answer.error_code, answer.protocol_name) == (ErrorCode.NONE, "x")
    assert assigned_places(answer.assignment) == set()  # the host has not given anything up yet


@pytest.mark.parametrize("version", [0, 1, 3])
def test_an_assignment_is_encoded_in_the_version_of_the_members_subscription(
    beats: Heartbeats, host: Consumer, version: int
) -> None:
    metadata = subscription_bytes(["t"], set(), version)
    epoch = beats.groups.send_join("m", protocols={"range": metadata}).generation_id
    answer = beats.groups.send_sync("m", epoch, protocol_name="range")
    assert answer.assignment[:2] == bytes([0, version])


def test_heartbeats_request_a_join_until_the_member_has_reached_its_target(
    beats: Heartbeats, host: Consumer
) -> None:
    groups = beats.groups

    def beat() -> ErrorCode:
        return groups.heartbeat("m", beats.member("m").member_epoch)

    def join(owned: set[Place]) -> set[Place]:
        epoch = groups.send_join("m", protocols=offers("x", owned=owned)).generation_id
        return assigned_places(groups.send_sync("m", epoch, protocol_name="x").assignment)

    assert join(set()) == set()
    assert beat() is ErrorCode.NONE  # it waits for what the host has
    host.poll()
    assert beat() is ErrorCode.NONE  # the host knows it, and has it still
    host.poll()
    assert beat() is REJOIN  # it is free now
    mine = join(set())
    assert len(mine) == 2
    assert beat() is ErrorCode.NONE
    beats.join("third", "t")
    epoch = beats.member("m").member_epoch
    assert beat() is REJOIN  # there is a new target
    assert groups.send_sync("m", epoch, protocol_name="x").error_code == REJOIN
    kept = join(mine)
    assert kept < mine
    assert beats.member("m").state is MemberState.UNREVOKED_PARTITIONS
    assert beat() is REJOIN  # until it has given up the rest
    assert join(kept) == kept
    assert beat() is ErrorCode.NONE


def test_all_entries_of_a_topic_count_in_what_a_member_owns(
    beats: Heartbeats, host: Consumer
) -> None:
    join = partial(beats.groups.send_join, "m")
    for _ in range(2):
        join(protocols=offers("x"))
        host.poll()
        host.poll()
    join(protocols=offers("x"))
    ((topic_id, owned),) = beats.member("m").assigned.items()
    beats.join("third", "t")
    kept = beats.group().targets["m"][topic_id]
    assert kept < owned.keys()
    entries = [
        ConsumerTopicPartitions(topic="t", partitions=[index])
        for index in (*(owned.keys() - kept), *kept)
    ]
    subscription = ConsumerProtocolSubscription(topics=["t"], owned_partitions=entries)
    join(protocols={"x": encode_versioned(subscription, 1)})
    assert beats.member("m").state is MemberState.UNREVOKED_PARTITIONS


def test_with_only_classic_members_the_first_join_computes_the_targets() -> None:
    beats = Heartbeats(migration_policy=MigrationPolicy.UPGRADE)
    beats.topic("t", 4)
    host, guest = Consumer(beats, "host", "t"), ClassicConsumer(beats, "t")
    settle(beats, host)
    settle(beats, host, guest)
    host.leave()
    guest.poll()
    assert guest.last_error is REJOIN
    settle(beats, guest)


def classic_throughout(*topics: str) -> tuple[Heartbeats, list[ClassicConsumer]]:
    """A consumer group that may not go back, and whose members are all classic."""
    beats = Heartbeats(migration_policy=MigrationPolicy.UPGRADE)
    beats.topic("t", 4)
    host = Consumer(beats, "host", "t")
    guests = [ClassicConsumer(beats, *topics) for _ in range(2)]
    settle(beats, host)
    settle(beats, host, *guests)
    host.leave()
    settle(beats, *guests)
    return beats, guests


def test_classic_members_detect_new_topics_and_partitions_when_they_are_alone() -> None:
    beats, guests = classic_throughout("t", "later")
    beats.grow("t", 6)
    guests[1].poll()
    assert guests[1].last_error is REJOIN
    settle(beats, *guests)
    beats.topic("later", 2)
    guests[0].poll()
    assert guests[0].last_error is REJOIN
    settle(beats, *guests)
    assert {("later", 0), ("later", 1)} <= guests[0].reads | guests[1].reads


def test_classic_members_ignore_changes_of_topics_they_do_not_subscribe_to() -> None:
    beats, guests = classic_throughout("t")
    beats.topic("other", 2)
    for guest in guests:
        guest.poll()
        assert guest.last_error is ErrorCode.NONE
    assert beats.group().topics_checked_offset == beats.groups.topics.last_change_offset


def test_a_member_of_the_consumer_protocol_detects_topic_changes_for_the_group() -> None:
    beats = Heartbeats()
    beats.topic("t", 4)
    host, guest = Consumer(beats, "host", "t"), ClassicConsumer(beats, "t")
    settle(beats, host)
    settle(beats, host, guest)
    beats.grow("t", 6)
    guest.poll()
    assert guest.last_error is ErrorCode.NONE
    host.poll()
    guest.poll()
    assert guest.last_error is REJOIN


# -- deadlines


def test_a_member_is_removed_after_its_own_session_timeout(
    beats: Heartbeats, host: Consumer
) -> None:
    guest = ClassicConsumer(beats, "t", session_ms=2 * SESSION_MS)
    settle(beats, host, guest)
    beats.advance(2 * SESSION_MS - 2_000)
    host.poll()
    assert guest.member_id in beats.group().members
    beats.advance(2_000)
    assert list(beats.group().members) == ["host"]


def test_a_member_that_does_not_rejoin_in_time_is_removed(
    beats: Heartbeats, host: Consumer
) -> None:
    guest = ClassicConsumer(beats, "t")
    settle(beats, host, guest)
    beats.join("third", "t")
    for _ in range(REBALANCE_MS // 5_000):
        assert beats.groups.heartbeat(guest.member_id, guest.generation) is REJOIN
        host.poll()
        beats.beat("third", beats.member("third").member_epoch)
        beats.advance(5_000)
    assert guest.member_id not in beats.group().members


def test_a_member_that_joins_and_does_not_sync_in_time_is_removed(
    beats: Heartbeats, host: Consumer
) -> None:
    epoch = beats.groups.send_join("m", protocols=offers("x")).generation_id
    for _ in range(REBALANCE_MS // 5_000):
        assert "m" in beats.group().members
        beats.groups.heartbeat("m", epoch)
        host.poll()
        beats.advance(5_000)
    assert list(beats.group().members) == ["host"]


def test_a_member_that_syncs_in_time_stays(beats: Heartbeats, host: Consumer) -> None:
    epoch = beats.groups.send_join("m", protocols=offers("x")).generation_id
    beats.groups.send_sync("m", epoch, protocol_name="x")
    for _ in range(2 * REBALANCE_MS // 5_000):
        beats.groups.heartbeat("m", epoch)
        host.poll()
        beats.advance(5_000)
        if beats.groups.heartbeat("m", epoch) is REJOIN:
            epoch = beats.groups.send_join("m", protocols=offers("x")).generation_id
            beats.groups.send_sync("m", epoch, protocol_name="x")
    assert "m" in beats.group().members


def test_after_a_restart_classic_members_have_a_session_again(
    beats: Heartbeats, host: Consumer
) -> None:
    guest = ClassicConsumer(beats, "t")
    settle(beats, host, guest)
    again = beats.restarted()
    assert again.groups.heartbeat(guest.member_id, guest.generation) is ErrorCode.NONE
    again.advance(SESSION_MS)
    assert list(again.group().members) == ["host"]


# -- leave


def test_a_leave_of_several_members_has_a_result_for_each(
    beats: Heartbeats, host: Consumer
) -> None:
    static = ClassicConsumer(beats, "t", instance="i")
    other = ClassicConsumer(beats, "t", instance="j")
    for name in ("a", "b"):
        beats.groups.send_join(name, protocols=offers("range"))
    for member in (static, other):
        member.poll()
    errors = leave(
        beats, ("a", None), ("a", None), ("stranger", None), ("x", "i"), ("", "nobody"), ("", "j")
    )
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert errors == [0, 0, STRANGER, fenced, STRANGER, 0]
    assert set(beats.group().members) == {"host", "b", static.member_id}


def test_a_member_of_the_consumer_protocol_may_be_removed_so_too(
    beats: Heartbeats, host: Consumer
) -> None:
    beats.join("other", "t")
    assert leave(beats, ("host", None)) == [0]
    assert list(beats.group().members) == ["other"]


def test_a_leave_that_cannot_be_written_is_answered_for_all(
    beats: Heartbeats, host: Consumer
) -> None:
    beats.groups.send_join("m", protocols=offers("range"))
    beats.fail_next_append()
    answer = beats.groups.leave("m")
    assert (answer.error_code, answer.members) == (ErrorCode.NOT_COORDINATOR, [])
    assert set(beats.group().members) == {"host", "m"}


def test_an_unknown_member_cannot_leave(beats: Heartbeats, host: Consumer) -> None:
    before = beats.batches
    assert leave(beats, ("stranger", None)) == [STRANGER]
    assert beats.batches == before


# -- commits


def test_a_classic_member_commits_at_its_epoch(beats: Heartbeats, host: Consumer) -> None:
    guest = ClassicConsumer(beats, "t")
    settle(beats, host, guest)
    assert guest.commit(3) is ErrorCode.NONE
    guest.generation += 1
    with pytest.raises(Exception, match="newer") as refusal:
        guest.commit(4)
    assert getattr(refusal.value, "code", None) is ErrorCode.ILLEGAL_GENERATION
