"""The administrator's client: connects, and turns every error into a CommandError."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from .client_config import client_settings
from .failure import CommandError, refused

TIMEOUT_S = 10.0
CONNECT_S = 3.0
K = TypeVar("K")
T = TypeVar("T")


def connect(bootstrap: str | None, file: Path | None) -> AdminClient:
    """A client of a broker that listens. Raises CommandError."""
    settings = client_settings(bootstrap, file)
    check_listening(settings["bootstrap.servers"])
    try:
        return AdminClient({**settings, "log_level": 0}, logger=None)
    except (KafkaException, ValueError) as error:
        raise CommandError(f"the settings of the client are refused: {error}") from None


def check_listening(servers: str) -> None:
    """Raise CommandError unless one of the servers accepts a connection.

    librdkafka would try until a timeout, for a broker that is being started.
    """
    failures = []
    for server in filter(None, (each.strip() for each in servers.split(","))):
        host, _, port = server.rpartition(":")
        if not port.isdigit() or not host:
            raise CommandError(f"{server} is not HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except OSError as error:
            failures.append(f"{server}: {error.strerror or error}")
        else:
            return
    raise CommandError(
        f"cannot connect to {', '.join(failures)}; is the broker running (odradek serve),"
        " or is it elsewhere (--bootstrap HOST:PORT)?"
    )


def cluster(admin: AdminClient, topic: str | None = None) -> ClusterMetadata:
    """What the broker says of itself and of its topics. Raises CommandError."""
    try:
        return admin.list_topics(topic, timeout=TIMEOUT_S)
    except KafkaException as error:
        raise refused("the broker does not answer", error.args[0]) from None


def result(what: str, future: Future[T]) -> T:
    """The result of a request. Raises CommandError with what failed."""
    try:
        return future.result(TIMEOUT_S)
    except KafkaException as error:
        raise refused(what, error.args[0]) from None


def results(what: str, futures: Mapping[K, Future[Any]]) -> dict[K, Any]:
    """The results of a request, by key. Raises CommandError for the first that failed."""
    return {key: result(f"{what} {key}", future) for key, future in futures.items()}
