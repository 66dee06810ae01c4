"""A broker starts again with less room for a group than it has members."""

from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest

from odradek.protocol.errors import ErrorCode
from tests.conformance.wire_groups import WireMember, stabilise
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, running
from tests.support.kafka_answers import BROKERS

pytestmark = pytest.mark.slow

REBALANCE_MS = 4_000


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    kind = {"kafka": ApacheKafkaProcess, "odradek": BrokerProcess}[request.param]
    with running(kind(tmp_path)) as process:
        yield process


def test_a_group_that_is_too_large_rebalances_and_the_last_to_come_back_is_out(
    broker: BrokerProcess,
) -> None:
    members = [WireMember(broker.port, "large", "t", rebalance_ms=REBALANCE_MS) for _ in range(2)]
    stabilise(*((member, {}) for member in members))
    broker.terminate()
    broker.settings["group.max.size"] = "1"
    broker.start()
    for member in members:
        member.reconnect(broker.port)
        member.wait_for_rebalance()
    for member in members:
        member.ask_to_join()
    # Which of the two is served first is for the broker to say.
    first_answered = select([member.client.socket for member in members], [], [], 60)[0]
    last, first = sorted(members, key=lambda member: member.client.socket not in first_answered)
    refused = last.join_answer()
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.member_id == ""
    generation = first.generation
    first.joined()
    assert first.generation == generation + 1
    assert last.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    for member in members:
        member.client.close()
