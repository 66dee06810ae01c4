"""Subscriptions of classic consumers are decoded in parts, when they are first asked for."""

from collections.abc import Iterator

import pytest

from odradek.coordinator.classic_groups import subscriptions as module
from odradek.coordinator.classic_groups.subscriptions import ClassicSubscriptions
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_versioned,
    topics_in_parts,
)
from odradek.protocol.schema import DecodeError

MANY = [f"topic-{number}" for number in range(2500)]


def metadata_of(topics: list[str]) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=topics), 1)


def test_many_topics_are_decoded_in_parts_of_a_thousand() -> None:
    parts = list(topics_in_parts(metadata_of(MANY)))
    assert [len(part) for part in parts] == [1000, 1000, 500]
    assert [topic for part in parts for topic in part] == MANY
    assert list(topics_in_parts(metadata_of([]))) == []


def test_metadata_that_is_cut_off_after_the_topics_is_refused() -> None:
    with pytest.raises(DecodeError):
        list(topics_in_parts(metadata_of(["a"])[:9]))


def test_nothing_is_decoded_before_a_topic_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def noted(metadata: bytes) -> Iterator[list[str]]:
        decoded.append(metadata)
        return topics_in_parts(metadata)

    monkeypatch.setattr(module, "topics_in_parts", noted)
    one, same, other = metadata_of(["a"]), metadata_of(["a"]), metadata_of(["b"])
    subscriptions = ClassicSubscriptions([one, same, other])
    assert not decoded
    assert subscriptions.include("a")
    assert sorted(decoded) == [one, other]  # equal metadata once
    assert not subscriptions.include("c")
    assert len(decoded) == 2


def test_two_callers_may_decode_the_same_subscriptions_in_turn() -> None:
    subscriptions = ClassicSubscriptions([metadata_of(MANY), metadata_of(["a", *MANY])])
    first, second = subscriptions.decode(), subscriptions.decode()
    steps = 0
    for _ in first:
        next(second, None)
        steps += 1
    assert steps > 2
    assert subscriptions.topics == {"a", *MANY}


def test_one_member_whose_metadata_is_no_subscription_hides_those_of_all() -> None:
    subscriptions = ClassicSubscriptions([metadata_of(["a"]), b"\x00"])
    assert not subscriptions.are_known
    assert not subscriptions.include("a")
    assert subscriptions.topics is None
