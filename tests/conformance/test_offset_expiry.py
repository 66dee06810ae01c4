"""Offsets and groups that expire, and those that stay: the same with Apache Kafka and odradek.

A commit that says how long it is to be kept (OffsetCommit v2-4) expires within seconds; both
brokers look for what has expired five times a second.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.wire_consumers import SETTINGS, WireConsumer, share_out
from tests.conformance.wire_groups import WireMember, commit, stabilise
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_answers import as_kept, kafka_answers, kafka_when_asked
from tests.support.wire import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

# Long enough to make all groups in, on a busy machine.
SOON_MS, LATER_MS = 6_000, 3_600_000
QUICK = {**SETTINGS, "offsets.retention.check.interval.ms": "200"}
GROUPS = (
    *("simple", "spent", "stable", "connect", "waits", "left", "left-long", "left-bare"),
    *("modern", "modern-left", "modern-bare"),
)
Offsets = list[tuple[str, int, int]]  # topic, partition and offset


class ExpiringGroups:
    """One broker with groups whose offsets will expire, or not."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.port = broker.port
        talk = Conversation(self.port, advertised_versions(self.port))
        for name in ("orders", "bills"):
            talk.create_topic(name, 2)
        talk.close()
        self.client = WireClient(self.port)
        self._members: list[WireMember | WireConsumer] = []

    def make_groups(self) -> None:
        for group in ("simple", "spent", "waits", "modern", "modern-left"):
            self._commit(group, "orders", {0: 1}, SOON_MS)
            self._commit(group, "bills", {0: 2}, SOON_MS)
        self._commit("simple", "bills", {1: 3}, LATER_MS)
        for group, kind in (("stable", "consumer"), ("connect", "connect")):
            self._commit(group, "bills", {0: 4, 1: 4}, SOON_MS)
            self._commit(group, "orders", {1: 4}, SOON_MS)
            stabilise((self._member(group, kind), {"orders": [0, 1]}))
        self._member("waits", "consumer").join()
        for group in ("left", "left-long", "left-bare"):
            member = self._member(group, "consumer")
            stabilise((member, {"orders": [0, 1]}))
            member.leave()
        self._commit("left", "orders", {0: 5}, SOON_MS)
        self._commit("left-long", "orders", {0: 6}, LATER_MS)
        for group in ("modern", "modern-left", "modern-bare"):
            consumer = WireConsumer(self.port, group, f"{group}-member", "orders")
            self._members.append(consumer)
            share_out(2, consumer)
            if group != "modern":
                consumer.leave()

    def _commit(self, group: str, topic: str, offsets: dict[int, int], keep_ms: int) -> None:
        commit(self.client, group, topic, offsets, retention_ms=keep_ms)

    def _member(self, group: str, kind: str) -> WireMember:
        # A static one joins at once: an empty group goes, with the id that it has only promised.
        member = WireMember(self.port, group, "orders", kind=kind, instance=f"{group}-member")
        self._members.append(member)
        return member

    def offsets(self) -> dict[str, Offsets]:
        """What each group has committed."""
        wanted = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in GROUPS]
        answer = self.client.ask(OffsetFetchRequest(groups=wanted), OffsetFetchResponse, 8)
        return {
            group.group_id: sorted(
                (topic.name, one.partition_index, one.committed_offset)
                for topic in group.topics
                for one in topic.partitions
            )
            for group in answer.groups
        }

    def groups(self) -> set[tuple[str, str, str]]:
        """The groups there are, with type and state."""
        answer = self.client.ask(ListGroupsRequest(), ListGroupsResponse, 5)
        return {(one.group_id, one.group_type, one.group_state) for one in answer.groups}

    def close(self) -> None:
        for client in (self.client, *(member.client for member in self._members)):
            client.close()


def told_of(broker: BrokerProcess) -> dict[str, Any]:
    """What is committed at first, and when the short times are over: what is left, and groups."""
    side = ExpiringGroups(broker)
    try:
        side.make_groups()
        before = side.offsets()["spent"]
        time.sleep(SOON_MS / 1000 + 1)
        return {"before": before, "offsets": side.offsets(), "groups": side.groups()}
    finally:
        side.close()


def test_the_same_expires_and_the_same_stays(
    tmp_path: Path, start_broker: Callable[..., BrokerProcess]
) -> None:
    with kafka_when_asked(tmp_path / "kafka", QUICK) as kafka:
        expected = kafka_answers("offset_expiry", lambda: told_of(kafka()))
    found = told_of(start_broker(**QUICK))
    assert found["before"] == [("bills", 0, 2), ("orders", 0, 1)]
    assert as_kept(found) == expected
    offsets, groups = found["offsets"], found["groups"]
    assert offsets["stable"] == [("orders", 1, 4)], "members keep what they subscribe to"
    assert offsets["simple"] == [("bills", 1, 3)]
    assert {name for name, _, _ in groups}.isdisjoint({"spent", "left", "left-bare"})
