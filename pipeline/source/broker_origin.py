"""Offsets and ranges from a broker, through confluent-kafka: for a driver without the files."""

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, cast

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec  # the types do not export it elsewhere

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.protocol.primitives import ZERO_UUID, uuid_from_text
from odradek.storage.topic_partition import TopicPartition

from .positions import EARLIEST, LATEST

_TIMEOUT_S = 60.0
# Otherwise the admin client warns about settings that are for consumers.
_ERRORS_ONLY = {"log_level": 3}
_GONE = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)
# OffsetSpec(EARLIEST), (LATEST) or (a timestamp) makes an instance of a subclass, unknown to mypy.
_spec = cast("Callable[[int], OffsetSpec]", OffsetSpec)


class BrokerError(Exception):
    """The broker cannot be reached, or refuses a request."""


class _NoLeadersError(BrokerError):
    """None of the partitions has a leader; perhaps none exists."""


class BrokerOrigin:
    """See Origin. Methods raise BrokerError."""

    def __init__(
        self, client: Mapping[str, str], *, committed_only: bool, timeout_s: float = _TIMEOUT_S
    ) -> None:
        self._timeout_s = timeout_s
        self._servers = client["bootstrap.servers"]
        try:
            self._admin = AdminClient({**client, **_ERRORS_ONLY})
        except KafkaException as error:
            raise self._broker_error(error) from error
        self._isolation = (
            IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
        )

    def partitions(self) -> list[TopicPartition]:
        try:
            topics = self._admin.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._broker_error(error) from error
        return sorted(
            TopicPartition(topic, partition)
            for topic, described in topics.items()
            for partition in described.partitions
        )

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        first = self._offsets(dict.fromkeys(partitions, EARLIEST))
        ends = self._offsets(dict.fromkeys(first, LATEST))
        return {
            partition: OffsetBounds(min(first[partition], end), end)
            for partition, end in ends.items()
        }

    def offsets_at(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, OffsetBounds],
    ) -> dict[TopicPartition, int | None]:
        wanted = {
            partition: max(0, timestamp_ms)
            for partition, timestamp_ms in timestamps_ms.items()
            if partition in bounds
        }
        return {
            partition: None
            if offset < 0 or offset >= bounds[partition].end
            else max(offset, bounds[partition].start)
            for partition, offset in self._offsets(wanted).items()
        }

    def topic_ids(self, partitions: Collection[TopicPartition]) -> dict[str, bytes]:
        topics = sorted({partition.topic for partition in partitions})
        if not topics:
            return {}
        futures = self._admin.describe_topics(
            TopicCollection(topics), request_timeout=self._timeout_s
        )
        found = self._results(futures)
        ids = {topic: uuid_from_text(str(described.topic_id)) for topic, described in found}
        # Kafka before 2.8 has no ids.
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id != ZERO_UUID}

    def parts(self, partition: TopicPartition, start: int, end: int) -> list[OffsetRange]:
        return [OffsetRange(partition, start, end)]

    def _offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offset of EARLIEST, LATEST or a time in ms; -1 if all records are older."""
        if not wanted:
            return {}
        futures = self._admin.list_offsets(
            {ClientPartition(*each): _spec(when) for each, when in wanted.items()},
            isolation_level=self._isolation,
            request_timeout=self._timeout_s,
        )
        try:
            return {
                TopicPartition(partition.topic, partition.partition): result.offset
                for partition, result in self._results(futures)
            }
        except _NoLeadersError:
            if not wanted.keys().isdisjoint(self.partitions()):
                raise
            return {}

    def _results(self, futures: Mapping[Any, "Future[Any]"]) -> Iterable[tuple[Any, Any]]:
        for each, future in futures.items():
            try:
                yield each, future.result()
            except KafkaException as error:
                if error.args[0].code() not in _GONE:
                    raise self._broker_error(error) from error

    def _broker_error(self, error: KafkaException) -> BrokerError:
        reason = error.args[0]
        kind = _NoLeadersError if reason.code() == KafkaError._NOENT else BrokerError
        return kind(f"{self._servers}: {reason.str()}")
