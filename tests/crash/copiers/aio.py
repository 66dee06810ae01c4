"""Copies with aiokafka; see task.py.

aiokafka rebalances in a task of its own, also inside a transaction, and its transactions do not
name the member of the group (KIP-447). So this copier ends when its partitions are revoked.
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import IllegalOperation, KafkaError, ProducerFenced

from tests.crash.copiers import task as tasks
from tests.crash.copiers.task import Origin, Task, Transaction, batch_size, report

TIMEOUT_S = tasks.TIMEOUT_MS / 1000


class RevokedError(Exception):
    """The partitions belong to another consumer, or will be read from committed offsets again."""


class Revocations(ConsumerRebalanceListener):
    """Whether partitions were revoked."""

    def __init__(self) -> None:
        self.happened = False

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.happened |= bool(revoked)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        pass

    def check(self) -> None:
        """Raises RevokedError."""
        if self.happened:
            raise RevokedError


async def main(task: Task) -> None:
    try:
        await copy(task)
    except ProducerFenced as error:
        report("fenced", type(error).__name__)
    except (KafkaError, RevokedError, TimeoutError) as error:
        report("failed", type(error).__name__)


async def copy(task: Task) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap,
        transactional_id=task.name,
        transaction_timeout_ms=tasks.TRANSACTION_MS,
        request_timeout_ms=tasks.REQUEST_MS,
        retry_backoff_ms=tasks.BACKOFF_MS,
    )
    consumer = AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=tasks.SESSION_MS,
        heartbeat_interval_ms=tasks.HEARTBEAT_MS,
        request_timeout_ms=tasks.REQUEST_MS,
        retry_backoff_ms=tasks.BACKOFF_MS,
    )
    await asyncio.wait_for(producer.start(), TIMEOUT_S)
    await asyncio.wait_for(consumer.start(), TIMEOUT_S)
    revocations = Revocations()
    consumer.subscribe([task.source], listener=revocations)
    while True:
        found = await consumer.getmany(timeout_ms=tasks.POLL_MS, max_records=batch_size())
        revocations.check()
        origins = [
            Origin(each.partition, each.offset, each.value)
            for records in found.values()
            for each in records
        ]
        if origins:
            transaction = Transaction(task, origins)
            async with asyncio.timeout(TIMEOUT_S if task.hold == "never" else None):
                await copy_batch(task, producer, transaction, revocations)
            if transaction.must_abort:
                for partition, offset in transaction.starts().items():
                    consumer.seek(TopicPartition(task.source, partition), offset)


async def copy_batch(
    task: Task, producer: AIOKafkaProducer, transaction: Transaction, revocations: Revocations
) -> None:
    await producer.begin_transaction()
    sent: list[asyncio.Future[object]] = []
    try:
        records = transaction.records()
        for index, (partition, value) in enumerate(records):
            if index == len(records) // 2:
                await producer.flush()
                transaction.wait_before("records")
            sent.append(await producer.send(task.target, value, partition=partition))
        await producer.flush()
        transaction.wait_before("offsets")
        ends = {
            TopicPartition(task.source, partition): offset
            for partition, offset in transaction.ends().items()
        }
        await producer.send_offsets_to_transaction(ends, task.name)
    except IllegalOperation:
        await asyncio.gather(*sent)  # raises what has ended the transaction
        raise
    await asyncio.gather(*sent)
    transaction.wait_before("end")
    revocations.check()
    if transaction.must_abort:
        await producer.abort_transaction()
    else:
        await producer.commit_transaction()
    transaction.report_end()


if __name__ == "__main__":
    asyncio.run(main(Task(*sys.argv[1:])))
