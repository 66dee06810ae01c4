"""A member that subscribes to very many topics does not keep the event loop for long."""

import time
from pathlib import Path

import pytest

from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_versioned,
)
from tests.support.requests import build
from tests.support.turns import TURN_MS, measured_broker
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

ATTEMPTS = 15  # a turn that was long is measured again
TOPICS = [f"topic-{number}" for number in range(60_000)]


def test_a_classic_consumer_of_very_many_topics_joins_in_short_turns(tmp_path: Path) -> None:
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=TOPICS), 0)
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with (
        measured_broker(tmp_path, settings) as broker,
        WireClient(broker.port, timeout_s=60) as client,
    ):
        find = build(FindCoordinatorRequest, 4, key_type=0, coordinator_keys=["g"])
        while client.ask(find, FindCoordinatorResponse, 4).coordinators[0].error_code:
            time.sleep(0.02)
        longest_ms = []
        for number in range(ATTEMPTS):
            join = build(
                JoinGroupRequest,
                9,
                group_id=f"g{number}",
                group_instance_id="i",
                session_timeout_ms=6_000,
                rebalance_timeout_ms=1_000,
                protocol_type="consumer",
                protocols=[{"name": "range", "metadata": metadata}],
            )
            broker.turns()
            assert client.ask(join, JoinGroupResponse, 9).error_code == 0
            longest_ms.append(broker.turns().longest_ms)
            if longest_ms[-1] <= TURN_MS:
                break
        assert min(longest_ms) <= TURN_MS
