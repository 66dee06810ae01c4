"""Offsets and lag of groups in topics that were deleted and created again."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.metrics.group_metrics import GROUP_METRICS
from odradek.broker.metrics.observed import Observed
from odradek.coordinator.any_group.group_offsets import CommittedOffset
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.records.cluster_metadata import TopicRecord

OLD_ID, NEW_ID = bytes(range(16)), bytes(range(1, 17))
BY_NAME = {metric.name: metric for metric in GROUP_METRICS}
COMMITTED, HIGH_WATERMARK = 30, 100


def observed(committed_in: bytes) -> Observed:
    """A broker with the topic `t`, in which a group has committed, maybe when `t` was another."""
    topics = Topics()
    topics.replay_topic(TopicRecord(name="t", topic_id=NEW_ID))
    committed = CommittedOffset(COMMITTED, -1, "", 0, -1, committed_in, 0)
    of_group = {"t": {0: committed}, "deleted": {0: committed}}
    state = SimpleNamespace(
        groups={"g": None}, offsets=SimpleNamespace(of_group=lambda _: of_group)
    )
    shards = SimpleNamespace(serving=lambda: [SimpleNamespace(state=state)])
    log = SimpleNamespace(high_watermark=HIGH_WATERMARK, topic_id=NEW_ID)
    broker: Any = SimpleNamespace(
        metadata=SimpleNamespace(topics=topics),
        coordinators=SimpleNamespace(groups=SimpleNamespace(shards=shards)),
        log_manager=SimpleNamespace(find=lambda topic, _: log if topic == "t" else None),
    )
    unused: Any = None
    return Observed(broker=broker, servers=list, traffic=unused, loop_delay=unused, started_ms=0)


@pytest.mark.parametrize("topic_id", [NEW_ID, ZERO_UUID])
def test_offset_and_lag_of_a_group(topic_id: bytes) -> None:
    made = observed(topic_id)
    labels = ("g", "t", "0")
    offsets = list(BY_NAME["kafka_consumergroup_current_offset"].read(made))
    assert offsets == [(labels, COMMITTED)]
    lags = list(BY_NAME["kafka_consumergroup_lag"].read(made))
    assert lags == [(labels, HIGH_WATERMARK - COMMITTED)]


def test_offsets_of_a_deleted_topic_are_not_those_of_a_new_one_of_its_name() -> None:
    made = observed(OLD_ID)
    assert not list(BY_NAME["kafka_consumergroup_current_offset"].read(made))
    assert not list(BY_NAME["kafka_consumergroup_lag"].read(made))
