"""confluent-kafka, which is librdkafka."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.conformance.clients.client import READ_SECONDS, Got, Sent, TooFewRecordsError

NO_OFFSET = -1001  # what librdkafka says for "none committed"


class ConfluentReader:
    """See `client.Reader`."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: Sequence[int], group: str | None
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group or "no-group",  # librdkafka demands one even where it is not used
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        start = OFFSET_STORED if group else OFFSET_BEGINNING
        self._consumer.assign([TopicPartition(topic, each, start) for each in partitions])
        self._sought: dict[int, int] = {}  # where nothing was read since: librdkafka forgets these

    def read(self, count: int) -> list[Got]:
        records: list[Got] = []
        deadline = time.monotonic() + READ_SECONDS
        while len(records) < count:
            if time.monotonic() > deadline:
                raise TooFewRecordsError(f"{len(records)} of {count} records")
            for message in self._consumer.consume(count - len(records), 0.2):
                if message.error():
                    raise KafkaException(message.error())
                records.append(_got(message))
                self._sought.pop(message.partition(), None)
        return records

    def seek(self, partition: int, offset: int) -> None:
        # A partition that is only just assigned cannot be sought yet: assign again, with a place.
        self._reassign({partition: offset})

    def seek_to_beginning(self) -> None:
        self._reassign(dict.fromkeys(self._partitions, OFFSET_BEGINNING))

    def seek_to_end(self) -> None:
        self._reassign(
            {partition: self.beginning_and_end(partition)[1] for partition in self._partitions}
        )

    def _reassign(self, offsets: Mapping[int, int]) -> None:
        places = [
            TopicPartition(self._topic, partition, offsets.get(partition, OFFSET_END))
            for partition in self._partitions
        ]
        self._consumer.assign(places)
        self._sought = {place.partition: place.offset for place in places}

    def position(self, partition: int) -> int:
        (found,) = self._consumer.position([TopicPartition(self._topic, partition)])
        return self._sought.get(partition, found.offset)

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        place = TopicPartition(self._topic, partition, offset, metadata)
        for answer in self._consumer.commit(offsets=[place], asynchronous=False):
            assert answer.error is None, answer.error

    def committed(self, partition: int) -> tuple[int, str] | None:
        (found,) = self._consumer.committed(
            [TopicPartition(self._topic, partition)], timeout=READ_SECONDS
        )
        return None if found.offset == NO_OFFSET else (found.offset, found.metadata or "")

    def offsets_for_times(self, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        wanted = [
            TopicPartition(self._topic, partition, time_ms)
            for partition, time_ms in times_ms.items()
        ]
        found = self._consumer.offsets_for_times(wanted, timeout=READ_SECONDS)
        return {each.partition: each.offset if each.offset >= 0 else None for each in found}

    def beginning_and_end(self, partition: int) -> tuple[int, int]:
        return self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), timeout=READ_SECONDS
        )

    def close(self) -> None:
        self._consumer.close()


class ConfluentKafka:
    """See `client.Client`."""

    name = "confluent-kafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = True,
    ) -> list[int]:
        offsets = [-1] * len(records)
        failures: list[KafkaError] = []
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
            }
        )

        def delivered(place: int, error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            elif acks != "0":
                offsets[place] = message.offset()

        for place, record in enumerate(records):
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp=record.timestamp_ms,
                on_delivery=lambda error, message, place=place: delivered(place, error, message),
            )
        left = producer.flush(READ_SECONDS)
        if failures:
            raise KafkaException(failures[0])
        assert left == 0, f"{left} records were not acknowledged"
        return offsets

    def reader(
        self, bootstrap: str, topic: str, partitions: Sequence[int], group: str | None = None
    ) -> ConfluentReader:
        return ConfluentReader(bootstrap, topic, partitions, group)


def _got(message: Message) -> Got:
    return Got(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )
