"""No request keeps the event loop for long, whichever of its arrays is long.

For each array of each request there are requests with many equal items, many different ones and
many empty ones. The CPU time of the longest turn of the loop is measured, so that a busy machine
does not matter. Here a request has a mebibyte of different items, or as many as are served, and the
newest version; with ODRADEK_TEST_LENGTH=long also ten, the other kinds, and the oldest version.
"""

from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.broker.turns.slices import MAX_ITEMS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.long_requests import KINDS, TOPIC, LongRequest, long_requests
from tests.support.messages import LONG
from tests.support.topics import create_topic
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient, request_frame

pytestmark = pytest.mark.slow

MEBIBYTE = 2**20
# In short runs items that differ: they are the most work.
KINDS_ASKED = KINDS if LONG else ("different",)
# Bytes, and at most so many items. The last one is refused if it has more than are served.
SIZES = ((MEBIBYTE, MAX_ITEMS - 100), (10 * MEBIBYTE, inf))[: 2 if LONG else 1]
# A turn that was long is measured again: the first one may have compiled a codec.
ATTEMPTS = 15
# A response of 100 MB, on a machine that does other things.
ANSWER_SECONDS = 600.0

# If there are more objects in reference cycles, a request leaves its own behind. They are freed by
# a full collection, which stops the loop.
GARBAGE = 2_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with measured_broker(Path(tmp_path_factory.mktemp("long"))) as started:
        create_topic(started.bootstrap, TOPIC)
        yield started


def longest_turn_ms(broker: MeasuredBroker, frame: bytes) -> float:
    """The longest turn until the request is answered, or its connection is closed."""
    longest = float("inf")
    broker.turns()
    for _ in range(ATTEMPTS):
        with WireClient(broker.port, timeout_s=ANSWER_SECONDS) as client:
            client.send(frame)
            with suppress(ConnectionError):  # it has too many items
                client.read_frame()
        turns = broker.turns()
        longest = min(longest, turns.longest_ms)
        assert turns.garbage < GARBAGE
        if longest <= TURN_MS:
            break
    return longest


@pytest.mark.parametrize("key", HANDLERS, ids=lambda key: key.name)
def test_a_long_array_of_a_request_keeps_nobody_waiting(
    broker: MeasuredBroker, key: ApiKey
) -> None:
    message = request_class(HANDLERS[key])
    versions = message.SPEC.advertised
    found: dict[str, float] = {}
    for version in {versions.lowest, versions.highest} if LONG else {versions.highest}:
        for size_bytes, max_items in SIZES:
            for request in long_requests(message, version):
                if request.kind not in KINDS_ASKED:
                    continue
                frame = request_frame(request.make(size_bytes, max_items), version, 1, "long")
                turn_ms = longest_turn_ms(broker, frame)
                if turn_ms > TURN_MS:
                    found[_title(request, version, size_bytes)] = turn_ms
    assert found == {}, "the longest turn of the event loop, in milliseconds of CPU"


def _title(request: LongRequest, version: int, size_bytes: int) -> str:
    return f"v{version}, {size_bytes} bytes, {request.kind} {request.path}"


def test_names_for_which_no_topics_are_created_keep_nobody_waiting(broker: MeasuredBroker) -> None:
    names = [MetadataRequestTopic(name=f"n{number}") for number in range(MAX_ITEMS - 100)]
    frame = request_frame(MetadataRequest(topics=names), 12, 1, "long")
    assert longest_turn_ms(broker, frame) <= TURN_MS
