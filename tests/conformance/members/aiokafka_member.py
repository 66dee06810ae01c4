"""A member of a group by aiokafka."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from tests.conformance.members import events

ASSIGNORS = {
    each.name: each
    for each in (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
}


class _Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        events.say_revoked(revoked)

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        events.say_assigned(assigned)


async def main() -> None:
    """Read and commit until SIGTERM."""
    wanted = events.arguments()
    stop = events.Stop()
    consumer = AIOKafkaConsumer(
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
    consumer.subscribe(**topics, listener=_Listener())
    await consumer.start()
    events.say("startup_complete")
    while not stop.requested:
        polled = await consumer.getmany(timeout_ms=200)
        if polled:
            events.say_consumed({at: [each.offset for each in got] for at, got in polled.items()})
            await _commit(consumer, {at: got[-1].offset + 1 for at, got in polled.items()})
    await consumer.stop()
    events.say("shutdown_complete")


async def _commit(consumer: AIOKafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
    asked_ms = events.now_ms()
    try:
        await consumer.commit(offsets)
    except KafkaError as error:
        events.say_committed(offsets, asked_ms, error)
    else:
        events.say_committed(offsets, asked_ms, None)


if __name__ == "__main__":
    asyncio.run(main())
