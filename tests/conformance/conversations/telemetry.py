"""Clients ask which metrics to push, and push them (KIP-714).

Kafka serves these requests also without a receiver; only ApiVersions does not name them then.
"""

from collections.abc import Mapping

from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest
from odradek.protocol.primitives import ZERO_UUID, random_uuid
from tests.conformance.conversation import Conversation, only, patiently
from tests.support.config_requests import alter_configs_request
from tests.support.otlp import gauge, metrics_data

CLIENT_METRICS = 16
VERSION = 0
PUSHED = metrics_data(gauge("org.apache.kafka.producer.a", 1.0))
ONE_UUID = bytes(15) + b"\x01"


def clients_ask_for_their_subscription(talk: Conversation) -> None:
    first = talk.ask(_get(ZERO_UUID), VERSION, _without_ids)
    talk.ask(_get(first.client_instance_id), VERSION, title="too soon")
    for id_ in _ids(3):
        talk.ask(_get(id_), VERSION)
        talk.ask(_get(id_), VERSION)
    talk.ask(_get(ONE_UUID), VERSION)
    talk.close()  # the broker forgets the client of the connection


def subscriptions_are_for_some_clients(talk: Conversation) -> None:
    names = {f"org.apache.kafka.{word}." for word in ("producer", "consumer", "admin")}
    more = {"one", "two", "three"}
    settings = {"metrics": ",".join(sorted(names)), "interval.ms": "100000"}
    _subscribe(talk, "all", settings, names)
    _ask_all(talk)
    for matches, match in (
        (True, "client_id=ta.*"),
        (False, "client_id=ta"),
        (True, "client_software_name=unknown,client_source_address=127.*"),
        (False, "client_source_port=[a-z]+"),
    ):
        settings = {"metrics": "one,two,three", "interval.ms": "2000", "match": match}
        _subscribe(talk, "some", settings, names | more if matches else names)
        _ask_all(talk)
    _subscribe(talk, "some", {"metrics": "*", "match": None}, {"*"})
    _ask_all(talk)
    _subscribe(talk, "some", dict.fromkeys(("metrics", "interval.ms")), names)
    _subscribe(talk, "all", dict.fromkeys(("metrics", "interval.ms")), set())
    _ask_all(talk)


def clients_push(talk: Conversation) -> None:
    for compression in (*CompressionType, 5, -1):
        known = compression in tuple(CompressionType)
        content = compress(CompressionType(compression), PUSHED) if known else PUSHED
        subscription = talk.silently(_get(random_uuid()), VERSION)
        talk.ask(_push(subscription, content, compression), VERSION, title=f"push {compression}")
        talk.ask(_push(subscription, content, compression), VERSION, title=f"again {compression}")
        last = _push(subscription, content, compression, terminating=True)
        talk.ask(last, VERSION, title=f"the last push {compression}")
        talk.ask(last, VERSION, title=f"after the last push {compression}")


def pushes_are_refused(talk: Conversation) -> None:
    for title, compression, content in (
        ("nothing", 0, b""),
        ("too much", 0, bytes((1 << 20) + 1)),
        ("no gzip", 1, b"garbage"),
        ("no snappy", 2, b"\xffgarbage"),
        ("no lz4", 3, b"garbage"),
        ("no zstd", 4, b"garbage"),
        ("nothing of gzip", 1, b""),
        ("of another subscription", 0, PUSHED),
    ):
        subscription = talk.silently(_get(random_uuid()), VERSION)
        if title == "of another subscription":
            id_ = subscription.client_instance_id
            subscription = GetTelemetrySubscriptionsResponse(client_instance_id=id_)
        talk.ask(_push(subscription, content, compression), VERSION, title=title)
        talk.ask(_get(subscription.client_instance_id), VERSION, _without_ids, title="ask again")
    for id_ in (ZERO_UUID, ONE_UUID):
        nobody = GetTelemetrySubscriptionsResponse(client_instance_id=id_)
        talk.ask(_push(nobody, PUSHED, 0), VERSION)
    unknown = GetTelemetrySubscriptionsResponse(client_instance_id=random_uuid())
    talk.ask(_push(unknown, PUSHED, 0), VERSION, title="of a client that has not asked")


def _ask_all(talk: Conversation) -> None:
    for id_ in _ids(3):
        talk.ask(_get(id_), VERSION)


def _subscribe(
    talk: Conversation, name: str, settings: Mapping[str, str | None], expected: set[str]
) -> None:
    """Change a subscription, and return when a new client gets the expected metrics."""
    talk.ask(alter_configs_request(CLIENT_METRICS, name, settings), 1)
    patiently(
        lambda: (
            set(talk.silently(_get(random_uuid()), VERSION).requested_metrics) == expected or None
        )
    )


def _get(id_: bytes) -> GetTelemetrySubscriptionsRequest:
    return GetTelemetrySubscriptionsRequest(client_instance_id=id_)


def _push(
    subscription: GetTelemetrySubscriptionsResponse,
    content: bytes,
    compression: int,
    *,
    terminating: bool = False,
) -> PushTelemetryRequest:
    return PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        terminating=terminating,
        compression_type=compression,
        metrics=content,
    )


def _without_ids(answer: GetTelemetrySubscriptionsResponse) -> object:
    """The id of a client is drawn, and so is that of its subscription."""
    names = {*answer.__struct_fields__} - {"client_instance_id", "subscription_id"}  # type: ignore[attr-defined] # schema.py hides the base
    return only(answer, *sorted(names))


def _ids(count: int) -> list[bytes]:
    """Ids of clients, from which subscription ids are made."""
    return [bytes([0x71, 0x40, 0x14, *[0] * 12, number + 1]) for number in range(count)]
