"""Copies with confluent-kafka; see task.py."""

import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.crash.copiers import task as tasks
from tests.crash.copiers.task import Origin, Task, Transaction, batch_size, report

TIMEOUT_S = tasks.TIMEOUT_MS / 1000


def main(task: Task) -> None:
    try:
        copy(task)
    except KafkaException as error:
        report_error(error)


def copy(task: Task) -> None:
    servers = {
        "bootstrap.servers": task.bootstrap,
        "reconnect.backoff.max.ms": tasks.LONGEST_BACKOFF_MS,
        "log_level": 0,
    }
    producer = Producer(
        {
            **servers,
            "transactional.id": task.name,
            "transaction.timeout.ms": tasks.TRANSACTION_MS,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    settings: dict[str, Any] = {
        **servers,
        "group.id": task.name,
        "group.protocol": task.protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    if task.protocol == "classic":  # the broker sets it for the consumer protocol
        settings["session.timeout.ms"] = tasks.SESSION_MS
        settings["heartbeat.interval.ms"] = tasks.HEARTBEAT_MS
    consumer = Consumer(settings)
    # With callbacks a rebalance happens in `consume` only, and never inside a transaction.
    consumer.subscribe([task.source], on_assign=_ignore, on_revoke=_ignore)
    try:
        while True:
            messages = consumer.consume(batch_size(), tasks.POLL_MS / 1000)
            origins = [_origin(each) for each in messages if each.error() is None]
            if origins:
                copy_batch(task, consumer, producer, origins)
    finally:
        consumer.close()


def copy_batch(task: Task, consumer: Consumer, producer: Producer, origins: list[Origin]) -> None:
    transaction = Transaction(task, origins)
    producer.begin_transaction()
    try:
        records = transaction.records()
        for index, (partition, value) in enumerate(records):
            if index == len(records) // 2:
                producer.flush(TIMEOUT_S)
                transaction.wait_before("records")
            producer.produce(task.target, value, partition=partition)
        producer.flush(TIMEOUT_S)
        transaction.wait_before("offsets")
        ends = [TopicPartition(task.source, *each) for each in transaction.ends().items()]
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(ends, group, TIMEOUT_S)
        transaction.wait_before("end")
        if transaction.must_abort:
            producer.abort_transaction(TIMEOUT_S)
            for start in transaction.starts().items():
                consumer.seek(TopicPartition(task.source, *start))
        else:
            producer.commit_transaction(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            report_error(error)
            producer.abort_transaction(TIMEOUT_S)
        elif error.args[0].code() == KafkaError._FATAL:
            producer.abort_transaction(TIMEOUT_S)  # raises the cause, which `produce` does not name
        raise
    transaction.report_end()


def report_error(error: KafkaException) -> None:
    cause: KafkaError = error.args[0]
    if cause.code() == KafkaError._FENCED:
        report("fenced", cause.name())
    else:
        report("failed", f"{cause.name()}: {cause.str()}")


def _origin(message: Any) -> Origin:
    return Origin(message.partition(), message.offset(), message.value())


def _ignore(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """The consumer does what is to be done."""


if __name__ == "__main__":
    main(Task(*sys.argv[1:]))
