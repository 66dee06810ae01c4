"""librdkafka; see task.py. Its transactions are of version 1.

Its AdminClient may end its process when a broker dies: "rd_kafka_enq_once_del_source_return:
Assertion `eonce->refcnt > 0' failed". So it is used in a process that is started again.
"""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.proof.clients import task as tasks
from tests.proof.clients.task import KEPT, MOVED, READ, RENEWED, Recorder, Row, Task, Values


def main(task: Task) -> None:
    recorder, must_end = Recorder(), tasks.until_terminated()
    servers = {
        "bootstrap.servers": task.bootstrap,
        "reconnect.backoff.max.ms": tasks.LONGEST_BACKOFF_MS,
        "log_level": 0,
    }
    roles: dict[str, Callable[..., None]] = {
        "write": write,
        "renew": write,
        "read": read,
        "group": work,
        "transact": work,
        "watch": watch,
    }
    try:
        roles[task.role](task, recorder, servers, must_end.is_set)
    except KafkaException as error:
        sys.stderr.write(f"{task.process}: {error}\n")


def write(
    task: Task, recorder: Recorder, servers: dict[str, Any], is_over: Callable[[], bool]
) -> None:
    topic = KEPT if task.role == "write" else RENEWED
    values = Values(task)
    producer = Producer(
        {**servers, "enable.idempotence": topic == KEPT, "acks": "all", "linger.ms": 2}
    )
    while not is_over():
        if len(producer) < tasks.UNANSWERED:
            for _ in range(tasks.BURST):
                row = values.next(topic)
                number = recorder.begin("work", sends=[row])
                producer.produce(
                    topic, row[2], partition=row[1], on_delivery=delivered(recorder, number, row)
                )
        producer.poll(tasks.PAUSE_S)
        time.sleep(tasks.PAUSE_S)
    producer.flush(tasks.TIMEOUT_S)


def delivered(recorder: Recorder, number: int, row: Row) -> Callable[[Any, Message], None]:
    def note(error: KafkaError | None, message: Message) -> None:
        if error is None:
            recorder.add(number, "ok", sends=[[*row[:3], message.offset()]])

    return note


def consumer_of(task: Task, servers: dict[str, Any]) -> Consumer:
    settings: dict[str, Any] = {
        **servers,
        "group.id": task.group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    if task.protocol == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        is_eager = task.protocol == "eager"
        settings["partition.assignment.strategy"] = "range" if is_eager else "cooperative-sticky"
        settings["session.timeout.ms"] = tasks.SESSION_MS
        settings["heartbeat.interval.ms"] = tasks.HEARTBEAT_MS
    return Consumer(settings)


def polled(consumer: Consumer) -> list[Row]:
    return [
        [each.topic(), each.partition(), each.offset(), (each.value() or b"").decode()]
        for each in consumer.consume(tasks.MAX_POLLED, tasks.POLL_S)
        if each.error() is None
    ]


def read(
    task: Task, recorder: Recorder, servers: dict[str, Any], is_over: Callable[[], bool]
) -> None:
    consumer = consumer_of(task, servers)
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in READ])
    recorder.note("assign", new=READ, from_beginning=True)
    while not is_over():
        began = time.monotonic_ns()
        if polls := polled(consumer):
            recorder.add(recorder.begin("work", at=began), "ok", polls=polls)
    consumer.close()


def work(
    task: Task, recorder: Recorder, servers: dict[str, Any], is_over: Callable[[], bool]
) -> None:
    producer = None
    if task.role == "transact":
        producer = Producer(
            {
                **servers,
                "transactional.id": task.name,
                "transaction.timeout.ms": tasks.TRANSACTION_MS,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(tasks.TIMEOUT_S)
    values = Values(task)
    consumer = consumer_of(task, servers)

    def assigned(_: Consumer, places: list[TopicPartition]) -> None:
        recorder.note("assign", new=[[each.topic, each.partition] for each in places])

    def revoked(_: Consumer, places: list[TopicPartition]) -> None:
        """With a callback, partitions are revoked in `consume` only, and so in no transaction."""

    consumer.subscribe([KEPT, MOVED], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while not is_over():
        began = time.monotonic_ns()
        polls = polled(consumer)
        if producer is not None:
            transact(recorder, began, polls, values, task, consumer, producer)
            time.sleep(tasks.PAUSE_S)
        elif polls:
            recorder.add(recorder.begin("work", at=began), "ok", polls=polls)
            commit(recorder, polls, task, consumer)
    consumer.close()


def commit(recorder: Recorder, polls: list[Row], task: Task, consumer: Consumer) -> None:
    offsets = tasks.ends(polls)
    number = recorder.begin("commit", group=task.group, offsets=tasks.rows(offsets))
    places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
    try:
        done = consumer.commit(offsets=places, asynchronous=False)
    except KafkaException:
        return  # somebody else reads on from where this group is
    if all(each.error is None for each in done):
        recorder.add(number, "ok")


def transact(
    recorder: Recorder,
    began: int,
    polls: list[Row],
    values: Values,
    task: Task,
    consumer: Consumer,
    producer: Producer,
) -> None:
    sends = values.some(MOVED)
    offsets = tasks.ends(polls)
    number = recorder.begin(
        "work",
        at=began,
        is_transaction=True,
        polls=polls,
        sends=sends,
        group=task.group,
        offsets=tasks.rows(offsets),
    )
    producer.begin_transaction()
    try:
        for row in sends:
            producer.produce(MOVED, row[2], partition=row[1], on_delivery=placed(row))
        if offsets:
            places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
            metadata = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(places, metadata, tasks.TIMEOUT_S)
        producer.flush(tasks.TIMEOUT_S)
        if values.random.random() < tasks.ABORTED_SHARE:
            producer.abort_transaction(tasks.TIMEOUT_S)
            recorder.add(number, "fail", sends=sends)
            for place, offset in tasks.starts(polls).items():
                consumer.seek(TopicPartition(*place, offset))
            recorder.note("assign", new=[*tasks.starts(polls)])
            return
        recorder.add(number, "commit", sends=sends)
        producer.commit_transaction(tasks.TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(tasks.TIMEOUT_S)
        raise
    recorder.add(number, "ok", sends=sends)


def placed(row: Row) -> Callable[[Any, Message], None]:
    def note(error: KafkaError | None, message: Message) -> None:
        if error is None:
            row[3] = message.offset()

    return note


def watch(
    task: Task, recorder: Recorder, servers: dict[str, Any], is_over: Callable[[], bool]
) -> None:
    admin = AdminClient(servers)
    while not is_over():
        for group in task.group.split(","):
            time.sleep(tasks.WATCH_S)
            with contextlib.suppress(KafkaException, TimeoutError):
                watch_group(admin, recorder, group)


def watch_group(admin: AdminClient, recorder: Recorder, group: str) -> None:
    number = recorder.begin("committed", group=group)
    request = [ConsumerGroupTopicPartitions(group)]
    asked = admin.list_consumer_group_offsets(
        request, require_stable=True, request_timeout=tasks.TIMEOUT_S
    )
    found = asked[group].result(tasks.TIMEOUT_S).topic_partitions
    if all(each.error is None for each in found):
        offsets = [[each.topic, each.partition, each.offset] for each in found]
        recorder.add(number, "ok", offsets=offsets)
    described = admin.describe_consumer_groups([group], request_timeout=tasks.TIMEOUT_S)
    owners = {
        each.member_id: [[one.topic, one.partition] for one in each.assignment.topic_partitions]
        for each in described[group].result(tasks.TIMEOUT_S).members
    }
    recorder.note("owners", group=group, owners=owners)


if __name__ == "__main__":
    main(Task(*sys.argv[1:]))
