"""The list of groups."""

from typing import Any

from tests.support.broker_process import BrokerProcess
from tests.support.committing import commit, produce
from tests.support.console_client import ConsoleClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for, wait_until


def names(answer: Any) -> list[str]:
    return [group["groupId"] for group in answer["groups"]]


def some_groups(broker: BrokerProcess) -> None:
    """Groups g0 to g5, without members; each lags a record more than the one before."""
    create_topic(broker.bootstrap, "orders", 2)
    produce(broker, "orders", 10)
    for lag in range(6):
        commit(broker, f"g{lag}", "orders", {0: 10 - lag, 1: 0})


def test_a_broker_without_groups(console: ConsoleClient) -> None:
    assert console.get("/groups") == {
        "total": 0,
        "isLoading": False,
        "areLagsComplete": True,
        "groups": [],
    }


def test_a_group_has_the_lag_of_all_its_partitions(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    some_groups(broker)
    [group] = console.get("/groups", search="G3")["groups"]
    assert group == {
        "groupId": "g3",
        "type": "classic",
        "protocolType": "",
        "state": "Empty",
        "members": 0,
        "coordinator": 0,
        "partitions": 2,
        "lag": 3,
        "heldBack": 0,
    }
    produce(broker, "orders", 1, partition=1)
    assert console.get("/groups", search="g3")["groups"][0]["lag"] == 4


def test_pages_are_in_the_order_of_names_or_lags(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    some_groups(broker)
    page = {"limit": 2, "from": 1}
    assert console.get("/groups", **page)["total"] == 6
    assert names(console.get("/groups", **page)) == ["g1", "g2"]
    assert names(console.get("/groups", **page, descending="true")) == ["g4", "g3"]
    assert names(console.get("/groups", **page, sort="lag")) == ["g4", "g3"]
    assert names(console.get("/groups", **page, sort="lag", descending="false")) == ["g1", "g2"]


def test_groups_are_filtered_by_type_and_state(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    some_groups(broker)
    assert console.get("/groups", type="classic", state="empty")["total"] == 6
    assert console.get("/groups", type="share")["total"] == 0
    assert console.get("/groups", state="Stable")["total"] == 0
    assert console.ask("GET", "/groups?type=unknown").status == 400


def by_lag(console: ConsoleClient) -> list[tuple[str, int | None]]:
    listed: list[dict[str, Any]] = []

    def is_as_without_order() -> bool:
        """Offsets of a deleted topic go one group after the other."""
        listed[:] = console.get("/groups", sort="lag")["groups"]
        unsorted = console.get("/groups")["groups"]
        return {each["groupId"]: each for each in listed} == {
            each["groupId"]: each for each in unsorted
        }

    wait_until(is_as_without_order)
    return [(group["groupId"], group["lag"]) for group in listed]


def test_a_list_by_lag_follows_commits_and_appends(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    some_groups(broker)
    assert by_lag(console)[:2] == [("g5", 5), ("g4", 4)]
    commit(broker, "g5", "orders", {0: 9})
    assert by_lag(console)[:2] == [("g4", 4), ("g3", 3)]
    produce(broker, "orders", 3, partition=1)
    assert by_lag(console)[:2] == [("g4", 7), ("g3", 6)]
    console.delete("/groups/g3/offsets", {"topic": "orders", "partitions": [1]})
    assert dict(by_lag(console))["g3"] == 3


def test_a_list_by_lag_follows_topics_that_are_deleted_and_created(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    some_groups(broker)
    assert by_lag(console)[0] == ("g5", 5)
    console.delete("/topics/orders", {"confirm": "orders"})
    wait_for(lambda: {lag for _, lag in by_lag(console)}, {None})
    create_topic(broker.bootstrap, "orders", 2)
    produce(broker, "orders", 2)
    assert {lag for _, lag in by_lag(console)} == {None}
    commit(broker, "g0", "orders", {0: 1})
    assert by_lag(console)[0] == ("g0", 1)
