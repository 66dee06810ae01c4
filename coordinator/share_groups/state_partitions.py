"""The partitions whose delivery state of a share group is stored in `__share_group_state`.

    initializing   the share coordinator has been asked to create the state
    initialized    the state exists: the partition can be assigned
    deleting       an administrator deletes the state of the topic

A record of type 15 holds all three. Kafka: ShareGroup.ShareGroupStatePartitionMetadataInfo.
"""

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.runtime.steps import Step, no_step, stepping_if_many


class TopicOfState(NamedTuple):
    """The partitions of one topic. `since_ms` is the wall time of the record that names them."""

    name: str
    partitions: frozenset[int]
    since_ms: int


Topics = Mapping[bytes, TopicOfState]
NO_TOPICS: Topics = MappingProxyType({})


class StatePartitions(Struct, frozen=True, kw_only=True):
    """All partitions with state, by topic id. Each method returns a changed copy."""

    initializing: Topics = NO_TOPICS
    initialized: Topics = NO_TOPICS
    deleting: frozenset[bytes] = frozenset()

    def with_initializing(self, topics: Topics, step: Step = no_step) -> "StatePartitions":
        """Begin to create the state of these topics; those being deleted no longer are."""
        return replace(
            self,
            initializing=_united(self.initializing, topics, step),
            deleting=self.deleting - topics.keys(),
        )

    def with_initialized(self, topics: Topics) -> "StatePartitions":
        """The state of these partitions has been created. Those deleted meanwhile are ignored."""
        left = _without(self.initializing, topics)
        created = _without(self.initializing, left)
        return replace(self, initializing=left, initialized=_united(self.initialized, created))

    def without_initializing(self, topics: Topics) -> "StatePartitions":
        """The state of these partitions could not be created."""
        return replace(self, initializing=_without(self.initializing, topics))

    def with_deleting(self, topic_ids: Iterable[bytes]) -> "StatePartitions":
        """Begin to delete the initialized state of these topics."""
        deleted = frozenset(topic_ids)
        return replace(
            self,
            initialized={id_: it for id_, it in self.initialized.items() if id_ not in deleted},
            deleting=self.deleting | deleted,
        )

    def without_deleting(self, topic_ids: Iterable[bytes]) -> "StatePartitions":
        """The state of these topics has been deleted."""
        return replace(self, deleting=self.deleting.difference(topic_ids))

    def without_topics(self, topic_ids: Container[bytes]) -> "StatePartitions":
        """Forget topics that do not exist any more."""
        return StatePartitions(
            initializing={i: it for i, it in self.initializing.items() if i not in topic_ids},
            initialized={i: it for i, it in self.initialized.items() if i not in topic_ids},
            deleting=frozenset(i for i in self.deleting if i not in topic_ids),
        )

    def topic_ids(self) -> frozenset[bytes]:
        """Return the topics with state, also with state that is being created or deleted."""
        return self.deleting.union(self.initializing, self.initialized)

    def assignable(self) -> Assignment:
        """Return the partitions that members can read."""
        return {topic_id: topic.partitions for topic_id, topic in self.initialized.items()}

    def stored(self) -> Topics:
        """Return the partitions whose state exists, or may exist."""
        return _united(self.initialized, self.initializing)

    def recent(self, topic_id: bytes, now_ms: int, retry_ms: int) -> frozenset[int]:
        """Return a topic's partitions that are initialized, or began less than `retry_ms` ago.

        A beginning in the future counts as old: the clock was set back.
        """
        found = self.initialized.get(topic_id)
        partitions = frozenset() if found is None else found.partitions
        begun = self.initializing.get(topic_id)
        if begun is not None and 0 <= now_ms - begun.since_ms < retry_ms:
            partitions |= begun.partitions
        return partitions


NO_STATE = StatePartitions()


def _united(some: Topics, others: Topics, step: Step = no_step) -> Topics:
    united = dict(some)
    for topic_id, topic in stepping_if_many(others.items(), step):
        known = united.get(topic_id)
        partitions = topic.partitions if known is None else known.partitions | topic.partitions
        united[topic_id] = topic._replace(partitions=partitions)
    return united


def _without(some: Topics, removed: Topics) -> Topics:
    left = {}
    for topic_id, topic in some.items():
        gone = removed.get(topic_id)
        partitions = topic.partitions if gone is None else topic.partitions - gone.partitions
        if partitions:
            left[topic_id] = topic._replace(partitions=partitions)
    return left
