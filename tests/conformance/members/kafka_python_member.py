"""A member of a group by kafka-python."""

import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConnectionError, KafkaError

from tests.conformance.members import events

# Longer than any rebalance here: kafka-python 3.0.12 forgets a rebalance that ends just when its
# poll times out, and then neither reads nor sends heartbeats any more.
POLL_MS = 5000
RETRY_SECONDS = 0.1
ASSIGNORS = {
    each.name: each
    for each in (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
}


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
        session_timeout_ms=wanted.session_timeout_ms,
        heartbeat_interval_ms=events.HEARTBEAT_INTERVAL_MS,
        metadata_max_age_ms=events.METADATA_MAX_AGE_MS,
        partition_assignment_strategy=(ASSIGNORS[wanted.assignor or "range"],),
    )
    topics = {"pattern": wanted.topic} if wanted.is_pattern else {"topics": [wanted.topic]}
    if not wanted.is_pattern:
        # A leader that does not know the topic yet assigns nothing to itself. In about one of
        # twenty starts it stays so, because kafka-python misses the metadata that follows.
        consumer.partitions_for_topic(wanted.topic)
    consumer.subscribe(**topics, listener=_Listener())
    events.say("startup_complete")
    while not stop.requested:
        polled = _poll(consumer)
        if polled:
            events.say_consumed({at: [each.offset for each in got] for at, got in polled.items()})
            _commit(consumer, {at: got[-1].offset + 1 for at, got in polled.items()})
    consumer.close(autocommit=False)
    events.say("shutdown_complete")


def _poll(consumer: KafkaConsumer) -> dict[TopicPartition, list[ConsumerRecord]]:
    """Poll; kafka-python raises an error where the others wait for a broker that is away."""
    try:
        return consumer.poll(timeout_ms=POLL_MS)
    except KafkaConnectionError as error:
        events.say("poll_failed", error=repr(error))
        time.sleep(RETRY_SECONDS)
        return {}


def _commit(consumer: KafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
    asked_ms = events.now_ms()
    try:
        consumer.commit({at: OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()})
    except KafkaError as error:
        events.say_committed(offsets, asked_ms, error)
    else:
        events.say_committed(offsets, asked_ms, None)


if __name__ == "__main__":
    main()
