"""What groups see of the cluster's topics: names, ids, partitions, and what has changed.

It is a view, not a copy: it answers from the metadata as it is at the moment. What it keeps is made
when it is asked for and dropped when a topic changes: the topics' hashes, the names in order.

A group learns of a change by comparing `changed_at` with the value it saw last (an int; cheap
enough for every heartbeat), and then asks whether it was one of its topics. Topics come, go, or get
partitions or replicas; who leads, and where logs lie, is nothing to groups. Subscriptions by
pattern need another look when `created_at` is beyond the version at which they were resolved.

Versions are offsets of the metadata log, as in Kafka, for a resolved pattern is written to
`__consumer_offsets` with its version and outlives the process.

Kafka: CoordinatorMetadataImage, GroupMetadataManager.onMetadataUpdate and its topicHashCache.
"""

from collections.abc import Iterable, Iterator

from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.topics import Topic, TopicEvent

from .topic_hash import group_hash, topic_hash

UNKNOWN = -1
NEVER = -1
# So many names are remembered with their last change; who has not looked since must look.
REMEMBERED_CHANGES = 1_000


class ClusterTopics:
    """The topics of a cluster, as its groups see them. It is an assignor's TopicsView too."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        # What is there at the start is new to whatever was resolved before.
        self.created_at = self.changed_at = metadata.last_offset
        self._metadata = metadata
        self._topics = metadata.topics
        self._hashes: dict[str, int] = {}
        self._racks: tuple[tuple[int, str | None], ...] = ()
        self._names: tuple[str, ...] | None = None
        self._changes: dict[str, int] = {}
        self._changes_forgotten_at = NEVER
        metadata.topics.on_change.append(self._topic_changed)

    @property
    def version(self) -> int:
        """The offset of the newest record that the metadata has replayed."""
        return self._metadata.last_offset

    # -- names and ids --------------------------------------------------------------------------

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

    # -- hashes ---------------------------------------------------------------------------------

    def group_hash(self, names: Iterable[str]) -> int:
        """The hash of a subscription: of those of its topics that exist (0: of none)."""
        self._look_at_brokers()
        return group_hash({name: self._hash_of(name) for name in names if name in self._topics})

    def _hash_of(self, name: str) -> int:
        found = self._hashes.get(name)
        if found is not None:
            return found
        topic = self._topics[name]
        racks = [tuple(self._racks_of(topic, index)) for index in topic.partitions]
        value = self._hashes[name] = topic_hash(topic.id, name, racks)
        return value

    def _racks_of(self, topic: Topic, partition: int) -> Iterator[str]:
        """The rack of each replica, if its broker is in one; two replicas may share it."""
        for node_id in topic.partitions[partition].replicas:
            broker = self._metadata.brokers.get(node_id)
            if broker is not None and broker.rack is not None:
                yield broker.rack

    def _look_at_brokers(self) -> None:
        """A broker that moves to another rack changes every topic."""
        racks = tuple((node, broker.rack) for node, broker in self._metadata.brokers.items())
        if racks != self._racks:
            self._racks = racks
            self._hashes.clear()

    # -- changes --------------------------------------------------------------------------------

    def have_changed(self, names: Iterable[str], since: int | None) -> bool:
        """Whether one of these topics may have changed since `changed_at` was that (None: ever)."""
        if since is None or since < self._changes_forgotten_at:
            return True
        return any(self._changes.get(name, NEVER) > since for name in names)

    def _topic_changed(self, topic: Topic, event: TopicEvent) -> None:
        self.changed_at = self._metadata.last_offset
        self._note_change(topic.name)
        self._hashes.pop(topic.name, None)
        if event is TopicEvent.CREATED:
            self.created_at = self.changed_at
        if event is not TopicEvent.REPLICAS_CHANGED:
            self._names = None

    def _note_change(self, name: str) -> None:
        """In the order of the last change, so that the oldest is forgotten first."""
        self._changes.pop(name, None)
        self._changes[name] = self.changed_at
        if len(self._changes) > REMEMBERED_CHANGES:
            oldest = next(iter(self._changes))
            self._changes_forgotten_at = self._changes.pop(oldest)
