"""Reads the records of a range of offsets from a broker, through confluent-kafka.

The last offsets of a range may have no record that is returned: they may be transaction markers,
aborted records, or removed by compaction. So the range has been read when a record at or after its
last offset arrives, or when the client reports the end of the partition.

A topic that is deleted and created again while it is read would give records of both. So its id is
compared after the last record. Ids do not come back.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from odradek.pipeline.decoding.arrow_arrays import constant
from odradek.pipeline.decoding.columns import schema_of
from odradek.pipeline.decoding.decoded_records import timestamps
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange

from .broker_origin import TRANSIENT, BrokerError, BrokerOrigin

_logger = logging.getLogger(__name__)

_MAX_MESSAGES = 10_000
# How long consume() waits if it has fewer than _MAX_MESSAGES: short, so a short range is quick.
_POLL_S = 0.05
_CONSUMER_SETTINGS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}
# The offset, the partition or the topic does not exist any more.
_GONE = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)
# Added to a timestamp type of confluent-kafka (0 none, 1 CreateTime, 2 LogAppendTime) it gives
# Spark's (-1, 0, 1).
_TO_SPARKS_TYPE = -1


@dataclass(frozen=True, slots=True)
class BrokerReader:
    """Reads one range, with these columns of decoding/columns.py.

    `timeout_ms` is how long it waits for an answer of the broker.
    """

    client: Mapping[str, str]
    wanted: OffsetRange
    columns: tuple[str, ...]
    read_committed: bool = False
    fail_on_data_loss: bool = True
    timeout_ms: int = 120_000

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the records in order of offset. Raises DataLostError, BrokerError."""
        try:
            yield from self._read()
        except KafkaException as error:
            raise BrokerError(f"{self.wanted.partition}: {error.args[0].str()}") from error
        self._check_topic()

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Do the same. Raises KafkaException, too."""
        consumer = Consumer(self._config())
        try:
            consumer.assign([self._at(self.wanted.start)])
            for messages in self._messages(consumer):
                selected = self._selected(messages)
                if selected:
                    yield self._as_arrow(selected)
        finally:
            consumer.close()

    def _config(self) -> dict[str, str | int | float | bool]:
        return {
            "fetch.wait.max.ms": "100",  # only a fetch after the last record would wait
            # A limit, not a buffer. A record that is larger than a fetch comes whole.
            "receive.message.max.bytes": str((1 << 31) - 1),
            "group.id": f"odradek-pipeline-{uuid4()}",  # the client requires one; it is not joined
            **self.client,
            **_CONSUMER_SETTINGS,
            "isolation.level": "read_committed" if self.read_committed else "read_uncommitted",
        }

    def _at(self, offset: int) -> ClientPartition:
        return ClientPartition(*self.wanted.partition, offset)

    def _messages(self, consumer: Consumer) -> Iterator[list[Message]]:
        """Yield messages until the range has been read. Some may be outside of it."""
        silent_s = 0.0
        next_offset = self.wanted.start
        while True:
            messages = consumer.consume(_MAX_MESSAGES, _POLL_S)
            records = [message for message in messages if message.error() is None]
            silent_s = 0.0 if records else silent_s + _POLL_S
            if silent_s * 1000 >= self.timeout_ms:
                raise BrokerError(
                    f"{self.wanted.partition}: no answer from {self.client['bootstrap.servers']} "
                    f"within {self.timeout_ms} ms (kafkaConsumer.pollTimeoutMs)"
                )
            if records:
                next_offset = (records[-1].offset() or 0) + 1
            yield records
            if any(self._is_end(consumer, message, next_offset) for message in messages):
                return

    def _is_end(self, consumer: Consumer, message: Message, next_offset: int) -> bool:
        """Whether the range has been read. Raises DataLostError, BrokerError."""
        error = message.error()
        offset = message.offset()
        if error is None:
            return offset is not None and offset >= self.wanted.end - 1
        if error.code() == KafkaError._PARTITION_EOF:
            if offset is not None and offset < self.wanted.end:
                if self._log_bounds(consumer)[1] >= self.wanted.end:
                    return False  # this is a follower (client.rack), which does not know it yet
                self._report(f"offsets {offset} to {self.wanted.end - 1} are after the log's end")
            return True
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return False  # the group is not used, see _config
        if error.code() in _GONE:
            return self._skip_lost(consumer, error, next_offset)
        if error.code() in TRANSIENT and not error.fatal():
            _logger.warning("%s: %s", self.wanted.partition, error.str())
            return False
        raise BrokerError(f"{self.wanted.partition}: {error.str()}")

    def _skip_lost(self, consumer: Consumer, error: KafkaError, next_offset: int) -> bool:
        """Report lost records and continue after them. Returns whether the range has been read."""
        self._report(error.str())
        if error.code() not in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return True  # the topic or the partition is gone
        low, _ = self._log_bounds(consumer)
        if not next_offset < low < self.wanted.end:  # else they are after the log's end
            return True
        consumer.assign([self._at(low)])
        return False

    def _log_bounds(self, consumer: Consumer) -> tuple[int, int]:
        """Ask the leader where the log begins and ends. Raises KafkaException."""
        return consumer.get_watermark_offsets(self._at(0), timeout=self.timeout_ms / 1000)

    def _check_topic(self) -> None:
        """Raise DataLostError if the records may be of another topic of the same name."""
        partition, planned = self.wanted.partition, self.wanted.topic_id
        if planned is None:
            return
        found = BrokerOrigin(self.client, committed_only=False).topic_ids([partition])
        if found.get(partition.topic, planned) != planned:
            raise DataLostError(
                f"{partition}: the topic was deleted and created again while it was read; a stream "
                "does not read the new one in its next attempt, a batch query must be run again"
            )

    def _report(self, why: str) -> None:
        lost = f"{self.wanted.partition}: records are lost: {why}"
        if self.fail_on_data_loss:
            raise DataLostError(f"{lost} (failOnDataLoss=false continues without them)")
        _logger.warning("%s", lost)

    # -- as columns --------------------------------------------------------------------------------

    def _selected(self, messages: Iterable[Message]) -> list[Message]:
        return [
            message
            for message in messages
            if self.wanted.start <= (message.offset() or 0) < self.wanted.end
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
                times = [message.timestamp()[1] for message in messages]
                return timestamps(np.array(times, np.int64))
            case "timestampType":
                values = [message.timestamp()[0] + _TO_SPARKS_TYPE for message in messages]
            case "headers":
                values = [_headers(message) for message in messages]
        return pa.array(values, field.type)


def _headers(message: Message) -> list[dict[str, object]] | None:
    headers: Iterable[Any] = message.headers() or ()
    return [{"key": key, "value": value} for key, value in headers] or None
