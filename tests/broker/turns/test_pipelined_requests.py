"""A client that sends thousands of small requests at once keeps nobody waiting."""

import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.protocol.api_keys import ApiKey
from tests.support.long_requests import TOPIC
from tests.support.requests import build
from tests.support.topics import create_topic
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient, request_frame

pytestmark = pytest.mark.slow

REQUESTS = 4_000
# A turn that was long is measured again: the first one may have compiled a codec.
ATTEMPTS = 15
ANSWER_SECONDS = 60.0
PIPELINED = (
    ApiKey.API_VERSIONS,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.HEARTBEAT,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.END_TXN,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with measured_broker(Path(tmp_path_factory.mktemp("pipelined"))) as started:
        create_topic(started.bootstrap, TOPIC)
        yield started


@pytest.mark.parametrize("api", PIPELINED, ids=lambda api: api.name)
def test_pipelined_requests_keep_nobody_waiting(broker: MeasuredBroker, api: ApiKey) -> None:
    longest = float("inf")
    for _ in range(ATTEMPTS):
        broker.turns()
        with WireClient(broker.port, timeout_s=ANSWER_SECONDS) as client:
            assert answers_to(client, frames_of(api)) == list(range(REQUESTS))
        longest = min(longest, broker.turns().longest_ms)
        if longest <= TURN_MS:
            break
    assert longest <= TURN_MS, "the longest turn of the event loop, in milliseconds of CPU"


def frames_of(api: ApiKey) -> bytes:
    """The same request again and again; only the correlation ids differ."""
    message = request_class(HANDLERS[api])
    version = message.SPEC.advertised.highest
    request = build(message, version)
    return b"".join(request_frame(request, version, at, "p") for at in range(REQUESTS))


def answers_to(client: WireClient, frames: bytes) -> list[int]:
    """The correlation ids of the answers, in their order."""
    sending = threading.Thread(target=client.send, args=(frames,))
    sending.start()
    ids = [struct.unpack_from(">i", client.read_frame())[0] for _ in range(REQUESTS)]
    sending.join()
    return ids
