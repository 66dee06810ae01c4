"""Which process serves a partition."""

from odradek.storage.directories.log_share import ALL_LOGS, LogShare
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC


def test_without_workers_one_process_serves_all() -> None:
    assert all(ALL_LOGS.has(topic, 3) for topic in ("orders", CONSUMER_OFFSETS_TOPIC))


def test_consecutive_partitions_belong_to_consecutive_workers() -> None:
    share = LogShare(0, 3)
    owners = [share.owner("orders", partition) for partition in range(6)]
    assert sorted(owners[:3]) == [1, 2, 3]
    assert owners[3:] == owners[:3]


def test_internal_topics_stay_with_the_broker() -> None:
    assert LogShare(0, 3).has(CONSUMER_OFFSETS_TOPIC, 7)
    assert not LogShare(1, 3).has(CONSUMER_OFFSETS_TOPIC, 7)
