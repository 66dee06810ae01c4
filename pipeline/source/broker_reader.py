"""The records of a range of offsets from a broker, through confluent-kafka.

The last offsets of a range may belong to no record: to markers of transactions, to aborted
records, to what compaction has taken. So the end has been reached with a record at or behind it, or
where the client says that it has come to the end of the partition, and that lies there or further.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from odradek.pipeline.decoding.arrow_arrays import constant
from odradek.pipeline.decoding.columns import schema_of
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange

from .broker_origin import NoAnswerError

_logger = logging.getLogger(__name__)

_AT_ONCE = 10_000
# The client gathers for so long if there is less than `_AT_ONCE`: a short range is not to wait.
_POLL_S = 0.05
_OWN = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}
_GONE = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)
# confluent-kafka: 0 none, 1 CreateTime, 2 LogAppendTime; Spark: -1, 0, 1
_SPARKS_TYPE = -1


@dataclass(frozen=True, slots=True)
class BrokerReader:
    """Reads one range, for these columns of columns.py."""

    client: Mapping[str, str]
    wanted: OffsetRange
    columns: tuple[str, ...]
    times_ms: tuple[int, int] | None = None
    read_committed: bool = False
    fail_on_data_loss: bool = True
    timeout_ms: int = 120_000

    def read(self) -> Iterator[pa.RecordBatch]:
        """The records in the order of their offsets. Raises DataLostError, NoAnswerError."""
        consumer = Consumer(self._config())
        try:
            consumer.assign([self._at(self.wanted.start)])
            for messages in self._messages(consumer):
                kept = self._kept(messages)
                if kept:
                    yield self._as_arrow(kept)
        finally:
            consumer.close()

    def _config(self) -> dict[str, str | int | float | bool]:
        return {
            "fetch.wait.max.ms": "100",  # what is asked for is there, but for what comes behind it
            "group.id": f"odradek-pipeline-{uuid4()}",  # the client wants one; nobody joins it
            **self.client,
            **_OWN,
            "isolation.level": "read_committed" if self.read_committed else "read_uncommitted",
        }

    def _at(self, offset: int) -> ClientPartition:
        return ClientPartition(*self.wanted.partition, offset)

    def _messages(self, consumer: Consumer) -> Iterator[list[Message]]:
        """Those in the range, until its end."""
        silent_s = 0.0
        while True:
            messages = consumer.consume(_AT_ONCE, _POLL_S)
            silent_s = 0.0 if messages else silent_s + _POLL_S
            if silent_s * 1000 >= self.timeout_ms:
                raise NoAnswerError(
                    f"{self.wanted.partition}: nothing from {self.client['bootstrap.servers']} "
                    f"for {self.timeout_ms} ms (kafkaConsumer.pollTimeoutMs)"
                )
            yield [message for message in messages if message.error() is None]
            if any(self._ends(consumer, message) for message in messages):
                return

    def _ends(self, consumer: Consumer, message: Message) -> bool:
        """Whether nothing comes behind it. Raises DataLostError, NoAnswerError."""
        error = message.error()
        offset = message.offset()
        if error is None:
            return offset is not None and offset >= self.wanted.end - 1
        if error.code() == KafkaError._PARTITION_EOF:
            if offset is not None and offset < self.wanted.end:
                self._report(f"offsets {offset} to {self.wanted.end - 1}: the log ends before")
            return True
        if error.code() in _GONE:
            return self._behind_the_loss(consumer, error)
        if error.retriable() and not error.fatal():
            _logger.warning("%s: %s", self.wanted.partition, error.str())
            return False
        raise NoAnswerError(f"{self.wanted.partition}: {error.str()}")

    def _behind_the_loss(self, consumer: Consumer, error: KafkaError) -> bool:
        self._report(error.str())
        if error.code() not in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return True
        low, _ = consumer.get_watermark_offsets(self._at(0))
        if not self.wanted.start < low < self.wanted.end:
            return True
        consumer.assign([self._at(low)])
        return False

    def _report(self, why: str) -> None:
        lost = f"{self.wanted.partition}: records are gone: {why}"
        if self.fail_on_data_loss:
            raise DataLostError(f"{lost} (failOnDataLoss=false goes on without them)")
        _logger.warning("%s", lost)

    # -- as columns --------------------------------------------------------------------------------

    def _kept(self, messages: Iterable[Message]) -> list[Message]:
        first_ms, behind_ms = self.times_ms or (-(1 << 63), 1 << 63)
        return [
            message
            for message in messages
            if self.wanted.start <= (message.offset() or 0) < self.wanted.end
            and first_ms <= message.timestamp()[1] < behind_ms
        ]

    def _as_arrow(self, messages: Sequence[Message]) -> pa.RecordBatch:
        schema = schema_of(self.columns)
        arrays = [self._column(field, messages) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(self, field: pa.Field, messages: Sequence[Message]) -> pa.Array:
        values: Sequence[object]
        match field.name:
            case "topic" | "partition":
                value = getattr(self.wanted.partition, field.name)
                return constant(value, field.type, len(messages))
            case "key":
                values = [message.key() for message in messages]
            case "value":
                values = [message.value() for message in messages]
            case "offset":
                values = [message.offset() for message in messages]
            case "timestamp":
                values = [message.timestamp()[1] * 1000 for message in messages]
            case "timestampType":
                values = [message.timestamp()[0] + _SPARKS_TYPE for message in messages]
            case "headers":
                values = [_headers(message) for message in messages]
        return pa.array(values, field.type)


def _headers(message: Message) -> list[dict[str, object]] | None:
    headers: Iterable[Any] = message.headers() or ()
    return [{"key": key, "value": value} for key, value in headers] or None
