"""The field checks of a heartbeat."""

from typing import Any

import pytest

from odradek.coordinator.consumer_groups.heartbeat_checks import check_heartbeat
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)

ASSIGNORS = ("uniform", "range")
JOIN = {"member_epoch": 0, "rebalance_timeout_ms": 1, "topic_partitions": []}
BY_NAME = {**JOIN, "subscribed_topic_names": []}


def request(**words: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        **{"group_id": "g", "member_id": "m", "member_epoch": 1, **words}
    )


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "words",
    [
        {},
        {"member_epoch": -1},
        {"member_epoch": -2, "instance_id": "i"},
        {"server_assignor": "range"},
        BY_NAME,
        {**JOIN, "subscribed_topic_regex": ""},
        {"instance_id": "\u00a0"},  # not blank to Java
    ],
)
def test_a_complete_heartbeat_passes(version: int, words: dict[str, Any]) -> None:
    check_heartbeat(request(**words), version, ASSIGNORS)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "words",
    [
        {"group_id": ""},
        {"group_id": " \t\x00"},
        {"member_id": ""},
        {"member_id": "", "member_epoch": -1},
        {"instance_id": ""},
        {"rack_id": " "},
        {"member_epoch": -2},
        {"member_epoch": -3, "instance_id": "i"},
        {**BY_NAME, "rebalance_timeout_ms": -1},
        {**BY_NAME, "topic_partitions": None},
        {
            **BY_NAME,
            "topic_partitions": [
                ConsumerGroupHeartbeatTopicPartitions(topic_id=bytes(16), partitions=[])
            ],
        },
        JOIN,
    ],
)
def test_an_incomplete_or_invalid_heartbeat_is_refused(version: int, words: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        check_heartbeat(request(**words), version, ASSIGNORS)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.message


def test_from_version_1_on_the_client_chooses_the_member_id() -> None:
    for words in (BY_NAME, {"member_epoch": -2, "instance_id": "i"}):
        nameless = request(**{**words, "member_id": ""})
        check_heartbeat(nameless, 0, ASSIGNORS)
        with pytest.raises(ApiError) as caught:
            check_heartbeat(nameless, 1, ASSIGNORS)
        assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["", "sticky", "Range"])
def test_an_unknown_assignor_is_refused_with_a_list_of_the_known_ones(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_heartbeat(request(server_assignor=name), 1, ASSIGNORS)
    assert caught.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in caught.value.message
