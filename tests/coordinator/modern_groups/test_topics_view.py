"""The cluster's topics as groups see them."""

from functools import partial
from itertools import count

from msgspec.structs import replace

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic, create_partitions
from odradek.coordinator.modern_groups.topic_hash import NO_HASH, group_hash, topic_hash
from odradek.coordinator.modern_groups.topics_view import (
    MAX_REMEMBERED_CHANGES,
    UNKNOWN,
    ClusterTopics,
)
from odradek.coordinator.runtime.outcome import Outcome
from odradek.protocol.records.cluster_metadata import (
    ConfigRecord,
    PartitionChangeRecord,
)
from odradek.protocol.schema import Message
from tests.support.metadata import NODE, Metadata


class Seen:
    """A cluster's metadata, and the groups' view of it."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.view = ClusterTopics(self.metadata.state)

    def create(self, name: str, partitions: int = 2) -> bytes:
        """The new topic's id."""
        self.metadata.create(NewTopic(name=name, partition_count=partitions))
        return self.metadata.state.topics[name].id

    def write(self, *messages: Message) -> None:
        records = tuple(map(self.metadata.state.features.versioned, messages))
        self.metadata.commit(Outcome(reply=None, records=records))

    def add_partitions(self, name: str, count: int) -> None:
        wish = MorePartitions(name=name, count=count)
        self.metadata.commit(create_partitions(self.metadata.state, [wish], self.metadata.rules))

    def put_into_rack(self, rack: str | None, node_id: int = NODE) -> None:
        registration = self.metadata.state.brokers[NODE]
        epoch = self.metadata.log.log_end_offset
        self.write(replace(registration, broker_id=node_id, broker_epoch=epoch, rack=rack))


def test_a_topic_is_found_by_name_and_by_id() -> None:
    seen = Seen()
    first, second = seen.create("a"), seen.create("b")
    view = seen.view
    assert (view.id_of("a"), view.name_of(second)) == (first, "b")
    assert (view.id_of("c"), view.name_of(bytes(16))) == (None, None)
    assert view.ids_of(["b", "a", "c"]) == {first, second}


def test_partitions_are_counted_of_topics_that_exist() -> None:
    seen = Seen()
    topic_id = seen.create("a", 3)
    assert seen.view.partition_count(topic_id) == 3
    assert seen.view.partition_count(bytes(16)) == UNKNOWN
    seen.add_partitions("a", 5)
    assert seen.view.partition_count(topic_id) == 5
    seen.metadata.delete("a")
    assert seen.view.partition_count(topic_id) == UNKNOWN


def test_names_come_in_order_and_follow_what_is_created_and_deleted() -> None:
    seen = Seen()
    for name in ("b", "__consumer_offsets", "a"):
        seen.create(name)
    assert seen.view.sorted_names() == ("__consumer_offsets", "a", "b")
    assert seen.view.sorted_names() is seen.view.sorted_names()
    before = seen.view.sorted_names()
    seen.create("aa")
    seen.metadata.delete("b")
    assert seen.view.sorted_names() == ("__consumer_offsets", "a", "aa")
    assert before == ("__consumer_offsets", "a", "b")  # a tuple already handed out does not change


def test_the_offsets_show_which_kind_of_change_there_was() -> None:
    seen = Seen()
    view = seen.view
    start = view.version
    assert (view.last_creation_offset, view.last_change_offset) == (start, start)

    topic_id = seen.create("a")
    created = view.last_creation_offset
    assert start < created <= view.last_change_offset <= view.version

    seen.add_partitions("a", 3)
    assert view.last_creation_offset == created
    grown = view.last_change_offset
    assert created < grown == view.version

    seen.write(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=NODE, isr=[NODE]))
    seen.write(
        ConfigRecord(resource_type=ConfigResourceType.TOPIC, resource_name="a", name="x", value="1")
    )
    assert (view.last_creation_offset, view.last_change_offset) == (created, grown)
    assert view.version == grown + 2

    seen.metadata.delete("a")
    assert view.last_creation_offset == created
    assert view.last_change_offset > grown


def test_a_change_is_of_the_topics_that_have_changed() -> None:
    seen = Seen()
    view = seen.view
    for name in ("a", "b"):
        seen.create(name)
    since = view.last_change_offset
    assert view.may_have_changed(["a"], None)  # not checked yet
    assert not view.may_have_changed(["a", "b", "missing"], since)
    seen.add_partitions("a", 3)
    assert view.may_have_changed(["a", "b"], since)
    assert not view.may_have_changed(["b"], since)
    assert not view.may_have_changed(["a"], view.last_change_offset)
    since = view.last_change_offset
    seen.metadata.delete("b")
    seen.create("b")
    assert view.may_have_changed(["b"], since)


def test_changes_that_are_no_longer_remembered_count_for_every_topic() -> None:
    seen = Seen()
    view = seen.view
    seen.create("a")
    since = view.last_change_offset
    for number in range(MAX_REMEMBERED_CHANGES - 1):
        seen.create(f"new-{number}", 1)
    assert not view.may_have_changed(["a"], since)
    long_ago, since = since, view.last_change_offset
    seen.create("one-more", 1)
    assert view.may_have_changed(["a"], long_ago)
    assert not view.may_have_changed(["a"], since)


def test_after_a_restart_all_topics_count_as_changed() -> None:
    seen = Seen()
    seen.create("a")
    view = ClusterTopics(seen.metadata.restarted().state)
    assert view.last_creation_offset == view.last_change_offset == view.version == seen.view.version


def test_a_topics_hash_is_of_what_the_topic_is_now() -> None:
    seen = Seen()
    topic_id = seen.create("a", 2)

    def is_of(*racks: tuple[str, ...]) -> bool:
        expected = group_hash({"a": topic_hash(topic_id, "a", racks)})
        return seen.view.group_hash(["a"]) == expected

    assert is_of((), ())
    seen.put_into_rack("r1")
    assert is_of(("r1",), ("r1",))
    seen.add_partitions("a", 3)
    assert is_of(("r1",), ("r1",), ("r1",))

    # Kafka names a rack once for each replica.
    seen.put_into_rack("r1", node_id=NODE + 1)
    replicas = [NODE, NODE + 1, NODE + 2]  # of the last, nothing is known
    seen.write(PartitionChangeRecord(partition_id=0, topic_id=topic_id, replicas=replicas))
    assert is_of(("r1", "r1"), ("r1",), ("r1",))

    seen.metadata.delete("a")
    assert seen.view.group_hash(["a"]) == NO_HASH
    topic_id = seen.create("a", 2)
    assert is_of(("r1",), ("r1",))


def test_a_groups_hash_is_of_those_of_its_topics_that_exist() -> None:
    seen = Seen()
    hashes = {name: topic_hash(seen.create(name), name, [(), ()]) for name in ("a", "b")}
    assert seen.view.group_hash(["b", "missing", "a"]) == group_hash(hashes)
    assert seen.view.group_hash(["missing"]) == NO_HASH
    before = seen.view.group_hash(["a", "missing"])
    seen.create("missing")
    assert seen.view.group_hash(["a", "missing"]) != before


def test_a_hash_is_made_in_steps_of_a_topic_and_of_a_partition() -> None:
    seen = Seen()
    seen.create("a", 40)
    for name in ("b", "c"):
        seen.create(name, 1)
    steps = count()
    found = seen.view.group_hash(["a", "b", "c"], partial(next, steps))
    assert next(steps) > 40 + 3
    assert found == seen.view.group_hash(["a", "b", "c"])
    again = count()
    seen.view.group_hash(["a", "b", "c"], partial(next, again))
    assert 6 <= next(again) < 10, "the hashes of the topics are kept"


def test_a_hash_of_a_topic_that_changes_in_a_step_is_not_kept() -> None:
    seen = Seen()
    topic_id = seen.create("a", 2)
    steps = count()

    def change_at_the_last_partition() -> None:
        if next(steps) == 2:
            seen.add_partitions("a", 3)

    seen.view.group_hash(["a"], change_at_the_last_partition)
    expected = group_hash({"a": topic_hash(topic_id, "a", [(), (), ()])})
    assert seen.view.group_hash(["a"]) == expected


def test_a_hash_of_a_topic_is_not_kept_if_a_rack_changes_in_a_step() -> None:
    seen = Seen()
    topic_id = seen.create("a", 2)
    steps = count()

    def change_at_the_last_partition() -> None:
        if next(steps) == 2:
            seen.put_into_rack("r1")
            assert seen.view.group_hash(["other"]) == NO_HASH  # for another group

    seen.view.group_hash(["a"], change_at_the_last_partition)
    expected = group_hash({"a": topic_hash(topic_id, "a", [("r1",), ("r1",)])})
    assert seen.view.group_hash(["a"]) == expected
