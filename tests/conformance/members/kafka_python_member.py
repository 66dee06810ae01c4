"""A member of a group by kafka-python."""

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from tests.conformance.members import events

# Longer than any rebalance here: kafka-python 3.0.12 forgets a rebalance that ends just when its
# poll times out, and then neither reads nor sends heartbeats any more.
POLL_MS = 5000


class _Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        events.say_revoked(revoked)

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        events.say_assigned(assigned)


def main() -> None:
    """Read and commit until SIGTERM."""
    wanted = events.arguments()
    stop = events.Stop()
    consumer = KafkaConsumer(
        bootstrap_servers=wanted.bootstrap,
        group_id=wanted.group,
        group_instance_id=wanted.instance,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=events.SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=events.HEARTBEAT_INTERVAL_MS,
    )
    consumer.subscribe([wanted.topic], listener=_Listener())
    events.say("startup_complete")
    while not stop.requested:
        polled = consumer.poll(timeout_ms=POLL_MS)
        if polled:
            events.say_consumed({at: [each.offset for each in got] for at, got in polled.items()})
            _commit(consumer, {at: got[-1].offset + 1 for at, got in polled.items()})
    consumer.close(autocommit=False)
    events.say("shutdown_complete")


def _commit(consumer: KafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
    try:
        consumer.commit({at: OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()})
    except KafkaError as error:
        events.say_committed(offsets, error)
    else:
        events.say_committed(offsets, None)


if __name__ == "__main__":
    main()
