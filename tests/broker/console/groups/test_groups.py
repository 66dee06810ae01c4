"""The list of groups."""

from typing import Any

from tests.support.broker_process import BrokerProcess
from tests.support.committing import commit, produce
from tests.support.console_client import ConsoleClient
from tests.support.topics import create_topic


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
