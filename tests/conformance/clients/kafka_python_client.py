"""kafka-python."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from tests.conformance.clients.client import READ_SECONDS, Got, Sent, TooFewRecordsError

Version = tuple[int, ...]


class KafkaPythonReader:
    """See `client.Reader`."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: Sequence[int],
        group: str | None,
        api_version: Version | None = None,
    ) -> None:
        self._topic = topic
        self._unread: list[Got] = []
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            api_version=api_version,
        )
        self._consumer.assign([self._at(partition) for partition in partitions])

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def read(self, count: int) -> list[Got]:
        records: list[Got] = []
        deadline = time.monotonic() + READ_SECONDS
        while len(records) < count:
            if time.monotonic() > deadline:
                raise TooFewRecordsError(f"{len(records)} of {count} records")
            polled = self._consumer.poll(timeout_ms=200, max_records=count - len(records))
            records += [_got(record) for batch in polled.values() for record in batch]
        return records

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition), offset)

    def seek_to_beginning(self) -> None:
        self._consumer.seek_to_beginning()

    def seek_to_end(self) -> None:
        self._consumer.seek_to_end()

    def position(self, partition: int) -> int:
        return self._consumer.position(self._at(partition))

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        self._consumer.commit({self._at(partition): OffsetAndMetadata(offset, metadata, -1)})

    def committed(self, partition: int) -> tuple[int, str] | None:
        found = self._consumer.committed(self._at(partition), metadata=True)
        return (found.offset, found.metadata) if found else None

    def offsets_for_times(self, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        wanted = {self._at(partition): time_ms for partition, time_ms in times_ms.items()}
        found = self._consumer.offsets_for_times(wanted)
        return {at.partition: hit.offset if hit else None for at, hit in found.items()}

    def beginning_and_end(self, partition: int) -> tuple[int, int]:
        at = self._at(partition)
        beginning = self._consumer.beginning_offsets([at])[at]
        return beginning, self._consumer.end_offsets([at])[at]

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class KafkaPython:
    """See `client.Client`. It finds out the broker's version, unless it is told one."""

    name = "kafka-python"

    def __init__(self, api_version: Version | None = None) -> None:
        self._api_version = api_version

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
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            api_version=self._api_version,
            linger_ms=20,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            return [future.get(READ_SECONDS).offset for future in sent]
        finally:
            producer.close()

    def reader(
        self, bootstrap: str, topic: str, partitions: Sequence[int], group: str | None = None
    ) -> KafkaPythonReader:
        return KafkaPythonReader(bootstrap, topic, partitions, group, self._api_version)


def _got(record: Any) -> Got:
    headers = tuple((name, value) for name, value in record.headers)
    return Got(record.partition, record.offset, record.key, record.value, record.timestamp, headers)
