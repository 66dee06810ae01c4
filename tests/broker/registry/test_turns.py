"""A long schema keeps the event loop no longer than other requests do."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import free_ports
from tests.support.registry_client import RegistryClient, produce_batch, schema_batch
from tests.support.turns import TURN_MS, MeasuredBroker, longest_turn_ms, measured_broker

pytestmark = pytest.mark.slow

VERSIONS = 20
FIELDS = 6_000  # nearly a mebibyte, which is the limit of a request's body


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def broker(tmp_path: Path, port: int) -> Iterator[MeasuredBroker]:
    overrides = {"odradek.registry.listener": f"127.0.0.1:{port}"}
    with measured_broker(tmp_path, overrides) as started:
        yield started


def long_schema(first_name: str) -> str:
    record = {"type": "record", "fields": [{"name": "a", "type": "string"}]}
    types = [["null", {**record, "name": f"Record{index}"}] for index in range(FIELDS)]
    fields: list[dict[str, Any]] = [
        {"name": f"f{index}", "type": types[index], "default": None} for index in range(FIELDS)
    ]
    fields[0]["name"] = first_name
    return json.dumps({"type": "record", "name": "Long", "fields": fields}, separators=(",", ":"))


def reference(name: str, subject: str) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": 1}


def test_a_schema_of_a_megabyte_is_registered_and_compared_in_short_turns(
    broker: MeasuredBroker, port: int
) -> None:
    registry = RegistryClient(f"http://127.0.0.1:{port}")
    registry.register("s", '"int"')  # creates the topic
    registry.delete("/subjects/s")

    def register(attempt: int, first_name: str) -> None:
        registry.register(f"s{attempt}", long_schema(first_name))

    first, second = partial(register, first_name="a"), partial(register, first_name="b")
    assert longest_turn_ms(broker, second, prepare=first) <= TURN_MS


def test_a_megabyte_of_empty_lists_is_refused_in_short_turns(
    broker: MeasuredBroker, port: int
) -> None:
    registry = RegistryClient(f"http://127.0.0.1:{port}")
    body = b"[" + b"[]," * (300 << 10) + b"[]]"

    def refuse(_: int) -> None:
        assert registry.refused("POST", "/subjects/s", body)[0] == 413

    assert longest_turn_ms(broker, refuse) <= TURN_MS


def test_a_record_of_others_that_unpacks_to_very_much_is_left_out_in_short_turns(
    broker: MeasuredBroker, port: int
) -> None:
    registry = RegistryClient(f"http://127.0.0.1:{port}")
    registry.register("s", '"int"')

    def produce(_: int) -> None:
        produce_batch(broker.port, "_schemas", schema_batch("long", 90 << 20))

    def read(_: int) -> None:
        assert registry.get("/subjects") == ["s"]

    assert longest_turn_ms(broker, read, prepare=produce) <= TURN_MS


def documented(number: int) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [], "doc": str(number)})


def test_versions_with_many_references_are_compared_in_short_turns(
    broker: MeasuredBroker, port: int
) -> None:
    registry = RegistryClient(f"http://127.0.0.1:{port}")
    registry.register("leaf", '"int"')
    leaves = [reference(f"n{number}", "leaf") for number in range(990)]
    registry.register("hub", '"int"', references=leaves)
    hubs = [reference(name, "hub") for name in ("a", "b")]
    registry.put("/config/s", {"compatibility": "NONE"})
    for number in range(VERSIONS):
        registry.register("s", documented(number), references=hubs)
    registry.put("/config/s", {"compatibility": "BACKWARD_TRANSITIVE"})
    asked = {"schema": documented(VERSIONS), "references": hubs}

    def compare(_: int) -> None:
        assert registry.post("/compatibility/subjects/s/versions", asked)["is_compatible"]

    assert longest_turn_ms(broker, compare) <= TURN_MS
