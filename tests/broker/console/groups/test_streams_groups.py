"""Streams groups: topology and tasks."""

import pytest

from tests.broker.console.groups.members import counter, crowd
from tests.support.broker_process import BrokerProcess
from tests.support.console_client import ConsoleClient

pytestmark = pytest.mark.slow


def test_a_streams_group_has_topology_tasks_and_what_they_read(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with counter(broker):
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
    body = {"topic": "lines", "to": "latest", "partitions": [1], "preview": False}
    [new] = console.post("/groups/counters/offsets", body)["offsets"]
    assert (new["from"], new["to"]) == (3, 5)


def test_members_come_in_pages(broker: BrokerProcess, console: ConsoleClient) -> None:
    with crowd(broker, 101):
        first = console.get("/groups/crowd")
        second = console.get("/groups/crowd", membersFrom=100)
    assert (first["totalMembers"], len(first["members"])) == (101, 100)
    shown = [each["memberId"] for each in first["members"] + second["members"]]
    assert sorted(shown) == [f"m{number:03}" for number in range(101)]
