"""Offsets and ranges from a broker, through confluent-kafka: for a driver without the files.

While a leader is elected or a broker starts, a request fails with an error that passes. The admin
client returns such errors. It does not repeat the request, as Java's does. So requests are repeated
here until the timeout.

If the leader of a partition does not answer ListOffsets, librdkafka returns no error, but an offset
that is none (-1001). This, too, is asked for again. Kafka: ListOffsetsHandler.
"""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec  # the types do not export it elsewhere

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.protocol.primitives import ZERO_UUID, uuid_from_text
from odradek.storage.topic_partition import TopicPartition

from .positions import EARLIEST, LATEST

Result = TypeVar("Result")

_TIMEOUT_S = 60.0
# As Kafka's retry.backoff.ms and retry.backoff.max.ms.
_FIRST_WAIT_S = 0.1
_MAX_WAIT_S = 1.0
# Otherwise the admin client warns about settings that are for consumers.
_ERRORS_ONLY = {"log_level": 3}
_GONE = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)
# Errors that pass when a leader is elected, a broker has started, or metadata is refreshed.
TRANSIENT = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
    }
)
# OffsetSpec(EARLIEST), (LATEST) or (a timestamp) makes an instance of a subclass, unknown to mypy.
_spec = cast("Callable[[int], OffsetSpec]", OffsetSpec)


class BrokerError(Exception):
    """The broker cannot be reached, or refuses a request."""


class _TransientError(BrokerError):
    """The same request may succeed later."""


class _NoLeadersError(_TransientError):
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
        return self._repeated(self._listed)

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        first = self._offsets(dict.fromkeys(partitions, EARLIEST))
        ends = self._offsets(dict.fromkeys(first, LATEST))
        return {
            partition: OffsetBounds(min(first[partition], end), end)
            for partition, end in ends.items()
        }

    def log_ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(dict.fromkeys(partitions, LATEST), IsolationLevel.READ_UNCOMMITTED)

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
        found = self._repeated(
            lambda timeout_s: self._results(
                self._admin.describe_topics(TopicCollection(topics), request_timeout=timeout_s)
            )
        )
        ids = {topic: uuid_from_text(str(described.topic_id)) for topic, described in found}
        # Kafka before 2.8 has no ids.
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id != ZERO_UUID}

    def parts(self, partition: TopicPartition, start: int, end: int) -> list[OffsetRange]:
        return [OffsetRange(partition, start, end)]

    def _listed(self, timeout_s: float) -> list[TopicPartition]:
        try:
            topics = self._admin.list_topics(timeout=timeout_s).topics
            for described in topics.values():
                # It has no partitions here. Other errors are of topics that cannot be read.
                if described.error is not None and described.error.code() in TRANSIENT:
                    raise KafkaException(described.error)
        except KafkaException as error:
            raise self._broker_error(error) from error
        return sorted(
            TopicPartition(topic, partition)
            for topic, described in topics.items()
            for partition in described.partitions
        )

    def _offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset of EARLIEST, LATEST or a time in ms; -1 if all records are older."""
        if not wanted:
            return {}
        level = self._isolation if isolation is None else isolation
        return self._repeated(lambda timeout_s: self._offsets_now(wanted, level, timeout_s))

    def _offsets_now(
        self, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel, timeout_s: float
    ) -> dict[TopicPartition, int]:
        futures = self._admin.list_offsets(
            {ClientPartition(*each): _spec(when) for each, when in wanted.items()},
            isolation_level=isolation,
            request_timeout=timeout_s,
        )
        try:
            found = {
                TopicPartition(partition.topic, partition.partition): result.offset
                for partition, result in self._results(futures)
            }
        except _NoLeadersError:
            if not wanted.keys().isdisjoint(self._listed(timeout_s)):
                raise
            return {}
        for partition, offset in found.items():
            is_after_all = offset == -1 and wanted[partition] >= 0
            if offset < 0 and not is_after_all:
                raise _TransientError(f"{self._servers}: the leader of {partition} did not answer")
        return found

    def _repeated(self, ask: Callable[[float], Result]) -> Result:
        """Call `ask` with the seconds that it may take, again if its error may pass."""
        deadline = time.monotonic() + self._timeout_s
        wait_s = _FIRST_WAIT_S
        while True:
            left_s = max(_FIRST_WAIT_S, deadline - time.monotonic())
            try:
                # A request to a broker that is down takes all of its time.
                return ask(min(left_s, self._timeout_s / 2))
            except _TransientError:
                if time.monotonic() + wait_s >= deadline:
                    raise
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _MAX_WAIT_S)

    def _results(self, futures: Mapping[Any, "Future[Any]"]) -> list[tuple[Any, Any]]:
        found = []
        for each, future in futures.items():
            try:
                found.append((each, future.result()))
            except KafkaException as error:
                if error.args[0].code() not in _GONE:
                    raise self._broker_error(error) from error
        return found

    def _broker_error(self, error: KafkaException) -> BrokerError:
        reason = error.args[0]
        kind = BrokerError
        if reason.code() == KafkaError._NOENT:
            kind = _NoLeadersError
        elif reason.code() in TRANSIENT:
            kind = _TransientError
        return kind(f"{self._servers}: {reason.str()}")
