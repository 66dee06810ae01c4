"""The administrator's client: connects, and turns every error into a CommandError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, OffsetSpec

from .client_config import client_settings
from .connecting import TIMEOUT_S, connected
from .failure import ADVICE, CommandError, kafka_failure

K = TypeVar("K")
T = TypeVar("T")


def connect(bootstrap: str | None, file: Path | None) -> AdminClient:
    """A client that the broker has answered. Raises CommandError."""
    return connected(client_settings(bootstrap, file))


def cluster(admin: AdminClient, topic: str | None = None) -> ClusterMetadata:
    """What the broker says of itself and of its topics. Raises CommandError."""
    try:
        return admin.list_topics(topic, timeout=TIMEOUT_S)
    except KafkaException as error:
        raise kafka_failure("the broker does not answer", error.args[0]) from None


def result(what: str, future: Future[T]) -> T:
    """The result of a request. Raises CommandError with what failed."""
    try:
        return future.result(TIMEOUT_S)
    except KafkaException as error:
        raise kafka_failure(what, error.args[0]) from None
    except TimeoutError:
        raise CommandError(
            f"{what}: no answer within {TIMEOUT_S:g} s; {ADVICE['_TIMED_OUT']}"
        ) from None


def results(what: str, futures: Mapping[K, Future[Any]]) -> dict[K, Any]:
    """The results of a request, by key. Raises CommandError for the first that failed."""
    return {key: result(f"{what} {key}", future) for key, future in futures.items()}


def partition_offsets(
    admin: AdminClient,
    partitions: Iterable[tuple[str, int]],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[tuple[str, int], int]:
    """The offset in each partition, by topic and number; -1: none. Raises CommandError."""
    wanted = {TopicPartition(topic, index): spec for topic, index in partitions}
    if not wanted:
        return {}
    found = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=TIMEOUT_S)
    return {
        (key.topic, key.partition): result(f"offsets of {key.topic}", future).offset
        for key, future in found.items()
    }
