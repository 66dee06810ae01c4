"""The three libraries for Python, for scripts of failures."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaTopicPartition
from aiokafka import errors as aiokafka_errors
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import KafkaException, ShareConsumer, TopicPartition
from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from tests.conformance.cluster.client import (
    LIMIT_SECONDS,
    POLL_RECORDS,
    POLL_SECONDS,
    REQUEST_MS,
    Consumer,
    ConsumerSettings,
    NotThereError,
    Producer,
    ProducerSettings,
)

T = TypeVar("T")


class _KafkaPythonProducer:
    def __init__(self, settings: ProducerSettings) -> None:
        more = {} if settings.retries is None else {"retries": settings.retries}
        self._producer = KafkaProducer(
            bootstrap_servers=settings.bootstrap.split(","),
            client_id=settings.client,
            acks="all",
            enable_idempotence=True,
            transactional_id=settings.transactional_id,
            request_timeout_ms=settings.timeout_ms or REQUEST_MS,
            linger_ms=5,
            **more,
        )
        self._sent: list[Any] = []
        if settings.transactional_id:
            self._producer.init_transactions()

    def send(self, topic: str, partition: int, value: str) -> None:
        self._sent.append(self._producer.send(topic, value.encode(), partition=partition))

    def flush(self) -> list[str]:
        self._producer.flush(LIMIT_SECONDS)
        sent, self._sent = self._sent, []
        failed = []
        for future in sent:
            try:
                future.get(LIMIT_SECONDS)
            except KafkaError as error:
                failed.append(type(error).__name__)
        return failed

    def begin(self) -> None:
        self._producer.begin_transaction()

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        one = {KafkaTopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)}
        self._producer.send_offsets_to_transaction(one, group)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=5)


class _KafkaPythonConsumer:
    def __init__(self, settings: ConsumerSettings) -> None:
        self._consumer = KafkaConsumer(
            settings.topic,
            bootstrap_servers=settings.bootstrap.split(","),
            client_id=settings.client,
            group_id=settings.group,
            client_rack=settings.rack or "",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=45_000,
            max_poll_records=POLL_RECORDS,
        )

    def poll(self) -> list[str]:
        polled = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        return [record.value.decode() for batch in polled.values() for record in batch]

    def commit(self) -> None:
        _patiently(self._consumer.commit, lambda error: getattr(error, "retriable", False))

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class KafkaPython:
    """kafka-python."""

    def why_not(self) -> str | None:
        return None

    def producer(self, settings: ProducerSettings) -> Producer:
        return _KafkaPythonProducer(settings)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return _KafkaPythonConsumer(settings)

    def share_consumer(self, settings: ConsumerSettings) -> Consumer:
        raise NotThereError


class _LibrdkafkaProducer:
    def __init__(self, settings: ProducerSettings) -> None:
        given: dict[str, Any] = {
            "bootstrap.servers": settings.bootstrap,
            "client.id": settings.client,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
        if settings.retries is not None:
            given["message.send.max.retries"] = settings.retries
        if settings.timeout_ms is not None:
            given["socket.timeout.ms"] = settings.timeout_ms
        if settings.transactional_id:
            given["transactional.id"] = settings.transactional_id
        self._bootstrap = settings.bootstrap
        self._producer = LibrdkafkaProducer(given)
        self._failed: list[str] = []
        if settings.transactional_id:
            self._producer.init_transactions(LIMIT_SECONDS)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._producer.produce(topic, value, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(error.name())

    def flush(self) -> list[str]:
        left = self._producer.flush(LIMIT_SECONDS)
        failed, self._failed = self._failed, []
        return failed + ["left"] * left

    def begin(self) -> None:
        self._producer.begin_transaction()

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        consumer = LibrdkafkaConsumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        try:
            metadata = consumer.consumer_group_metadata()
            one = [TopicPartition(topic, partition, offset)]
            _patiently(
                lambda: self._producer.send_offsets_to_transaction(one, metadata, LIMIT_SECONDS),
                lambda error: error.args[0].retriable(),
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        _patiently(
            lambda: self._producer.commit_transaction(LIMIT_SECONDS),
            lambda error: error.args[0].retriable(),
        )

    def abort(self) -> None:
        _patiently(
            lambda: self._producer.abort_transaction(LIMIT_SECONDS),
            lambda error: error.args[0].retriable(),
        )

    def close(self) -> None:
        self._producer.flush(5)


def _librdkafka_reading(settings: ConsumerSettings) -> dict[str, Any]:
    given = {
        "bootstrap.servers": settings.bootstrap,
        "client.id": settings.client,
        "group.id": settings.group,
        "log_level": 0,
    }
    return given | ({"client.rack": settings.rack} if settings.rack else {})


class _LibrdkafkaConsumer:
    def __init__(self, settings: ConsumerSettings) -> None:
        self._consumer = LibrdkafkaConsumer(
            {
                **_librdkafka_reading(settings),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([settings.topic])

    def poll(self) -> list[str]:
        messages = self._consumer.consume(POLL_RECORDS, POLL_SECONDS)
        return [(one.value() or b"").decode() for one in messages if one.error() is None]

    def commit(self) -> None:
        _patiently(
            lambda: self._consumer.commit(asynchronous=False),
            lambda error: error.args[0].retriable() or error.args[0].name() in _PASSES,
        )

    def close(self) -> None:
        self._consumer.close()


# librdkafka does not call these retriable for a commit; the next one goes to the new coordinator.
_PASSES = ("_WAIT_COORD", "_TRANSPORT", "_TIMED_OUT", "NOT_COORDINATOR", "REQUEST_TIMED_OUT")


class _LibrdkafkaShareConsumer:
    def __init__(self, settings: ConsumerSettings) -> None:
        self._consumer = ShareConsumer(_librdkafka_reading(settings))
        self._consumer.subscribe([settings.topic])

    def poll(self) -> list[str]:
        messages = self._consumer.poll(POLL_SECONDS)
        return [(one.value() or b"").decode() for one in messages if one.error() is None]

    def commit(self) -> None:
        self._consumer.commit_sync(LIMIT_SECONDS)

    def close(self) -> None:
        self._consumer.close()


class Librdkafka:
    """confluent-kafka."""

    def why_not(self) -> str | None:
        return None

    def producer(self, settings: ProducerSettings) -> Producer:
        return _LibrdkafkaProducer(settings)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return _LibrdkafkaConsumer(settings)

    def share_consumer(self, settings: ConsumerSettings) -> Consumer:
        return _LibrdkafkaShareConsumer(settings)


class _Loop:
    """An event loop in a thread of its own: the library's tasks go on between the calls."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka")
        self._thread.start()

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(2 * LIMIT_SECONDS)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _AiokafkaProducer:
    def __init__(self, settings: ProducerSettings) -> None:
        if settings.retries is not None:
            raise NotThereError
        self._loop = _Loop()
        self._sent: list[asyncio.Future[Any]] = []
        self._producer = self._loop.run(self._start(settings))

    async def _start(self, settings: ProducerSettings) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=settings.bootstrap,
            client_id=settings.client,
            enable_idempotence=True,
            transactional_id=settings.transactional_id,
            request_timeout_ms=settings.timeout_ms or REQUEST_MS,
            linger_ms=5,
        )
        await producer.start()
        return producer

    def send(self, topic: str, partition: int, value: str) -> None:
        sending = self._producer.send(topic, value.encode(), partition=partition)
        self._sent.append(self._loop.run(sending))

    def flush(self) -> list[str]:
        return self._loop.run(self._flush())

    async def _flush(self) -> list[str]:
        await self._producer.flush()
        sent, self._sent = self._sent, []
        ended = await asyncio.gather(*sent, return_exceptions=True)
        return [type(one).__name__ for one in ended if isinstance(one, BaseException)]

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        one = {AiokafkaTopicPartition(topic, partition): offset}
        self._loop.run(self._producer.send_offsets_to_transaction(one, group))

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())

    def close(self) -> None:
        self._loop.run(self._producer.stop())
        self._loop.end()


class _AiokafkaConsumer:
    def __init__(self, settings: ConsumerSettings) -> None:
        self._loop = _Loop()
        self._consumer = self._loop.run(self._start(settings))

    async def _start(self, settings: ConsumerSettings) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            settings.topic,
            bootstrap_servers=settings.bootstrap,
            client_id=settings.client,
            group_id=settings.group,
            client_rack=settings.rack,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=45_000,
        )
        await consumer.start()
        return consumer

    def poll(self) -> list[str]:
        polling = self._consumer.getmany(
            timeout_ms=int(POLL_SECONDS * 1000), max_records=POLL_RECORDS
        )
        return [one.value.decode() for batch in self._loop.run(polling).values() for one in batch]

    def commit(self) -> None:
        _patiently(
            lambda: self._loop.run(self._consumer.commit()),
            lambda error: getattr(error, "retriable", False),
        )

    def close(self) -> None:
        self._loop.run(self._consumer.stop())
        self._loop.end()


class Aiokafka:
    """aiokafka."""

    def why_not(self) -> str | None:
        return None

    def producer(self, settings: ProducerSettings) -> Producer:
        return _AiokafkaProducer(settings)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return _AiokafkaConsumer(settings)

    def share_consumer(self, settings: ConsumerSettings) -> Consumer:
        raise NotThereError


def _patiently(act: Callable[[], object], may_pass: Callable[[Any], bool]) -> None:
    """Act until it succeeds; an error that may not pass, or that lasts, is raised."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            act()
            return
        except (KafkaException, KafkaError, aiokafka_errors.KafkaError) as error:
            if not may_pass(error) or time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
