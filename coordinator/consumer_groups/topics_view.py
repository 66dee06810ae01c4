"""What groups see of the cluster's topics: names, ids, partitions, racks, and what has changed.

It is a view, not a copy: it answers from the metadata as it is at the moment. What it keeps is made
when it is asked for and dropped when a topic changes: the topics' hashes, the names in order.

A group learns of a change in one of two ways. It compares `changed_at` with the value it saw last
(an int; cheap enough for every heartbeat), or it hears the topic's name through `on_change`. Both
tell of topics that come, go, or get partitions or replicas; who leads, and where logs lie, is
nothing to groups. Subscriptions by pattern need another look when `created_at` is beyond the
version at which they were resolved.

Versions are offsets of the metadata log, as in Kafka, for a resolved pattern is written to
`__consumer_offsets` with its version and outlives the process.

Kafka: CoordinatorMetadataImage, GroupMetadataManager.onMetadataUpdate and its topicHashCache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..metadata.topics import TopicEvent
from .topic_hash import NO_HASH, group_hash, topic_hash

if TYPE_CHECKING:
    from ..metadata.cluster_metadata import ClusterMetadata
    from ..metadata.topics import Topic

UNKNOWN = -1


class ClusterTopics:
    """The topics of a cluster, as its groups see them. It is an assignor's TopicsView too.

    Who is in `on_change` is told a name for each record that changes the topic, while it is being
    replayed: take a note, and look at the topic later.
    """

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.on_change: list[Callable[[str], object]] = []
        # What is there at the start is new to whatever was resolved before.
        self.created_at = self.changed_at = metadata.last_offset
        self._metadata = metadata
        self._topics = metadata.topics
        self._hashes: dict[str, int] = {}
        self._racks: tuple[tuple[int, str | None], ...] = ()
        self._names: tuple[str, ...] | None = None
        metadata.topics.on_change.append(self._topic_changed)

    @property
    def version(self) -> int:
        """The offset of the newest record that the metadata has replayed."""
        return self._metadata.last_offset

    # -- names and ids --------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        return name in self._topics

    def __len__(self) -> int:
        return len(self._topics)

    def id_of(self, name: str) -> bytes | None:
        """The id of a topic; None where there is none of that name."""
        topic = self._topics.get(name)
        return None if topic is None else topic.id

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of a topic; None where there is none of that id."""
        topic = self._topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of those topics that exist."""
        found = map(self._topics.get, names)
        return frozenset(topic.id for topic in found if topic is not None)

    def sorted_names(self) -> tuple[str, ...]:
        """The names of all topics, internal ones too."""
        if self._names is None:
            self._names = tuple(sorted(self._topics))
        return self._names

    # -- partitions -----------------------------------------------------------------------------

    def partition_count(self, topic_id: bytes) -> int:
        """How many partitions a topic has; -1 where it is unknown."""
        topic = self._topics.by_id.get(topic_id)
        return UNKNOWN if topic is None else len(topic.partitions)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        """The racks that hold a replica of the partition; empty where unknown."""
        topic = self._topics.by_id.get(topic_id)
        if topic is None or partition not in topic.partitions:
            return frozenset()
        return frozenset(self._racks_of(topic, partition))

    def _racks_of(self, topic: Topic, partition: int) -> Iterator[str]:
        """The rack of each replica, if its broker is in one; two replicas may share it."""
        for node_id in topic.partitions[partition].replicas:
            broker = self._metadata.brokers.get(node_id)
            if broker is not None and broker.rack is not None:
                yield broker.rack

    # -- hashes ---------------------------------------------------------------------------------

    def topic_hash(self, name: str) -> int:
        """A topic's hash; 0 where there is none of that name."""
        self._look_at_brokers()
        return self._hash_of(name)

    def group_hash(self, names: Iterable[str]) -> int:
        """The hash of a subscription: of those of its topics that exist (0: of none)."""
        self._look_at_brokers()
        return group_hash({name: self._hash_of(name) for name in names if name in self._topics})

    def _hash_of(self, name: str) -> int:
        found = self._hashes.get(name)
        if found is not None:
            return found
        topic = self._topics.get(name)
        if topic is None:
            return NO_HASH
        racks = [tuple(self._racks_of(topic, index)) for index in topic.partitions]
        value = self._hashes[name] = topic_hash(topic.id, name, racks)
        return value

    def _look_at_brokers(self) -> None:
        """A broker that moves to another rack changes every topic."""
        racks = tuple((node, broker.rack) for node, broker in self._metadata.brokers.items())
        if racks != self._racks:
            self._racks = racks
            self._hashes.clear()

    # -- changes --------------------------------------------------------------------------------

    def _topic_changed(self, topic: Topic, event: TopicEvent) -> None:
        self.changed_at = self._metadata.last_offset
        self._hashes.pop(topic.name, None)
        if event is TopicEvent.CREATED:
            self.created_at = self.changed_at
        if event is not TopicEvent.REPLICAS_CHANGED:
            self._names = None
        for tell in self.on_change:
            tell(topic.name)
