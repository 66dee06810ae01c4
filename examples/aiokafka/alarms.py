"""A service that passes on high temperatures as alarms."""

from contextlib import suppress

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import CommitFailedError

LIMIT = 90


async def send_alarms(bootstrap_servers: str) -> None:
    """Consume `temperatures` and produce to `alarms`, at least once, until cancelled."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
    consumer = AIOKafkaConsumer(
        "temperatures",
        bootstrap_servers=bootstrap_servers,
        group_id="alarms",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with producer, consumer:
        async for record in consumer:
            if int(record.value) > LIMIT:
                await producer.send_and_wait("alarms", record.value, key=record.key)
            # When its session has timed out, the record comes again, here or elsewhere.
            with suppress(CommitFailedError):
                await consumer.commit()
