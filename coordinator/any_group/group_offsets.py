"""What one group has committed, and what open transactions may still commit for it.

A request may be about ten thousand partitions, and a transaction ends at one moment. So what
belongs together is kept and moved by topics, and not partition by partition.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from odradek.protocol.primitives import ZERO_UUID


class CommittedOffset(Struct, gc=False):
    """A committed or pending offset. `record_offset` is the offset of its record in the log.

    A struct, because ten thousand of them are made in one turn of the event loop, and a NamedTuple
    takes three times as long. Nothing changes after its record has been written.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes
    record_offset: int

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it belongs to that topic, not to an older one of its name. Zero matches all."""
        return ZERO_UUID in (self.topic_id, topic_id) or self.topic_id == topic_id


PartitionOffsets = dict[int, CommittedOffset]
# By topic. Tables have plain tuples as keys: thousands of NamedTuples take too long.
TopicOffsets = dict[str, PartitionOffsets]
Place = tuple[str, int]  # topic and partition


class _Transaction(Struct):
    """What a producer's open transaction has written for the group."""

    first_record: int
    last_record: int
    topics: TopicOffsets


class GroupOffsets:
    """Committed offsets by topic and partition, and the pending ones of open transactions.

    `changes` rises at least when a partition gets its first offset or loses its last. `last_record`
    is the offset of the last record that was committed. If both are the same as before, so is what
    is committed.
    """

    __slots__ = ("_pending", "_writers", "changes", "committed", "last_record")

    def __init__(self) -> None:
        self.committed: TopicOffsets = {}
        self.changes = 0
        self.last_record = -1
        self._pending: dict[int, _Transaction] = {}  # by producer
        # The producers whose open transactions have an offset for a partition: mostly one.
        self._writers: dict[Place, int | set[int]] = {}

    @property
    def is_empty(self) -> bool:
        return not self.committed and not self._writers

    @property
    def pending(self) -> Mapping[Place, object]:
        """The partitions for which an open transaction has an offset."""
        return self._writers

    def pending_of(self, place: Place) -> list[CommittedOffset]:
        """The offsets that open transactions have for a partition."""
        topic, partition = place
        return [
            self._pending[producer_id].topics[topic][partition]
            for producer_id in self._writers_of(place)
        ]

    def _writers_of(self, place: Place) -> Iterable[int]:
        writers = self._writers.get(place, ())
        return (writers,) if isinstance(writers, int) else tuple(writers)

    # -- replay ----------------------------------------------------------------------------------

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Commit an offset. Its record is newer than all others."""
        self.last_record = committed.record_offset
        partitions = self.committed.get(topic)
        if partitions is None:
            partitions = self.committed[topic] = {}
        self.changes += partition not in partitions
        partitions[partition] = committed

    def put_all(self, topics: TopicOffsets, last_record: int) -> None:
        """Commit offsets. The caller gives the tables away."""
        self.last_record = last_record
        self.changes += 1
        _merge(self.committed, topics)

    def put_pending(
        self, producer_id: int, topic: str, partition: int, pending: CommittedOffset
    ) -> None:
        """Add an offset of a producer's open transaction."""
        place = topic, partition
        topics, record = {topic: {partition: pending}}, pending.record_offset
        self.put_all_pending(producer_id, topics, {place: producer_id}, (record, record))

    def put_all_pending(
        self,
        producer_id: int,
        topics: TopicOffsets,
        writers: Mapping[Place, int],
        records: tuple[int, int],
    ) -> None:
        """Add offsets of a producer's open transaction. The caller gives the tables away.

        `writers` has the producer for each of them, `records` the first and the last record.
        """
        transaction = self._pending.get(producer_id)
        if transaction is None:
            self._pending[producer_id] = _Transaction(*records, topics)
        else:
            transaction.last_record = records[1]
            _merge(transaction.topics, topics)
        self.changes += 1
        if self._writers.keys().isdisjoint(writers):
            self._writers.update(writers)
            return
        for place in writers:
            if self._writers.setdefault(place, producer_id) != producer_id:
                self._writers[place] = {*self._writers_of(place), producer_id}

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit or drop what a producer's transaction has written. Newer commits stay."""
        transaction = self._pending.pop(producer_id, None)
        if transaction is None:
            return
        self.changes += 1
        topics = transaction.topics
        if not self._pending:
            self._writers = {}
        else:
            for place in _places(topics):
                self._remove_writer(place, producer_id)
        if not committed:
            return
        if self.last_record > transaction.first_record:
            for topic, partitions in topics.items():
                known = self.committed.get(topic, {})
                topics[topic] = {
                    partition: pending
                    for partition, pending in partitions.items()
                    if partition not in known
                    or known[partition].record_offset < pending.record_offset
                }
        _merge(self.committed, topics)
        self.last_record = max(self.last_record, transaction.last_record)

    def _remove_writer(self, place: Place, producer_id: int) -> None:
        left = [writer_id for writer_id in self._writers_of(place) if writer_id != producer_id]
        if not left:
            self._writers.pop(place, None)
        else:
            self._writers[place] = left[0] if len(left) == 1 else set(left)

    def remove_all(self, places: Iterable[Place]) -> None:
        """Remove what is committed and pending for partitions."""
        self.changes += 1
        for place in places:
            _discard(self.committed, *place)
            if place in self._writers:
                for producer_id in self._writers_of(place):
                    _discard(self._pending[producer_id].topics, *place)
                del self._writers[place]


def _places(topics: TopicOffsets) -> Iterator[Place]:
    return ((topic, partition) for topic, partitions in topics.items() for partition in partitions)


def _merge(known: TopicOffsets, added: TopicOffsets) -> None:
    """Put what is added into `known`. The tables may become its own."""
    if not known:
        known.update(added)
        return
    for topic, partitions in added.items():
        if topic not in known:
            known[topic] = partitions
        else:
            known[topic].update(partitions)


def _discard(topics: TopicOffsets, topic: str, partition: int) -> None:
    partitions = topics.get(topic)
    if partitions is not None:
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
