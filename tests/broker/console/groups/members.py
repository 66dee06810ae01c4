"""Members of groups that only some clients can be: of a share group and of a streams group."""

from collections.abc import Iterator
from contextlib import contextmanager

from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatEndpoint,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatTaskOffset,
)
from tests.conformance.share_reader import ShareReader, prepare_group
from tests.conformance.share_reader import joined as joined_share_group
from tests.conformance.streams_member import beat, join
from tests.support.broker_process import BrokerProcess
from tests.support.committing import commit, produce
from tests.support.streams_members import internal, subtopology, topology
from tests.support.topics import create_topic
from tests.support.wire import WireClient

LINES = topology(subtopology("0", "lines"))
LOCK_MS = 30_000
COUNTS = topology(
    subtopology("0", "lines", changelogs=[internal("counts")]),
)


@contextmanager
def cook(broker: BrokerProcess, name: str = "anna", **settings: str) -> Iterator[ShareReader]:
    """A member of the share group "cooks" that reads the topic "orders", and leaves at the end."""
    settings = {"share.record.lock.duration.ms": str(LOCK_MS), **settings}
    with WireClient(broker.port, client_id="kitchen") as client:
        topic_id = prepare_group(client, "cooks", "orders", **settings)
        member = joined_share_group(client, "cooks", name, "orders", topic_id)
        try:
            yield member
        finally:
            member.leave()
            leave = ShareGroupHeartbeatRequest(group_id="cooks", member_id=name, member_epoch=-1)
            assert client.ask(leave, ShareGroupHeartbeatResponse, 1).error_code == 0


@contextmanager
def counter(broker: BrokerProcess) -> Iterator[None]:
    """A member "anna" of the streams group "counters", with both tasks of its subtopology.

    It reads the topic "lines", and has said that it has restored 7 of 9 records of one task. The
    group has read 3 of 5 records of partition 1.
    """
    for topic in ("lines", "counts"):
        create_topic(broker.bootstrap, topic, 2)
    produce(broker, "lines", 5, partition=1)
    commit(broker, "counters", "lines", {1: 3})
    restored, end = (
        StreamsGroupHeartbeatTaskOffset(subtopology_id="0", partition=1, offset=offset)
        for offset in (7, 9)
    )
    with WireClient(broker.port, client_id="counter") as client:
        endpoint = StreamsGroupHeartbeatEndpoint(host="anna", port=4000)
        request = join("counters", "anna", COUNTS, user_endpoint=endpoint)
        joined = client.ask(request, StreamsGroupHeartbeatResponse, 1)
        assert joined.error_code == 0
        request = beat(
            "counters",
            "anna",
            joined.member_epoch,
            owned={"0": [0, 1]},
            task_offsets=[restored],
            task_end_offsets=[end],
        )
        assert client.ask(request, StreamsGroupHeartbeatResponse, 1).error_code == 0
        yield
        leave = beat("counters", "anna", -1)
        assert client.ask(leave, StreamsGroupHeartbeatResponse, 1).error_code == 0


@contextmanager
def crowd(broker: BrokerProcess, count: int) -> Iterator[None]:
    """The members "m000", "m001", … of the streams group "crowd". They leave at the end."""
    create_topic(broker.bootstrap, "lines", 2)
    commit(broker, "crowd", "lines", {0: 0})  # waits until there is a coordinator
    names = [f"m{number:03}" for number in range(count)]
    with WireClient(broker.port, client_id="counter") as client:
        for name in names:
            request = join("crowd", name, LINES)
            assert client.ask(request, StreamsGroupHeartbeatResponse, 1).error_code == 0
        yield
        for name in names:
            leave = beat("crowd", name, -1)
            assert client.ask(leave, StreamsGroupHeartbeatResponse, 1).error_code == 0
