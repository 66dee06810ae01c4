"""Streams groups: topology and tasks."""

import pytest

from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatEndpoint,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatTaskOffset,
)
from tests.conformance.streams_member import beat, join
from tests.support.broker_process import BrokerProcess
from tests.support.committing import commit, produce
from tests.support.console_client import ConsoleClient
from tests.support.streams_members import internal, subtopology, topology
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

COUNTS = topology(
    subtopology("0", "lines", changelogs=[internal("counts")]),
)


def test_a_streams_group_has_topology_tasks_and_what_they_read(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    for topic in ("lines", "counts"):
        create_topic(broker.bootstrap, topic, 2)
    produce(broker, "lines", 5, partition=1)
    commit(broker, "counters", "lines", {1: 3})
    with WireClient(broker.port, client_id="counter") as client:
        request = join(
            "counters",
            "anna",
            COUNTS,
            user_endpoint=StreamsGroupHeartbeatEndpoint(host="anna", port=4000),
        )
        joined = client.ask(request, StreamsGroupHeartbeatResponse, 1)
        assert joined.error_code == 0
        told = [
            StreamsGroupHeartbeatTaskOffset(subtopology_id="0", partition=1, offset=offset)
            for offset in (7, 9)
        ]
        request = beat(
            "counters",
            "anna",
            joined.member_epoch,
            owned={"0": [0, 1]},
            task_offsets=told[:1],
            task_end_offsets=told[1:],
        )
        assert client.ask(request, StreamsGroupHeartbeatResponse, 1).error_code == 0

        view = console.get("/groups/counters")
        [member] = view["members"]
        assert view["type"] == "streams"
        assert view["state"] == "Stable"
        [part] = view["topology"]["subtopologies"]
        assert part["sourceTopics"] == ["lines"]
        assert part["stateChangelogTopics"] == [{"name": "counts", "partitions": 2}]
        assert member["clientId"] == "counter"
        assert member["processId"] == "process-anna"
        assert member["endpoint"] == "anna:4000"
        tasks = {
            "active": [{"subtopologyId": "0", "partitions": [0, 1]}],
            "standby": [],
            "warmup": [],
        }
        assert member["tasks"] == member["targetTasks"] == tasks
        assert member["taskOffsets"] == [
            {"subtopologyId": "0", "partition": 1, "offset": 7, "endOffset": 9}
        ]
        assert member["assignment"] == [{"topic": "lines", "partitions": [0, 1]}]
        rows = [(each["partition"], each["committed"], each["lag"]) for each in view["offsets"]]
        assert rows == [(0, None, None), (1, 3, 2)]
        assert {each["memberId"] for each in view["offsets"]} == {"anna"}

        leave = beat("counters", "anna", -1)
        assert client.ask(leave, StreamsGroupHeartbeatResponse, 1).error_code == 0
    body = {"topic": "lines", "to": "latest", "partitions": [1], "preview": False}
    [new] = console.post("/groups/counters/offsets", body)["offsets"]
    assert (new["from"], new["to"]) == (3, 5)
