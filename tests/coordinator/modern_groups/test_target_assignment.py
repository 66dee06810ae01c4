"""The input of an assignor, and which of its targets are written."""

from collections.abc import Iterable
from typing import Any

from odradek.coordinator.assignors.assignment import Assignment, GroupSpec, TopicsView
from odradek.coordinator.consumer_groups.draft import ConsumerDraft
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.records import (
    regex_record,
    subscription_record,
    target_record,
)
from odradek.coordinator.consumer_groups.replay import replay
from odradek.coordinator.consumer_groups.subscriptions import ResolvedRegex
from odradek.coordinator.modern_groups.target_assignment import changed_targets, compute_targets
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now
from tests.support.consumer_members import IDS, REGEX, TOPICS

A, B, C = IDS
HALF, OTHER_HALF = {A: frozenset({0})}, {A: frozenset({1})}


class Topics:
    def partition_count(self, topic_id: bytes) -> int:
        return 2

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        return frozenset(TOPICS[name] for name in names if name in TOPICS)


class Told:
    """An assignor that returns given targets and records its input."""

    name = "told"

    def __init__(self, **targets: Assignment) -> None:
        self.targets = targets
        self.spec = GroupSpec(members={}, is_homogeneous=True)

    def assign(
        self, spec: GroupSpec, topics: TopicsView, step: Step = no_step
    ) -> dict[str, Assignment]:
        self.spec = spec
        return dict(self.targets)


def member(name: str, *topics: str, **words: Any) -> ConsumerMember:
    return ConsumerMember(member_id=name, subscribed_topics=frozenset(topics), **words)


def group_of(*records: JournalRecord) -> ConsumerGroup:
    groups = {"g": ConsumerGroup("g")}
    for record in records:
        replay(groups, record.key, record.value)
    return groups["g"]


def made(group: ConsumerGroup, updated: ConsumerMember, assignor: Told) -> dict[str, Assignment]:
    return compute_targets(
        ConsumerDraft(group, Now(0, 0)),
        updated,
        assignor,
        Topics(),
        previous_id=group.previous_id(updated),
        topics_of=group.subscriptions.topics_of,
        is_homogeneous=False,
    )


def test_only_changed_targets_are_written_and_first_targets_even_if_empty() -> None:
    group = group_of(
        *(subscription_record("g", member(name, "a")) for name in "mno"),
        target_record("g", "m", HALF),
        target_record("g", "n", {}),
    )
    targets = made(group, group.members["m"], Told(m={A: frozenset({0})}, n=OTHER_HALF))
    assert dict(changed_targets(group.targets, targets)) == {"n": OTHER_HALF, "o": {}}
    assert targets == {"m": HALF, "n": OTHER_HALF, "o": {}}


def test_the_assignor_sees_the_updated_member() -> None:
    group = group_of(subscription_record("g", member("m", "a")), target_record("g", "m", HALF))
    assignor = Told()
    made(group, member("m", "b", "not there"), assignor)
    spec = assignor.spec.members["m"]
    assert (spec.subscribed_topic_ids, spec.assignment) == ({B}, HALF)
    made(group, member("n", "c"), assignor)
    assert {name: one.subscribed_topic_ids for name, one in assignor.spec.members.items()} == {
        "m": {A},
        "n": {C},
    }
    assert not assignor.spec.is_homogeneous


def test_a_member_that_replaces_a_static_member_inherits_its_target() -> None:
    group = group_of(
        subscription_record("g", member("m", "a", instance_id="i")),
        subscription_record("g", member("n", "a")),
        target_record("g", "m", HALF),
    )
    assignor = Told(m2=HALF, n=OTHER_HALF)
    targets = made(group, member("m2", "a", instance_id="i"), assignor)
    assert set(assignor.spec.members) == {"m2", "n"}
    assert assignor.spec.members["m2"].assignment == HALF
    assert dict(changed_targets(group.targets, targets)) == {"m2": HALF, "n": OTHER_HALF}


def test_the_assignor_sees_the_last_resolution_of_expressions() -> None:
    resolved = ResolvedRegex(topics=frozenset("ab"), version=1, timestamp_ms=1)
    assignor = Told()
    group = group_of(
        subscription_record("g", member("m", "c", subscribed_regex=REGEX)),
        subscription_record("g", member("n", subscribed_regex="unresolved")),
        regex_record("g", REGEX, resolved),
    )
    made(group, group.members["m"], assignor)
    assert assignor.spec.members["m"].subscribed_topic_ids == {A, B, C}
    assert assignor.spec.members["n"].subscribed_topic_ids == frozenset()
