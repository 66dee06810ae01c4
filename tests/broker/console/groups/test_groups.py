"""The list of groups."""

from typing import Any

from tests.support.groups_of_a_console import commit

from odradek.broker.testing.broker import Broker
from tests.support.console_client import ConsoleClient


def names(answer: Any) -> list[str]:
    return [group["groupId"] for group in answer["groups"]]


def some_groups(broker: Broker) -> None:
    """Groups g0 to g5, without members; each lags a record more than the one before."""
    broker.create_topic("orders", partitions=2)
    for _ in range(10):
        broker.produce("orders", b"x")
    for lag in range(6):
        commit(broker, f"g{lag}", "orders", {0: 10 - lag, 1: 0})


def test_a_broker_without_groups(console: ConsoleClient) -> None:
    assert console.get("/groups") == {
        "total": 0,
        "isLoading": False,
        "areLagsComplete": True,
        "groups": [],
    }


def test_a_group_has_the_lag_of_all_its_partitions(broker: Broker, console: ConsoleClient) -> None:
    some_groups(broker)
    [group] = console.get("/groups", search="G3")["groups"]
    assert group == {
        "groupId": "g3",
        "type": "classic",
        "protocolType": "",
        "state": "Empty",
        "members": 0,
        "coordinator": 1,
        "partitions": 2,
        "lag": 3,
    }
    broker.produce("orders", b"x", partition=1)
    assert console.get("/groups", search="g3")["groups"][0]["lag"] == 4


def test_pages_are_in_the_order_of_names_or_lags(broker: Broker, console: ConsoleClient) -> None:
    some_groups(broker)
    page = {"limit": 2, "from": 1}
    assert console.get("/groups", **page)["total"] == 6
    assert names(console.get("/groups", **page)) == ["g1", "g2"]
    assert names(console.get("/groups", **page, descending="true")) == ["g4", "g3"]
    assert names(console.get("/groups", **page, sort="lag")) == ["g4", "g3"]
    assert names(console.get("/groups", **page, sort="lag", descending="false")) == ["g1", "g2"]


def test_a_group_without_a_lag_is_the_last_by_lag(broker: Broker, console: ConsoleClient) -> None:
    some_groups(broker)
    broker.create_topic("gone")
    commit(broker, "a", "gone", {})
    with_lag = console.get("/groups", sort="lag")
    assert names(with_lag)[-1] == "g0"
    assert with_lag["total"] == 6


def test_groups_are_filtered_by_type_and_state(broker: Broker, console: ConsoleClient) -> None:
    some_groups(broker)
    assert console.get("/groups", type="classic", state="empty")["total"] == 6
    assert console.get("/groups", type="share")["total"] == 0
    assert console.get("/groups", state="Stable")["total"] == 0
    assert console.ask("GET", "/groups?type=unknown").status == 400


def test_the_list_is_watched(broker: Broker, console: ConsoleClient) -> None:
    some_groups(broker)
    with console.watch("/groups?search=g3") as events:
        assert next(events)["groups"][0]["lag"] == 3
        broker.produce("orders", b"x")
        assert next(events)["groups"][0]["lag"] == 4
