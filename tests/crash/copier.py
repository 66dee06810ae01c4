"""Copies one topic to another in transactions, through any number of failures of the broker.

A program, so that a test can kill it: it continues where its committed offsets are.
"""

import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

BATCH = 20
TIMEOUT_S = 10.0


def main(bootstrap: str, source: str, target: str, protocol: str) -> None:
    while True:
        copy_until_it_fails(bootstrap, source, target, protocol)


def copy_until_it_fails(bootstrap: str, source: str, target: str, protocol: str) -> None:
    name = f"copier-of-{source}"
    servers = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, "log_level": 0}
    settings: dict[str, Any] = {
        **servers,
        "group.id": name,
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    if protocol == "classic":  # the broker sets it for the consumer protocol
        settings |= {"session.timeout.ms": 2000, "heartbeat.interval.ms": 500}
    consumer = Consumer(settings)
    producer = Producer({**servers, "transactional.id": name, "transaction.timeout.ms": 20_000})
    consumer.subscribe([source])
    try:
        producer.init_transactions(TIMEOUT_S)
        while True:
            copy_batch(consumer, producer, source, target)
    except KafkaException:
        pass  # begin again with a new producer: it ends what this one left
    finally:
        consumer.close()


def copy_batch(consumer: Consumer, producer: Producer, source: str, target: str) -> None:
    messages = [each for each in consumer.consume(BATCH, 0.2) if each.error() is None]
    if not messages:
        return
    producer.begin_transaction()
    try:
        ends = {}
        for message in messages:
            partition = message.partition()
            producer.produce(target, message.value(), partition=partition)
            ends[partition] = TopicPartition(source, partition, message.offset() + 1)
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([*ends.values()], group, TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(TIMEOUT_S)
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
