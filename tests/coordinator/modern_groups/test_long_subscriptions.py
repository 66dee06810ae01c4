"""A long subscription is sorted in steps when it is written, and when it is described."""

import pytest

from odradek.coordinator.consumer_groups import records as of_consumers
from odradek.coordinator.consumer_groups.description import described as described_consumers
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.share_groups import records as of_shares
from odradek.coordinator.share_groups.description import described as described_shares
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_groups.member import ShareMember

NAMES = frozenset(f"t{number:05}" for number in range(3_000))


class Steps:
    """Counts steps."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def steps() -> Steps:
    return Steps()


def test_of_a_consumer(steps: Steps) -> None:
    member = ConsumerMember(member_id="m", subscribed_topics=NAMES)
    value = of_consumers.subscription_record("g", member, steps).value
    assert value.subscribed_topic_names == sorted(NAMES)
    assert steps.count > len(NAMES)
    group = ConsumerGroup("g", 0)
    group.replay_member("m", value)
    [found] = described_consumers(group, "uniform", lambda _: None, 0, steps).members
    assert found.subscribed_topic_names == sorted(NAMES)
    assert steps.count > 2 * len(NAMES)


def test_of_a_share_consumer(steps: Steps) -> None:
    member = ShareMember(member_id="m", subscribed_topics=NAMES)
    value = of_shares.subscription_record("g", member, steps).value
    assert value.subscribed_topic_names == sorted(NAMES)
    assert steps.count > len(NAMES)
    group = ShareGroup("g")
    group.replay_member("m", value)
    [found] = described_shares(group, "simple", lambda _: None, 0, steps).members
    assert found.subscribed_topic_names == sorted(NAMES)
    assert steps.count > 2 * len(NAMES)
