"""A consumer group's state, its subscriptions, and its predictions for a changed member."""

from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from odradek.coordinator.consumer_groups.group import ConsumerGroup, ConsumerState
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.records import (
    current_assignment_record,
    epoch_record,
    regex_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from odradek.coordinator.consumer_groups.replay import replay
from odradek.coordinator.consumer_groups.subscriptions import ResolvedRegex
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from tests.support.consumer_members import IDS, REGEX, TOPICS, all_subscribe_alike, members
from tests.support.lengths import by_length

RESOLVED = ResolvedRegex(topics=frozenset("ab"), version=1, timestamp_ms=5)
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
A, B, C = IDS


def group_of(*present: ConsumerMember, epoch: int = 5, assignment_epoch: int = 5) -> ConsumerGroup:
    groups: dict[str, ConsumerGroup] = {}
    records = [
        epoch_record("g", epoch, 0),
        target_epoch_record("g", assignment_epoch, 1),
        *(subscription_record("g", member) for member in present),
        *(current_assignment_record("g", member) for member in present),
    ]
    if any(member.subscribed_regex for member in present):
        records.append(regex_record("g", REGEX, RESOLVED))
    for record in records:
        replay(groups, record.key, record.value)
    return groups["g"]


def member(name: str, topics: str = "a", **words: object) -> ConsumerMember:
    words.setdefault("member_epoch", 5)
    return ConsumerMember(member_id=name, subscribed_topics=frozenset(topics), **words)  # type: ignore[arg-type] # by name


def classic(name: str, *protocols: str) -> ConsumerMember:
    supported = [ClassicProtocol(name=one, metadata=b"") for one in protocols]
    return member(name, classic=ClassicMemberMetadata(supported_protocols=supported))


def test_the_state_follows_from_the_epochs() -> None:
    assert ConsumerGroup("g").state is ConsumerState.EMPTY
    assert group_of(member("m")).state is ConsumerState.STABLE
    assert group_of(member("m"), epoch=6).state is ConsumerState.ASSIGNING
    assert group_of(member("m"), member("n", member_epoch=4)).state is ConsumerState.RECONCILING
    assert group_of(member("m", state=UNREVOKED)).state is ConsumerState.RECONCILING
    assert group_of(member("m", member_epoch=-2)).state is ConsumerState.RECONCILING


def test_a_subscription_is_the_same_for_all_by_the_same_names_or_by_one_expression() -> None:
    def alike(*present: ConsumerMember) -> bool:
        return all_subscribe_alike(group_of(*present))

    assert alike(member("m", "ab"), member("n", "ab"))
    assert not alike(member("m", "ab"), member("n", "a"))
    assert alike(member("m", "", subscribed_regex=REGEX), member("n", "", subscribed_regex=REGEX))
    assert not alike(member("m", "", subscribed_regex=REGEX), member("n", ""))
    assert not alike(member("m", "", subscribed_regex=REGEX), member("n", "", subscribed_regex="x"))
    assert not alike(member("m", "c", subscribed_regex=REGEX))


@settings(max_examples=by_length(15, 2_000), deadline=None)
@given(present=st.lists(members, max_size=4, unique_by=lambda one: one.member_id), new=members)
def test_the_predicted_subscriptions_equal_those_after_the_change(
    present: list[ConsumerMember], new: ConsumerMember
) -> None:
    instances = [one.instance_id for one in present if one.instance_id is not None]
    if len(set(instances)) < len(instances) or new.instance_id in instances:
        return
    before = group_of(*present)
    old = before.member_or_new(new.member_id)
    topics, alike = before.subscriptions.topics_if(old, new), before.is_homogeneous_if(old, new)
    regexes = before.subscriptions.regexes_if(old, new)
    votes = [(one.server_assignor or "") for one in present if one.member_id != new.member_id]
    assignor = before.preferred_assignor_if(old, new)
    after = group_of(*(one for one in present if one.member_id != new.member_id), new)
    if bool(before.subscriptions.resolved_regexes) == bool(after.subscriptions.resolved_regexes):
        assert topics == after.subscriptions.topics
        assert alike == all_subscribe_alike(after)
    assert regexes == after.subscriptions.regex_subscribers
    votes.append(new.server_assignor or "")
    if votes.count("uniform") != votes.count("range"):
        assert assignor == after.preferred_assignor


def test_the_topics_of_an_expression_are_removed_with_its_last_subscriber() -> None:
    one = member("m", "c", subscribed_regex=REGEX)
    other = member("n", "", subscribed_regex=REGEX)
    left = replace(one, subscribed_regex="")
    assert set(group_of(one, other).subscriptions.topics_if(one, left)) == {"a", "b", "c"}
    alone = group_of(one)
    assert set(alone.subscriptions.topics_if(one, left)) == {"c"}
    assert set(alone.subscriptions.topics_without([one])) == {"a", "b"}
    assert set(alone.subscriptions.topics_without([one], regexes=[REGEX])) == set()
    assert set(alone.subscriptions.topics) == set(TOPICS)
    assert alone.subscriptions.topics_of(one) == frozenset("abc")
    assert (alone.subscriptions.regexes_refreshed_ms, alone.subscriptions.regexes_version) == (5, 1)


def test_a_replacement_of_a_static_member_does_not_add_to_the_member_count() -> None:
    holder = member("m", "a", instance_id="i")
    group = group_of(holder, member("n", "a"))
    newcomer = replace(holder, member_id="m2")
    assert group.is_homogeneous_if(holder, newcomer)
    assert not group.is_homogeneous_if(group.member_or_new("x"), member("x", "ab"))
    assert group.static_member("i") == holder
    assert group.static_member("j") is None
    assert group.static_member(None) is None


def test_the_assignor_with_most_votes_is_preferred_and_uniform_among_equals() -> None:
    wants = [member(str(n), server_assignor=name) for n, name in enumerate(["range", "uniform"])]
    assert group_of(member("m")).preferred_assignor is None
    assert group_of(*wants).preferred_assignor == "uniform"
    assert group_of(*wants, member("x", server_assignor="range")).preferred_assignor == "range"


def test_the_assignor_of_a_change_is_that_of_the_changed_group() -> None:
    group = group_of(member("m", server_assignor="range"))
    new = group.member_or_new("n")
    changed = replace(new, server_assignor="uniform")
    later = group_of(member("m", server_assignor="range"), changed)
    assert group.preferred_assignor_if(new, changed) == later.preferred_assignor == "uniform"


def test_a_members_target_is_that_of_the_holder_of_its_instance_id() -> None:
    group = group_of(member("m", instance_id="i"))
    record = target_record("g", "m", {A: frozenset({1})})
    replay({"g": group}, record.key, record.value)
    assert group.target("m") == {A: {1}}
    assert group.target("new", "i") == {A: {1}}
    assert group.target("new") == {}
    assert group.target("m", "j") == {}


def test_a_member_waits_only_while_others_own_partitions_of_its_target() -> None:
    waiting = member("m", state=MemberState.UNRELEASED_PARTITIONS)
    shall = target_record("g", "m", {A: frozenset({0})})
    for holder, waits in (({A: {0: 5}}, True), ({A: {1: 5}}, False)):
        group = group_of(waiting, member("n", pending_revocation=holder, state=UNREVOKED))
        replay({"g": group}, shall.key, shall.value)
        assert group.waits_for_release(waiting) is waits
    assert not group.waits_for_release(member("n"))


def test_a_classic_protocol_must_be_supported_by_all_classic_members() -> None:
    group = group_of(classic("m", "range", "sticky"), classic("n", "sticky"), member("new"))
    assert group.supports_classic_protocols("consumer", ["sticky"])
    assert not group.supports_classic_protocols("consumer", ["range"])
    assert not group.supports_classic_protocols("connect", ["sticky"])
    assert ConsumerGroup("g").supports_classic_protocols("consumer", ["any"])
    assert not ConsumerGroup("g").supports_classic_protocols("consumer", [])
    assert group.only_classic_without([group.member("new")])
    assert not group.only_classic_without([group.member("m")])
    assert group.only_classic_without([group.member("m"), group.member("new")])


def test_a_classic_protocol_that_a_member_names_twice_counts_once() -> None:
    group = group_of(classic("m", "range", "range"), classic("n", "range", "sticky"))
    assert group.supports_classic_protocols("consumer", ["range"])
    assert not group.supports_classic_protocols("consumer", ["sticky"])


def test_a_member_id_that_is_not_in_the_group_is_unknown() -> None:
    with pytest.raises(ApiError) as caught:
        ConsumerGroup("g").member("m")
    assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert ConsumerGroup("g").member_or_new("m") == ConsumerMember(member_id="m")


def test_a_partition_with_two_owners_is_reported_and_belongs_to_the_newer_epoch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    older = member("m", member_epoch=4, assigned={A: {0: 4}})
    group = group_of(member("n", assigned={A: {0: 5}}), older)
    assert "two owners" in caplog.text
    assert group.ownership.epoch(A, 0) == 5


def test_topics_of_members_that_leave_are_counted_in_steps() -> None:
    leaving = [member("m", "abc"), member("n", "abc", subscribed_regex=REGEX)]
    subscriptions = group_of(*leaving).subscriptions
    steps = count()
    found = subscriptions.topics_without(leaving, partial(next, steps), regexes=[REGEX])
    assert not found
    assert next(steps) == 2 * len("abc") + len(RESOLVED.topics)


def test_topics_of_an_expression_that_are_the_same_are_not_counted_again() -> None:
    subscriptions = group_of(member("m", "", subscribed_regex=REGEX)).subscriptions
    steps = count()
    resolved = {REGEX: replace(RESOLVED, topics=frozenset("bcd"))}
    found = subscriptions.topics_if_resolved(resolved, partial(next, steps))
    assert set(found) == set("bcd")
    assert next(steps) == len("a") + len("cd")
    subscriptions.replace_regex(REGEX, resolved[REGEX])
    assert subscriptions.topics == found
