"""A broker with streams groups that are made by raw requests, so that nothing moves."""

from typing import Any

from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
)
from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.requests import batch_of, produce
from tests.conformance.wire_groups import commit
from tests.support.broker_process import BrokerProcess
from tests.support.streams_members import internal, subtopology, task_list, topology

SETTINGS = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}


class StreamsGroupsMade:
    """One broker with topics, records, and a streams group in each state."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self._talk = Conversation(broker.port, advertised_versions(broker.port))
        for name in ("lines", "left-words", "left-counts"):
            self._talk.create_topic(name, 2)
            for partition in (0, 1):
                produce(self._talk, name, batch_of("1", "2", "3"), partition=partition)
        self._make_groups()
        self._talk.close()

    def _make_groups(self) -> None:
        plain = topology(subtopology("0", "lines"))
        for member in ("one", "two"):
            self._join("running", member, plain)
        self._beat("running", "one", 2, [0, 1])
        self._beat("running", "one", 2, [0])
        self._beat("running", "two", 3, [])
        commit(self._talk.client, "left", "lines", {0: 2, 1: 1})
        commit(self._talk.client, "left", "left-words", {0: 1})
        self._join(
            "left",
            "one",
            topology(
                subtopology("0", "lines", writes=["left-words"]),
                subtopology(
                    "1", reads=[internal("left-words")], changelogs=[internal("left-counts")]
                ),
            ),
        )
        self._beat("left", "one", -1)
        self._join("waits", "one", topology(subtopology("0", "never-there")))

    def _join(self, group: str, member: str, sent: StreamsGroupHeartbeatTopology) -> None:
        self._talk.wait_for_coordinator(group)
        self._beat(
            group,
            member,
            0,
            [],
            topology=sent,
            rebalance_timeout_ms=60_000,
            process_id=f"process-{member}",
            client_tags=[],
        )

    def _beat(
        self, group: str, member: str, epoch: int, owned: list[int] | None = None, **words: Any
    ) -> None:
        """A heartbeat that reports tasks of subtopology 0, or none."""
        request = StreamsGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            endpoint_information_epoch=0,
            active_tasks=None if owned is None else task_list({"0": owned} if owned else {}),
            standby_tasks=None if owned is None else [],
            warmup_tasks=None if owned is None else [],
            **words,
        )
        answer = self._talk.silently(request, 0)
        assert answer.error_code == 0, answer
