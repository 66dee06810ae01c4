"""The administrator's client: connects, and turns every error into a CommandError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import typer
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from .client_config import client_settings
from .connecting import TIMEOUT_S, connected
from .failure import ADVICE, CommandError, kafka_failure
from .positions import Partition
from .request_parts import request_parts

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


def report_each(
    what: str, done: str, futures: Mapping[str, Future[Any]], harmless: int | None = None
) -> None:
    """Print `done` and the name of each that succeeded. Raises CommandError with all that failed.

    `harmless`: the code of an error that is ignored.
    """
    failures = []
    for name, future in futures.items():
        try:
            result(f"{what} {name}", future)
        except CommandError as error:
            if harmless is None or not _has_failed_by(future, harmless):
                failures.append(str(error))
        else:
            typer.echo(f"{done} {name}")
    if failures:
        raise CommandError("; ".join(failures))


def _has_failed_by(future: Future[Any], code: int) -> bool:
    error = future.exception() if future.done() else None
    return isinstance(error, KafkaException) and error.args[0].code() == code


def partition_offsets(
    admin: AdminClient,
    partitions: Iterable[Partition],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[Partition, int]:
    """The offset in each partition; -1: none. Raises CommandError if one does not answer."""
    asked = _list_offsets(admin, partitions, spec, isolation)
    return {key: result(f"offsets of {key[0]}", future).offset for key, future in asked.items()}


def known_offsets(
    admin: AdminClient, partitions: Iterable[Partition], spec: OffsetSpec
) -> dict[Partition, int | None]:
    """The offset in each partition; None if it does not answer: it has no leader, for example."""
    known: dict[Partition, int | None] = {}
    for key, future in _list_offsets(admin, partitions, spec).items():
        known[key] = None
        with suppress(CommandError):
            known[key] = result(f"offsets of {key[0]}", future).offset
    return known


def _list_offsets(
    admin: AdminClient,
    partitions: Iterable[Partition],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[Partition, Future[ListOffsetsResultInfo]]:
    asked: dict[Partition, Future[ListOffsetsResultInfo]] = {}
    for part in request_parts(list(partitions)):
        wanted = {TopicPartition(*key): spec for key in part}
        futures = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=TIMEOUT_S)
        asked.update(((key.topic, key.partition), future) for key, future in futures.items())
    return asked
