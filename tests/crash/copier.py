"""Copies one topic to another in transactions, through any number of failures of the broker."""

import threading
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

BATCH = 20
TIMEOUT_S = 10.0


class Copier(threading.Thread):
    """Consume, produce, send offsets, commit; one record in ten batches is aborted on purpose."""

    def __init__(
        self, bootstrap: str, source: str, target: str, *, partitions: int, protocol: str
    ) -> None:
        super().__init__(name="copier")
        self._source, self._target = source, target
        self._partitions = partitions
        self._servers = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200}
        self._protocol = protocol
        self._stopping = threading.Event()
        self.committed = 0
        self.failure: BaseException | None = None

    def stop(self) -> None:
        self._stopping.set()
        self.join(TIMEOUT_S * 6)

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._copy_until_it_fails()
        except BaseException as error:  # noqa: BLE001 # told to the test
            self.failure = error

    def _copy_until_it_fails(self) -> None:
        consumer = Consumer(
            {
                **self._servers,
                "group.id": f"copier-of-{self._source}",
                "group.protocol": self._protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        producer = Producer(
            {
                **self._servers,
                "transactional.id": f"copier-of-{self._source}",
                "transaction.timeout.ms": 20_000,
            }
        )
        consumer.subscribe([self._source])
        try:
            producer.init_transactions(TIMEOUT_S)
            while not self._stopping.is_set():
                self._copy_batch(consumer, producer)
        except KafkaException:
            pass  # begin again with a new producer: it ends what this one left
        finally:
            consumer.close()

    def _copy_batch(self, consumer: Consumer, producer: Producer) -> None:
        messages = [each for each in consumer.consume(BATCH, 0.2) if each.error() is None]
        if not messages:
            return
        producer.begin_transaction()
        try:
            ends: dict[int, Any] = {}
            for message in messages:
                number = int(message.value())
                producer.produce(self._target, message.value(), partition=number % self._partitions)
                ends[message.partition()] = TopicPartition(
                    self._source, message.partition(), message.offset() + 1
                )
            group = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction([*ends.values()], group, TIMEOUT_S)
            producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(TIMEOUT_S)
            raise
        self.committed += len(messages)
