"""Connects by librdkafka, and says why if the broker cannot be used.

librdkafka retries until the request times out, and its exception does not name the cause. The cause
goes to `error_cb`, so the failures are collected there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from .failure import ADVICE, CommandError, closed, kafka_failure
from .listener_probe import find_mismatch
from .security_protocol import uses_tls
from .servers import POLL_S, listening_server

TIMEOUT_S = 10.0
# How long to wait after all servers have failed. librdkafka tries one address of a server after
# the other, and `localhost` often has one where nobody listens.
OTHER_ADDRESSES_S = 1.0
# Errors that a retry does not cure.
_FINAL = (KafkaError._AUTHENTICATION, KafkaError._SSL)
# `sasl_ssl://localhost:9093/bootstrap: REASON (after 1ms in state SSL_HANDSHAKE)`
_REPORT = re.compile(
    r"\w+://(?P<server>[^/]+)/\S+: (?P<reason>.*?)(?: \(after \d+ms.*)?", re.DOTALL
)


def connected(settings: Mapping[str, str]) -> AdminClient:
    """A client that the broker has answered. Raises CommandError."""
    host, port = listening_server(settings["bootstrap.servers"])
    failures: list[KafkaError] = []
    configuration: dict[str, Any] = {**settings, "log_level": 0, "error_cb": failures.append}
    with refusal_of_settings():
        client = AdminClient(configuration, logger=None)
    if not _is_answered(client, failures):
        raise _failure(failures, host, port, settings)
    return client


@contextmanager
def refusal_of_settings() -> Iterator[None]:
    """While a client of librdkafka is made: raise CommandError if its settings are refused."""
    try:
        yield
    except (KafkaException, ValueError) as error:
        raise CommandError(f"the settings of the client are refused: {error}") from None


def _is_answered(client: AdminClient, failures: Sequence[KafkaError]) -> bool:
    """Whether the broker answers, even by an error, before all ways to reach it have failed."""
    answered = Event()
    answer: Future[object] = client.describe_cluster(request_timeout=TIMEOUT_S)
    answer.add_done_callback(lambda _: answered.set())
    deadline = time.monotonic() + TIMEOUT_S
    while not answered.wait(POLL_S):
        client.poll(0)
        codes = [each.code() for each in failures]
        if KafkaError._ALL_BROKERS_DOWN in codes:
            if any(code in codes for code in _FINAL):
                return False
            deadline = min(deadline, time.monotonic() + OTHER_ADDRESSES_S)
        if time.monotonic() > deadline:
            return False
    error = answer.exception()
    return not isinstance(error, KafkaException) or error.args[0].code() != KafkaError._TIMED_OUT


def _failure(
    failures: Sequence[KafkaError], host: str, port: int, settings: Mapping[str, str]
) -> CommandError:
    """Why the broker cannot be used."""
    reasons = [each for each in failures if each.code() != KafkaError._ALL_BROKERS_DOWN]
    if not reasons or reasons[-1].code() not in _FINAL:
        mismatch = find_mismatch(host, port, uses_tls=uses_tls(settings))
        if mismatch is not None:
            return CommandError(f"{mismatch.text}; {mismatch.advice}")
    if not failures:
        return CommandError(f"{host}:{port} does not answer; {ADVICE['_TIMED_OUT']}")
    if not reasons:
        return closed(f"{host}:{port}", settings)
    found = _REPORT.fullmatch(reasons[-1].str())
    server, reason = found.groups() if found else (f"{host}:{port}", reasons[-1].str())
    return kafka_failure(f"cannot use {server}", reasons[-1], reason)
