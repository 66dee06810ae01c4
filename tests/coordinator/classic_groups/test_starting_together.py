"""Consumers of librdkafka that start together, without an initial rebalance delay.

The requests and pauses are those that two of them send, with `group.initial.rebalance.delay.ms=0`.
Each is to be told one assignment, as it usually is by Apache Kafka 4.3, and not to give up a first
one at the next heartbeat, after three seconds.
"""

from dataclasses import dataclass

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.protocol.errors import ErrorCode
from tests.support.groups import Groups, Waiting

HEARTBEAT_MS = 3_000


@dataclass
class Consumer:
    """The JoinGroup that a consumer has sent last, and its member id."""

    parked: Waiting
    instance: str | None = None

    @property
    def member_id(self) -> str:
        assert self.parked.done(), "no JoinGroup has been answered"
        member_id: str = self.parked.response.member_id
        return member_id


@pytest.fixture
def groups() -> Groups:
    config = BrokerConfig.from_texts({"group.initial.rebalance.delay.ms": "0"})
    return Groups(initial_rebalance_delay_ms=GroupSettings.of(config).initial_rebalance_delay_ms)


def start(groups: Groups, instance: str | None) -> Consumer:
    """Send the first JoinGroup; a dynamic member gets an id, and sends another one with it."""
    words = {"instance": instance, "version": 5}
    answer = groups.send_join(**words)
    if instance is None:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = groups.send_join(answer.member_id, **words)
    assert isinstance(answer, Waiting)
    return Consumer(answer, instance)


@pytest.mark.parametrize("pause_ms", [0, 1, 5, 9])
@pytest.mark.parametrize("instances", [(None, None), ("i1", "i2")])
def test_two_consumers_that_start_together_begin_one_generation(
    groups: Groups, instances: tuple[str | None, str | None], pause_ms: int
) -> None:
    first = start(groups, instances[0])
    groups.advance(pause_ms)
    second = start(groups, instances[1])
    groups.advance(20)
    leader = first.member_id
    assert [one.parked.response.generation_id for one in (first, second)] == [1, 1]
    parked = groups.send_sync(second.member_id, instance=second.instance)
    shares = {leader: b"first", second.member_id: b"second"}
    assert groups.sync(leader, assignments=shares, instance=first.instance).assignment == b"first"
    assert parked.response.assignment == b"second"
    groups.advance(HEARTBEAT_MS)
    for one in (first, second):
        assert groups.heartbeat(one.member_id, instance=one.instance) is ErrorCode.NONE


def test_a_consumer_that_starts_later_gets_its_share_after_a_heartbeat_of_the_first(
    groups: Groups,
) -> None:
    first = start(groups, None)
    groups.advance(50)
    groups.sync(first.member_id, assignments={first.member_id: b"all"})
    second = start(groups, None)
    groups.advance(20)
    assert not second.parked.done()
    assert groups.heartbeat(first.member_id) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.send_join(first.member_id, version=5)
    assert second.parked.response.generation_id == 2
