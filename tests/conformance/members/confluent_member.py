"""A member of a group by confluent-kafka."""

from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.conformance.members import events

REMOTE_ASSIGNOR = "group.remote.assignor"


def main() -> None:
    """Read and commit until SIGTERM."""
    wanted = events.arguments()
    stop = events.Stop()
    settings = {
        "bootstrap.servers": wanted.bootstrap,
        "group.id": wanted.group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "group.protocol": wanted.protocol,
        "topic.metadata.refresh.interval.ms": events.METADATA_MAX_AGE_MS,
        "reconnect.backoff.max.ms": 500,
    }
    if wanted.protocol == "classic":  # else they are the broker's affair
        settings["session.timeout.ms"] = wanted.session_timeout_ms
        settings["heartbeat.interval.ms"] = events.HEARTBEAT_INTERVAL_MS
    if wanted.assignor:
        by = "partition.assignment.strategy" if wanted.protocol == "classic" else REMOTE_ASSIGNOR
        settings[by] = wanted.assignor
    if wanted.instance:
        settings["group.instance.id"] = wanted.instance
    consumer = Consumer(settings)
    consumer.subscribe(
        [wanted.topic],
        on_assign=lambda _, partitions: events.say_assigned(partitions),
        on_revoke=lambda _, partitions: events.say_revoked(partitions),
    )
    events.say("startup_complete")
    while not stop.requested:
        polled: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                polled[TopicPartition(message.topic(), message.partition())].append(
                    message.offset()
                )
        if polled:
            events.say_consumed(polled)
            _commit(consumer, {at: got[-1] + 1 for at, got in polled.items()})
    consumer.close()
    events.say("shutdown_complete")


def _commit(consumer: Consumer, offsets: dict[TopicPartition, int]) -> None:
    asked_ms = events.now_ms()
    places = [TopicPartition(at.topic, at.partition, offset) for at, offset in offsets.items()]
    try:
        answers = consumer.commit(offsets=places, asynchronous=False)
        errors = [answer.error for answer in answers if answer.error]
    except KafkaException as error:
        events.say_committed(offsets, asked_ms, error)
    else:
        events.say_committed(offsets, asked_ms, KafkaException(errors[0]) if errors else None)


if __name__ == "__main__":
    main()
