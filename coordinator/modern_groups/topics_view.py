"""The cluster's topics as groups see them: names, ids, partitions, hashes, and changes.

This is a view of the current metadata, not a copy. It caches the topics' hashes and the sorted
names, and drops them when a topic changes.

A group detects a change by comparing `last_change_offset` with the value that it saw last. That
compares two ints, so every heartbeat can do it. Only then the group asks whether one of its own
topics has changed. A change is a topic that is created or deleted, or that gets partitions or other
replicas. Leaders and log directories do not matter to groups. Regular expressions must be resolved
again when `last_creation_offset` is greater than the version at which they were resolved.

Versions are offsets of the metadata log, as in Kafka. A resolved regular expression is written to
`__consumer_offsets` with its version, so versions must keep their meaning across restarts.

Kafka: CoordinatorMetadataImage, GroupMetadataManager.onMetadataUpdate and its topicHashCache.
"""

from collections.abc import Iterable, Iterator

from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.topics import Partition, Topic, TopicEvent
from odradek.coordinator.runtime.steps import Step, no_step, stepping

from .topic_hash import group_hash, topic_hash

UNKNOWN = -1
NEVER = -1
# How many topic names are kept with the offset of their last change. When there are more, all are
# forgotten, and each group must check its topics once.
MAX_REMEMBERED_CHANGES = 1_000


class ClusterTopics:
    """The topics of a cluster, as its groups see them. Implements the assignors' TopicsView."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        # Topics that exist at the start count as new: earlier resolutions may have missed them.
        self.last_creation_offset = self.last_change_offset = metadata.last_offset
        self._metadata = metadata
        self._topics = metadata.topics
        self._hashes: dict[str, int] = {}
        self._racks: tuple[tuple[int, str | None], ...] = ()
        self._names: tuple[str, ...] | None = None
        self._changes: dict[str, int] = {}
        self._changes_forgotten_until = NEVER
        metadata.topics.on_change.append(self._topic_changed)

    @property
    def version(self) -> int:
        """The offset of the newest record that the metadata has replayed."""
        return self._metadata.last_offset

    # -- names and ids --------------------------------------------------------------------------

    def id_of(self, name: str) -> bytes | None:
        """Return the id of a topic; None if no topic has that name."""
        topic = self._topics.get(name)
        return None if topic is None else topic.id

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic; None if no topic has that id."""
        topic = self._topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """Return the ids of the named topics, without those that do not exist."""
        found = map(self._topics.get, names)
        return frozenset(topic.id for topic in found if topic is not None)

    def missing_of(self, topic_ids: Iterable[bytes]) -> frozenset[bytes]:
        """Return those of the ids whose topics do not exist."""
        return frozenset(topic_ids).difference(self._topics.by_id)

    def sorted_names(self) -> tuple[str, ...]:
        """Return the names of all topics, including internal ones."""
        if self._names is None:
            self._names = tuple(sorted(self._topics))
        return self._names

    # -- partitions -----------------------------------------------------------------------------

    def partition_count(self, topic_id: bytes) -> int:
        """Return the number of partitions of a topic; -1 if the topic is unknown."""
        topic = self._topics.by_id.get(topic_id)
        return UNKNOWN if topic is None else len(topic.partitions)

    # -- hashes ---------------------------------------------------------------------------------

    def group_hash(self, names: Iterable[str], step: Step = no_step) -> int:
        """Return the hash of the named topics that exist (0 if none does).

        During a step other requests are served, and may change a topic. The hash may then cover the
        old topic, or a mixture of old and new. So a caller that remembers when its topics were
        checked reads `last_change_offset` before this call: then the change counts as not checked.
        """
        self._refresh_racks()
        hashes = {}
        for name in stepping(names, step):
            cached = self._hashes.get(name)
            if cached is not None:
                hashes[name] = cached
            elif (topic := self._topics.get(name)) is not None:
                hashes[name] = self._hash_of(topic, step)
        return group_hash(hashes, step)

    def _hash_of(self, topic: Topic, step: Step) -> int:
        """Return the hash of a topic. It is cached unless topics or racks change during a step.

        If racks change, `_refresh_racks` replaces the cache, and the hash goes into the old one.
        """
        cache, change_offset = self._hashes, self.last_change_offset
        partitions = stepping(topic.partitions.values(), step)
        racks = [tuple(self._racks_of(partition)) for partition in partitions]
        made = topic_hash(topic.id, topic.name, racks, step)
        if self.last_change_offset == change_offset:
            cache[topic.name] = made
        return made

    def _racks_of(self, partition: Partition) -> Iterator[str]:
        """Yield the rack of each replica whose broker has one; racks may repeat."""
        for node_id in partition.replicas:
            broker = self._metadata.brokers.get(node_id)
            if broker is not None and broker.rack is not None:
                yield broker.rack

    def _refresh_racks(self) -> None:
        """Drop all cached hashes if a broker's rack has changed."""
        racks = tuple((node, broker.rack) for node, broker in self._metadata.brokers.items())
        if racks != self._racks:
            self._racks = racks
            self._hashes = {}  # a new dict: see _hash_of

    # -- changes --------------------------------------------------------------------------------

    def may_have_changed(self, names: Iterable[str], since: int | None) -> bool:
        """Whether one of these topics may have changed after the metadata offset `since`.

        None means that the topics were never checked.
        """
        if since is None or since < self._changes_forgotten_until:
            return True
        return any(self._changes.get(name, NEVER) > since for name in names)

    def _topic_changed(self, topic: Topic, event: TopicEvent) -> None:
        # All are forgotten: to look for the oldest each time would be slow when thousands change.
        if len(self._changes) >= MAX_REMEMBERED_CHANGES:
            self._changes_forgotten_until = self.last_change_offset
            self._changes.clear()
        self.last_change_offset = self._metadata.last_offset
        self._changes[topic.name] = self.last_change_offset
        self._hashes.pop(topic.name, None)
        if event is TopicEvent.CREATED:
            self.last_creation_offset = self.last_change_offset
        if event is not TopicEvent.REPLICAS_CHANGED:
            self._names = None
