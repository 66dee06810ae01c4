"""The coordinators' work is linear in the size of what a client sends."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from odradek.config.topic_config import TOPIC_KEYS
from odradek.coordinator.assignors.assignment import GroupSpec, MemberSpec
from odradek.coordinator.assignors.simple import SimpleAssignor
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.consumer_groups.reconciliation import partitions_by_topic
from odradek.coordinator.metadata.acl_changes import delete_acls
from odradek.coordinator.metadata.acls import ANY, AclFilter, PatternType
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
    ConfigRules,
    overrides_after,
)
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topics import Topics
from odradek.coordinator.share_partitions.aborted import AbortedFrom, without_aborted
from odradek.coordinator.share_partitions.acquisition import (
    AcquireCall,
    Acquired,
    FetchedBatch,
    acquire,
)
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    AcknowledgeType,
    acknowledge,
)
from odradek.coordinator.share_partitions.in_flight import DeliveryRules
from odradek.coordinator.share_partitions.share_partition import Limits, SharePartition
from odradek.coordinator.share_state.state import ShareState
from odradek.coordinator.streams_groups.configuration import configure
from odradek.coordinator.streams_groups.process_load import ProcessLoad, TaskId
from odradek.coordinator.streams_groups.tasks import task_set
from odradek.coordinator.streams_groups.topology import Topology, topology_value
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatTopicPartitions
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTaskIds,
    StreamsGroupHeartbeatTopology,
)
from odradek.protocol.records.cluster_metadata import TopicRecord
from tests.support.acl_sets import acls_of, entry
from tests.support.groups import classic_member
from tests.support.growth import Work, assert_linear
from tests.support.streams_members import internal, subtopology, topology

KEY = "leader.replication.throttled.replicas"
RULES = ConfigRules(keys=lambda _: TOPIC_KEYS, check=lambda *_: None)
TOPIC_ID = bytes(16)


# -- what members report ---------------------------------------------------------------------------


def owned_partitions(size: int) -> Work:
    """One topic in as many entries."""
    topics = [
        ConsumerGroupHeartbeatTopicPartitions(topic_id=TOPIC_ID, partitions=[index])
        for index in range(size)
    ]
    return lambda: partitions_by_topic(topics)


def owned_tasks(size: int) -> Work:
    """One subtopology in as many entries."""
    tasks = [
        StreamsGroupHeartbeatTaskIds(subtopology_id="0", partitions=[index])
        for index in range(size)
    ]
    return lambda: task_set(tasks)


# -- topologies ------------------------------------------------------------------------------------


def configured(sent: StreamsGroupHeartbeatTopology) -> Work:
    """Configure a topology that reads the topic "lines"."""
    stored = Topology(topology_value(sent))
    return lambda: configure(stored, {"lines": 3}.get)


def chain(size: int) -> list[StreamsGroupHeartbeatSubtopology]:
    """Subtopologies of which each reads what the one before writes."""
    return [
        subtopology("first", "lines", writes=["0"]),
        *(
            subtopology(f"{at:06}", reads=[internal(str(at))], writes=[str(at + 1)])
            for at in range(size)
        ),
        subtopology("last", reads=[internal(str(size))]),
    ]


def forward_chain(size: int) -> Work:
    return configured(topology(*chain(size)))


def backward_chain(size: int) -> Work:
    """Each pass of Kafka over the sinks decides only about one of them."""
    return configured(topology(*reversed(chain(size))))


def one_subtopology_backwards(size: int) -> Work:
    """A subtopology that writes many topics, after the one that reads all of them."""
    names = [str(at) for at in range(size)]
    writer = subtopology("0", "lines", writes=names)
    reader = subtopology("1", reads=list(map(internal, names)), writes=names)
    return configured(topology(reader, writer))


def copartition_groups(size: int) -> Work:
    """As many groups of one repartition topic each, of as many that have a fixed number."""
    reads = [internal(str(at), 3) for at in range(size)]
    joined = [((), (at,)) for at in range(size)]
    return configured(topology(subtopology("0", "lines", reads=reads, joined=joined)))


def one_copartition_group(size: int) -> Work:
    reads = [internal(str(at), 3) for at in range(size)]
    return configured(
        topology(subtopology("0", "lines", reads=reads, joined=[((0,), tuple(range(size)))])),
    )


def changelogs(size: int) -> Work:
    """Changelogs with settings, in as many subtopologies."""
    return configured(
        topology(
            *(
                subtopology(str(at), "lines", changelogs=[internal(f"c{at}", 0, {"a": "b"})])
                for at in range(size)
            )
        )
    )


def members_of_one_process(size: int) -> Work:
    """A process with as many members gets as many tasks."""

    def assign() -> None:
        process = ProcessLoad()
        for at in range(size):
            process.add_member(str(at))
        for at in range(size):
            process.add(str(at), TaskId("0", at), is_active=True)
            assert process.load

    return assign


# -- share groups ----------------------------------------------------------------------------------


class Partitions(NamedTuple):
    """A number of partitions for every topic."""

    count: int

    def partition_count(self, topic_id: bytes) -> int:  # all are alike
        return self.count


def shared_alike(size: int) -> Work:
    """As many partitions as members, which all subscribe to the same topic."""
    members = {
        str(at): MemberSpec(member_id=str(at), subscribed_topic_ids=frozenset({b"t"}))
        for at in range(size)
    }
    spec = GroupSpec(members=members, is_homogeneous=True)
    return lambda: SimpleAssignor().assign(spec, Partitions(size))


def shared_differently(size: int) -> Work:
    """Twenty members that subscribe to many topics and have targets, and one that does not."""
    topic_ids = frozenset(at.to_bytes(16, "big") for at in range(size))
    members = {
        str(at): MemberSpec(member_id=str(at), subscribed_topic_ids=topic_ids) for at in range(20)
    }
    spec = GroupSpec(members=members, is_homogeneous=False)
    targets = SimpleAssignor().assign(spec, Partitions(20))
    members = {
        member_id: replace(member, assignment=targets[member_id])
        for member_id, member in members.items()
    }
    spec = GroupSpec(members=members, is_homogeneous=False)
    return lambda: SimpleAssignor().assign(spec, Partitions(20))


def acquired_batch(size: int) -> tuple[SharePartition, list[FetchedBatch], list[Acquired]]:
    """A batch in flight of twice as many records, which the log has in batches of one record."""
    fetched = [
        FetchedBatch(at, at, producer_id=at % 2, is_transactional=True) for at in range(2 * size)
    ]
    partition = SharePartition(ShareState(), 0)
    call = AcquireCall("m", 2 * size, 10**9, has_record_limit=False, locked_until_ms=1)
    return partition, fetched, acquire(partition, call, Limits(5, 10**9), 0, fetched)


def acknowledged_one_by_one(size: int) -> Work:
    partition, _, _ = acquired_batch(size)
    wanted = [Acknowledgement(at, at, [AcknowledgeType.ACCEPT]) for at in range(2 * size)]
    return lambda: acknowledge(partition, AcknowledgeCall("m", DeliveryRules(5), None), wanted)


def aborted_records(size: int) -> Work:
    """Each second record is of an aborted transaction."""
    partition, fetched, acquired = acquired_batch(size)
    return lambda: without_aborted(partition, acquired, fetched, [AbortedFrom(1, 0)])


# -- topics, configurations and access control entries ---------------------------------------------


def altered_list(operation: AlterOperation) -> Callable[[int], Work]:
    """Append as many items to a list, or take them away."""

    def prepared(size: int) -> Work:
        items = ",".join(f"{at}:1" for at in range(size))
        others = ",".join(f"{at}:1" for at in range(size - 1, -1, -1))
        if operation is AlterOperation.APPEND:
            others = ",".join(f"{at}:2" for at in range(size))
        alteration = Alteration(
            resource=ConfigResource(ConfigResourceType.TOPIC, "t"),
            changes=[ConfigChange(KEY, operation, others)],
        )
        return lambda: overrides_after({KEY: items}, alteration, RULES)

    return prepared


def acl_filters(**given: int | str) -> Callable[[int], Work]:
    """As many filters as there are entries, each of which matches one entry."""

    def prepared(size: int) -> Work:
        names = [f"{at:06}" for at in range(size)]
        acls = acls_of(entry(principal=f"User:{name}", host=name, name=name) for name in names)
        unset = AclFilter(ANY, None, PatternType.ANY, None, None, ANY, ANY)
        filters = [
            unset._replace(**{field: str(value).format(name) if isinstance(value, str) else value
                              for field, value in given.items()})
            for name in names
        ]  # fmt: skip
        return lambda: delete_acls(acls, filters)

    return prepared


def colliding_names(size: int) -> Work:
    """As many names that differ only in dots and underscores. One request can create them."""
    names = [f"{at:016b}".replace("0", ".").replace("1", "_") for at in range(size)]
    topics = Topics()
    for at, name in enumerate(names):
        topics.replay_topic(TopicRecord(name=name, topic_id=at.to_bytes(16, "big")))
    return lambda: [topics.colliding_with(name) for name in names]


def members_that_leave(size: int) -> Work:
    """The first member, then the next, which leads the group by then."""
    group = ClassicGroup("g")
    for number in range(size):
        group.add(classic_member(f"{number}"))

    def leave() -> None:
        for number in range(size):
            group.remove(f"{number}")

    return leave


KINDS: dict[str, tuple[Callable[[int], Work], int]] = {
    "owned partitions": (owned_partitions, 2000),
    "owned tasks": (owned_tasks, 2000),
    # Three tasks for each, up to sixteen times: a topology may have 20,000.
    "a chain of subtopologies": (forward_chain, 400),
    "a chain backwards": (backward_chain, 400),
    "a writer after its reader": (one_subtopology_backwards, 1000),
    "co-partition groups": (copartition_groups, 500),
    "one co-partition group": (one_copartition_group, 1000),
    "changelogs": (changelogs, 400),
    "members of one process": (members_of_one_process, 500),
    "partitions that are shared alike": (shared_alike, 500),
    "topics that are shared differently": (shared_differently, 50),
    "acknowledged one by one": (acknowledged_one_by_one, 500),
    "aborted records": (aborted_records, 500),
    "colliding names": (colliding_names, 1000),
    "members that leave": (members_that_leave, 3000),
    "append to a list": (altered_list(AlterOperation.APPEND), 2000),
    "subtract from a list": (altered_list(AlterOperation.SUBTRACT), 2000),
    "acl filters by principal": (acl_filters(principal="User:{}"), 300),
    "acl filters by host": (acl_filters(host="{}"), 300),
    "acl filters by name": (acl_filters(name="{}"), 300),
    "acl filters by matching name": (
        acl_filters(name="{}", pattern_type=PatternType.MATCH.value),
        300,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_four_times_the_size_takes_four_times_as_long(kind: str) -> None:
    prepared, size = KINDS[kind]
    assert_linear(prepared, size)


def test_entries_of_the_same_topic_or_subtopology_are_united() -> None:
    one, other = bytes(16), bytes([1] * 16)
    topics = [
        ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in ((one, [1]), (other, [2]), (one, [3, 1]))
    ]
    assert partitions_by_topic(topics) == {one: {1, 3}, other: {2}}
    tasks = [
        StreamsGroupHeartbeatTaskIds(subtopology_id=name, partitions=partitions)
        for name, partitions in (("a", [1]), ("b", []), ("a", [3, 1]))
    ]
    assert task_set(tasks) == {"a": {1, 3}}
