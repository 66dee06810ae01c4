"""Random conversations of a streams group's members: Apache Kafka and odradek assign alike.

Members join, report what they have been told to own or something else, leave and come back; topics
grow, and settings change. What a member does next follows from the answers so far. A difference is
reported with the number of its conversation, which `ODRADEK_TEST_SEED` repeats in a long run.
"""

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatEndpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTaskIds,
    StreamsGroupHeartbeatTaskOffset,
    StreamsGroupHeartbeatTopology,
)
from tests.conformance.compared_conversations import Kafka
from tests.conformance.conversation import Conversation
from tests.conformance.random_talks import compare
from tests.conformance.streams_member import (
    COORDINATOR_LAG_S,
    GROUP_RESOURCE,
    NEWEST,
    beat,
    configure,
    describe,
    join,
)
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.lengths import by_length
from tests.support.streams_members import internal, subtopology, tasks_of, topology

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

CONVERSATIONS = by_length(4, 300)
STEPS = 50
NAME = "random-streams"
Tasks = dict[str, list[int]]


def test_members_at_random_are_assigned_what_kafka_assigns(
    kafka_if_asked: Kafka, broker: BrokerProcess
) -> None:
    compare(kafka_if_asked, broker, RandomStreams, CONVERSATIONS)


class Member:
    """What a member believes: its epoch, and its tasks of each kind; none before it has joined."""

    def __init__(self, name: str, process: str, endpoint_port: int | None) -> None:
        self.name, self.process, self.endpoint_port = name, process, endpoint_port
        self.leave()

    def leave(self) -> None:
        self.epoch = self.endpoint_epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self.warmup: Tasks = {}

    def hear(self, answer: Any) -> None:
        """Take over what an answer says; a member that is fenced or unknown has nothing."""
        if answer.error_code:
            self.leave()
            return
        self.epoch = answer.member_epoch
        self.endpoint_epoch = answer.endpoint_information_epoch
        self.active = _told(answer.active_tasks, self.active)
        self.standby = _told(answer.standby_tasks, self.standby)
        self.warmup = _told(answer.warmup_tasks, self.warmup)


def _told(tasks: Sequence[StreamsGroupHeartbeatTaskIds] | None, before: Tasks) -> Tasks:
    found = tasks_of(tasks)
    return before if found is None else found


class RandomStreams:
    """One conversation of five members, of whom some share a process."""

    def __init__(self, talk: Conversation, number: int) -> None:
        self._talk, self._chance = talk, Random(number)
        self._group = f"{NAME}-{number}"
        self._partitions = self._chance.randint(1, 5)
        self._topics = [f"{self._group}-{name}" for name in ("a", "b", "log")]
        for name in self._topics:
            talk.create_topic(name, self._partitions)
        self._topology = self._drawn_topology()
        configure(talk, self._group, streams_num_standby_replicas=str(self._chance.randint(0, 2)))
        time.sleep(COORDINATOR_LAG_S)
        processes = self._chance.randint(2, 5)
        self._members = [
            Member(f"m{each}", f"p{each % processes}", self._chance.choice([None, 9_000 + each]))
            for each in range(5)
        ]
        self._steps = 0

    def _drawn_topology(self) -> StreamsGroupHeartbeatTopology:
        first, second, log = self._topics
        kept = [internal(log)]
        return self._chance.choice(
            [
                topology(subtopology("0", first)),
                topology(subtopology("0", first, changelogs=kept)),
                topology(subtopology("0", first), subtopology("1", second, changelogs=kept)),
                topology(subtopology("0", first, second, changelogs=kept)),
                topology(*(subtopology(str(each), first) for each in range(3))),
            ]
        )

    def hold(self) -> None:
        usual = [self._join, self._report, self._report, self._report, self._quiet, self._odd]
        seldom = [self._leave, self._leave, self._rejoin, self._describe, self._describe]
        rare = [self._grow, self._copies, self._stop]
        for self._steps in range(1, STEPS):
            steps = rare if self._steps % 17 == 0 else seldom if self._steps % 4 == 0 else usual
            self._chance.choice(steps)()
        self._describe()

    def _ask(self, member: Member, request: StreamsGroupHeartbeatRequest) -> None:
        """The number of the step in its title says where a difference begins."""
        title = f"step {self._steps}: {request!r}"
        member.hear(self._talk.ask(request, NEWEST, title=title[:1000]))

    # -- steps -------------------------------------------------------------------------------------

    def _join(self) -> None:
        out = [member for member in self._members if not member.epoch]
        if out:
            self._begin(self._chance.choice(out))

    def _rejoin(self) -> None:
        self._begin(self._chance.choice(self._members))

    def _begin(self, member: Member) -> None:
        port = member.endpoint_port
        endpoint = None if port is None else StreamsGroupHeartbeatEndpoint(host="h", port=port)
        member.leave()
        request = join(
            self._group,
            member.name,
            self._topology,
            process_id=member.process,
            user_endpoint=endpoint,
        )
        self._ask(member, request)

    def _report(self) -> None:
        """A heartbeat with all tasks that the member has been told, and how far they are."""
        member = self._drawn()
        offsets: dict[str, Any] = {}
        if self._chance.random() < 0.3:
            tasks = [(name, each) for name, part in member.warmup.items() for each in part]
            offsets = {
                key: [
                    StreamsGroupHeartbeatTaskOffset(subtopology_id=name, partition=each, offset=far)
                    for name, each in tasks
                ]
                for key, far in (
                    ("task_offsets", self._chance.randint(0, 9)),
                    ("task_end_offsets", 9),
                )
            }
        self._ask(
            member,
            beat(
                self._group,
                member.name,
                member.epoch,
                active_tasks=_ids(member.active),
                standby_tasks=_ids(member.standby),
                warmup_tasks=_ids(member.warmup),
                endpoint_information_epoch=member.endpoint_epoch,
                **offsets,
            ),
        )

    def _quiet(self) -> None:
        member = self._drawn()
        epoch = self._chance.choice([0, 0, -1]) or member.endpoint_epoch
        words = {"endpoint_information_epoch": epoch}
        if self._chance.random() < 0.2:
            words["rebalance_timeout_ms"] = self._chance.choice([60_000, 90_000])
        self._ask(member, beat(self._group, member.name, member.epoch, **words))

    def _odd(self) -> None:
        """A heartbeat with another epoch, or with other tasks than the member has been told."""
        member = self._drawn()
        epoch = member.epoch + self._chance.choice([-1, 0, 0, 0, 1])
        ids = sorted({each.subtopology_id for each in self._topology.subtopologies})
        owned: Tasks = {}
        for name in ids:
            most = self._chance.randint(0, self._partitions)
            owned[name] = sorted(self._chance.sample(range(self._partitions + 1), most))
        if epoch > 0:
            held = {name: part for name, part in owned.items() if part}
            self._ask(member, beat(self._group, member.name, epoch, owned=held))

    def _leave(self) -> None:
        member = self._drawn()
        self._ask(member, beat(self._group, member.name, -1))
        member.leave()

    def _describe(self) -> None:
        describe(self._talk, self._group, change=_without_sizes)

    def _grow(self) -> None:
        """All topics grow, so that changelogs have as many partitions as what is read."""
        self._partitions += self._chance.randint(1, 2)
        wishes = [
            CreatePartitionsTopic(name=name, count=self._partitions, assignments=None)
            for name in reversed(self._topics)
        ]
        request = CreatePartitionsRequest(topics=wishes, timeout_ms=9_000, validate_only=False)
        self._talk.silently(request, 3)
        time.sleep(COORDINATOR_LAG_S)

    def _copies(self) -> None:
        change = {"streams.num.standby.replicas": str(self._chance.randint(0, 2))}
        self._talk.silently(alter_configs_request(GROUP_RESOURCE, self._group, change), 1)
        time.sleep(COORDINATOR_LAG_S)

    def _stop(self) -> None:
        member = self._drawn()
        if member.epoch:
            request = beat(self._group, member.name, member.epoch, shutdown_application=True)
            self._ask(member, request)

    def _drawn(self) -> Member:
        """A member, mostly one that has joined."""
        there = [member for member in self._members if member.epoch]
        return self._chance.choice(there or self._members)


def _without_sizes(answer: Any) -> Any:
    """Leave out the sizes of changelogs: Kafka may still describe the topology as it was sent."""
    return replace(answer, groups=[_without_sizes_in(group) for group in answer.groups])


def _without_sizes_in(group: Any) -> Any:
    if group.topology is None:
        return group
    subtopologies = [
        replace(
            each,
            state_changelog_topics=[
                replace(topic, partitions=0) for topic in each.state_changelog_topics
            ],
        )
        for each in group.topology.subtopologies
    ]
    return replace(group, topology=replace(group.topology, subtopologies=subtopologies))


def _ids(tasks: Tasks) -> list[StreamsGroupHeartbeatTaskIds]:
    return [
        StreamsGroupHeartbeatTaskIds(subtopology_id=name, partitions=part)
        for name, part in tasks.items()
        if part
    ]
