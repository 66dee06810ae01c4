"""Copies with kafka-python; see task.py.

kafka-python 3.0.12: when the time of `poll` ends between SyncGroup and its answer, the consumer
never takes its partitions, and is not told of it. A long `poll` makes this rare; when it happens,
the test starts the copier again.
"""

import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.crash.copiers import task as tasks
from tests.crash.copiers.task import Origin, Task, Transaction, batch_size, report

POLL_MS = 5000


def main(task: Task) -> None:
    try:
        copy(task)
    except KafkaError as error:
        # Once fenced, every further call fails with a KafkaError that only names the cause.
        name = ProducerFencedError.__name__
        is_fenced = name in str(error)
        report("fenced" if is_fenced else "failed", name if is_fenced else str(error))


def copy(task: Task) -> None:
    patience = {
        "bootstrap_servers": task.bootstrap,
        "request_timeout_ms": tasks.REQUEST_MS,
        "retry_backoff_ms": tasks.BACKOFF_MS,
        "reconnect_backoff_max_ms": tasks.LONGEST_BACKOFF_MS,
    }
    producer = KafkaProducer(
        **patience,
        transactional_id=task.name,
        transaction_timeout_ms=tasks.TRANSACTION_MS,
        delivery_timeout_ms=tasks.TIMEOUT_MS,
        max_block_ms=tasks.TIMEOUT_MS,
    )
    producer.init_transactions()
    consumer = KafkaConsumer(
        task.source,
        **patience,
        group_id=task.name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=tasks.SESSION_MS,
        heartbeat_interval_ms=tasks.HEARTBEAT_MS,
    )
    while True:
        found = consumer.poll(timeout_ms=POLL_MS, max_records=batch_size())
        origins = [
            Origin(each.partition, each.offset, each.value)
            for records in found.values()
            for each in records
        ]
        if origins:
            copy_batch(task, consumer, producer, Transaction(task, origins))


def copy_batch(
    task: Task, consumer: KafkaConsumer, producer: KafkaProducer, transaction: Transaction
) -> None:
    producer.begin_transaction()
    try:
        records = transaction.records()
        for index, (partition, value) in enumerate(records):
            if index == len(records) // 2:
                producer.flush()
                transaction.wait_before("records")
            producer.send(task.target, value, partition=partition)
        producer.flush()
        transaction.wait_before("offsets")
        ends = {
            TopicPartition(task.source, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in transaction.ends().items()
        }
        producer.send_offsets_to_transaction(ends, consumer.group_metadata())
        transaction.wait_before("end")
        if transaction.must_abort:
            producer.abort_transaction()
            for partition, offset in transaction.starts().items():
                consumer.seek(TopicPartition(task.source, partition), offset)
        else:
            producer.commit_transaction()
    except KafkaError as error:
        report("failed", str(error))
        abort(producer)
        raise
    transaction.report_end()


def abort(producer: KafkaProducer) -> None:
    """Abort after an error. While the producer asks for a new epoch, it refuses to."""
    deadline = time.monotonic() + tasks.TIMEOUT_MS / 1000
    while True:
        try:
            producer.abort_transaction()
        except KafkaError as error:
            if "BUMPING_PRODUCER_EPOCH" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(tasks.BACKOFF_MS / 1000)
        else:
            return


if __name__ == "__main__":
    main(Task(*sys.argv[1:]))
