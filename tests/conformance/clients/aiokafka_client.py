"""aiokafka. Each reader has an event loop of its own, which runs while a call waits."""

import asyncio
from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

from tests.conformance.clients.client import READ_SECONDS, Got, Sent, TooFewRecordsError


class AiokafkaReader:
    """See `client.Reader`."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: Sequence[int], group: str | None
    ) -> None:
        self._topic = topic
        self._runner = asyncio.Runner()
        self._consumer = self._runner.run(self._start(bootstrap, partitions, group))

    async def _start(
        self, bootstrap: str, partitions: Sequence[int], group: str | None
    ) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        consumer.assign([self._at(partition) for partition in partitions])
        return consumer

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def read(self, count: int) -> list[Got]:
        return self._runner.run(self._read(count))

    async def _read(self, count: int) -> list[Got]:
        records: list[Got] = []
        try:
            async with asyncio.timeout(READ_SECONDS):
                while len(records) < count:
                    left = count - len(records)
                    polled = await self._consumer.getmany(timeout_ms=200, max_records=left)
                    records += [_got(record) for batch in polled.values() for record in batch]
        except TimeoutError:
            raise TooFewRecordsError(f"{len(records)} of {count} records") from None
        return records

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition), offset)

    def seek_to_beginning(self) -> None:
        self._runner.run(self._consumer.seek_to_beginning())

    def seek_to_end(self) -> None:
        self._runner.run(self._consumer.seek_to_end())

    def position(self, partition: int) -> int:
        return self._runner.run(self._consumer.position(self._at(partition)))

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        self._runner.run(self._consumer.commit({self._at(partition): (offset, metadata)}))

    def committed(self, partition: int) -> tuple[int, str] | None:
        offset = self._runner.run(self._consumer.committed(self._at(partition)))
        return None if offset is None else (offset, self._metadata(partition))

    def _metadata(self, partition: int) -> str:
        # `committed` tells only the offset; the coordinator client beneath it has the rest.
        fetch = self._consumer._coordinator.fetch_committed_offsets
        at = self._at(partition)
        return self._runner.run(fetch([at]))[at].metadata

    def offsets_for_times(self, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        wanted = {self._at(partition): time_ms for partition, time_ms in times_ms.items()}
        found = self._runner.run(self._consumer.offsets_for_times(wanted))
        return {at.partition: hit.offset if hit else None for at, hit in found.items()}

    def beginning_and_end(self, partition: int) -> tuple[int, int]:
        at = self._at(partition)
        beginning = self._runner.run(self._consumer.beginning_offsets([at]))[at]
        return beginning, self._runner.run(self._consumer.end_offsets([at]))[at]

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


class Aiokafka:
    """See `client.Client`."""

    name = "aiokafka"

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
        async def produce() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=20,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                answers = [await asyncio.wait_for(future, READ_SECONDS) for future in sent]
            finally:
                await producer.stop()
            return [-1 if answer is None else answer.offset for answer in answers]

        return asyncio.run(produce())

    def reader(
        self, bootstrap: str, topic: str, partitions: Sequence[int], group: str | None = None
    ) -> AiokafkaReader:
        return AiokafkaReader(bootstrap, topic, partitions, group)


def _got(record: ConsumerRecord) -> Got:
    return Got(
        record.partition,
        record.offset,
        record.key,
        record.value,
        record.timestamp,
        tuple(record.headers),
    )
