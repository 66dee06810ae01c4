"""One reconciliation step of a member: each case."""

import pytest

from odradek.coordinator.consumer_groups.member import NOTHING, ConsumerMember
from odradek.coordinator.consumer_groups.reconciliation import partitions_by_topic, reconcile
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatTopicPartitions,
)
from tests.support.consumer_members import REGEX, TOPICS
from tests.support.kafka_reconciliation import Step

A, B, C = TOPICS.values()
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS
UNKNOWN = MemberState.UNKNOWN


def member(
    state: MemberState = STABLE,
    epoch: int = 5,
    assigned: dict[bytes, dict[int, int]] | None = None,
    pending: dict[bytes, dict[int, int]] | None = None,
    topics: str = "abc",
    regex: str = "",
) -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        subscribed_topics=frozenset(topics),
        subscribed_regex=regex,
        assigned=assigned or {},
        pending_revocation=pending or {},
    )


def target(*pairs: tuple[bytes, int]) -> dict[bytes, frozenset[int]]:
    made: dict[bytes, frozenset[int]] = {}
    for topic_id, partition in pairs:
        made[topic_id] = made.get(topic_id, frozenset()) | {partition}
    return made


def after(
    start: ConsumerMember, step_target: dict[bytes, frozenset[int]], **words: object
) -> ConsumerMember:
    words.setdefault("target_epoch", 6)
    words.setdefault("names", TOPICS)
    step = Step(member=start, target=step_target, **words)  # type: ignore[arg-type] # by name
    return reconcile(start, step.inputs())


def shown(found: ConsumerMember) -> tuple[MemberState, int, int, object, object]:
    return (
        found.state,
        found.member_epoch,
        found.previous_member_epoch,
        found.assigned,
        found.pending_revocation,
    )


def test_a_stable_member_at_its_target_is_returned_unchanged() -> None:
    start = member(assigned={A: {0: 2}})
    assert after(start, target((A, 1)), target_epoch=5) is start


def test_a_new_member_gets_what_is_free_and_is_stable() -> None:
    found = after(member(epoch=0), target((A, 0), (B, 1)))
    assert shown(found) == (STABLE, 6, 0, {A: {0: 6}, B: {1: 6}}, NOTHING)


def test_partitions_that_a_member_keeps_keep_their_epoch() -> None:
    found = after(member(assigned={A: {0: 2, 1: 3}}), target((A, 0), (A, 1), (A, 2)))
    assert shown(found) == (STABLE, 6, 5, {A: {0: 2, 1: 3, 2: 6}}, NOTHING)


def test_a_member_gives_up_first_and_stays_at_its_epoch() -> None:
    found = after(member(assigned={A: {0: 2, 1: 2}}), target((A, 1), (B, 0)))
    assert shown(found) == (UNREVOKED, 5, 5, {A: {1: 2}}, {A: {0: 2}})


def test_a_member_that_has_given_up_its_partitions_advances_at_once() -> None:
    start = member(assigned={A: {0: 2, 1: 2}})
    found = after(start, target((A, 1), (B, 0)), owned=target((A, 1)))
    assert shown(found) == (STABLE, 6, 5, {A: {1: 2}, B: {0: 6}}, NOTHING)


@pytest.mark.parametrize("owned", [None, target((A, 0)), target((B, 2), (A, 0))])
def test_a_member_that_has_not_given_up_its_partitions_is_unchanged(
    owned: dict[bytes, frozenset[int]] | None,
) -> None:
    start = member(UNREVOKED, assigned={A: {1: 2}}, pending={A: {0: 2}})
    assert after(start, target((A, 1)), owned=owned) is start


def test_after_giving_up_partitions_a_member_advances_to_the_newest_target() -> None:
    start = member(UNREVOKED, assigned={A: {1: 2}}, pending={A: {0: 2}})
    found = after(start, target((C, 3)), target_epoch=9, owned=target((A, 1)))
    assert shown(found) == (UNREVOKED, 5, 5, {}, {A: {1: 2}})
    found = after(start, target((A, 1), (C, 3)), target_epoch=9, owned=target((A, 1)))
    assert shown(found) == (STABLE, 9, 5, {A: {1: 2}, C: {3: 9}}, NOTHING)


def test_a_partition_to_give_up_may_be_granted_again_with_a_new_epoch() -> None:
    start = member(UNREVOKED, assigned={}, pending={A: {0: 2}})
    found = after(start, target((A, 0)), owned={}, owners={A: {0: 5}})
    assert shown(found) == (STABLE, 6, 5, {A: {0: 6}}, NOTHING)


def test_a_member_waits_at_the_new_epoch_for_partitions_of_others() -> None:
    start = member(assigned={A: {0: 2}})
    found = after(start, target((A, 0), (A, 1), (B, 0)), owners={A: {0: 5, 1: 4}})
    assert shown(found) == (UNRELEASED, 6, 5, {A: {0: 2}, B: {0: 6}}, NOTHING)
    still = after(found, target((A, 0), (A, 1), (B, 0)), owners={A: {0: 6, 1: 4}, B: {0: 6}})
    assert shown(still) == (UNRELEASED, 6, 6, {A: {0: 2}, B: {0: 6}}, NOTHING)
    free = after(found, target((A, 0), (A, 1), (B, 0)), owners={A: {0: 6}, B: {0: 6}})
    assert shown(free) == (STABLE, 6, 6, {A: {0: 2, 1: 6}, B: {0: 6}}, NOTHING)


def test_partitions_of_a_static_member_that_left_temporarily_are_not_free() -> None:
    found = after(member(epoch=0), target((A, 0)), owners={A: {0: -2}})
    assert shown(found) == (UNRELEASED, 6, 0, {}, NOTHING)


def test_a_member_that_waits_may_have_to_give_up_something_else() -> None:
    start = member(UNRELEASED, epoch=6, assigned={A: {0: 2}})
    found = after(start, target((A, 1)), target_epoch=7, owners={A: {0: 6, 1: 4}})
    assert shown(found) == (UNREVOKED, 6, 6, {}, {A: {0: 2}})


def test_topics_no_longer_subscribed_to_are_not_granted() -> None:
    found = after(member(epoch=0, topics="b"), target((A, 0), (B, 0)))
    assert shown(found) == (STABLE, 6, 0, {B: {0: 6}}, NOTHING)


def test_an_unsubscribed_topic_is_revoked_before_a_new_target_exists() -> None:
    start = member(topics="b", assigned={A: {0: 2}, B: {0: 2}})
    found = after(start, target((A, 0), (B, 0)), target_epoch=5, changed=True)
    assert shown(found) == (UNREVOKED, 5, 5, {B: {0: 2}}, {A: {0: 2}})
    unheard = after(start, target((A, 0), (B, 0)), target_epoch=5)
    assert unheard is start


def test_leaving_a_topic_that_it_has_given_up_already_leaves_the_member_stable() -> None:
    start = member(topics="b", assigned={A: {0: 2}, B: {0: 2}})
    found = after(start, target((A, 0), (B, 0)), target_epoch=5, changed=True, owned=target((B, 0)))
    assert shown(found) == (STABLE, 5, 5, {B: {0: 2}}, NOTHING)


def test_leaving_more_topics_while_giving_up_adds_to_what_must_go() -> None:
    start = member(UNREVOKED, topics="c", assigned={A: {1: 3}, C: {0: 2}}, pending={A: {0: 2}})
    found = after(start, target((C, 0)), changed=True)
    assert shown(found) == (UNREVOKED, 5, 5, {C: {0: 2}}, {A: {0: 2, 1: 3}})
    assert after(start, target((C, 0))) is start


def test_leaving_every_topic_gives_up_everything() -> None:
    start = member(topics="", assigned={A: {0: 2}, B: {0: 2}})
    found = after(start, target((A, 0), (B, 0)), target_epoch=5, changed=True)
    assert shown(found) == (UNREVOKED, 5, 5, {}, {A: {0: 2}, B: {0: 2}})


def test_a_changed_subscription_that_still_covers_everything_changes_nothing() -> None:
    start = member(topics="ab", assigned={A: {0: 2}})
    assert after(start, target((A, 0)), target_epoch=5, changed=True) is start


def test_a_regular_expression_has_the_topics_of_its_last_resolution() -> None:
    start = member(epoch=0, topics="", regex=REGEX)
    everything = target((A, 0), (B, 0), (C, 0))
    assert after(start, everything).assigned == {}
    resolved = {REGEX: frozenset("ab")}
    assert after(start, everything, regexes=resolved).assigned == {A: {0: 6}, B: {0: 6}}
    both = member(epoch=0, topics="c", regex=REGEX)
    assert set(after(both, everything, regexes=resolved).assigned) == {A, B, C}


def test_a_member_in_a_state_of_a_newer_kafka_must_rejoin_without_partitions() -> None:
    start = member(UNKNOWN, assigned={A: {0: 2}})
    for owned in (None, target((A, 0))):
        with pytest.raises(ApiError) as caught:
            after(start, target((A, 0), (B, 0)), owned=owned)
        assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    found = after(start, target((A, 0), (B, 0)), owned={})
    assert shown(found) == (STABLE, 6, 5, {A: {0: 2}, B: {0: 6}}, NOTHING)


def test_topics_that_a_heartbeat_names_twice_are_merged() -> None:
    named = [
        ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in ((A, [0]), (B, [1, 1]), (A, [2]))
    ]
    assert partitions_by_topic(named) == {A: {0, 2}, B: {1}}
    assert partitions_by_topic([]) == {}
    assert partitions_by_topic(None) is None
