"""The topic `_schemas`: what is acknowledged stays, and what others write counts."""

import json
import threading
from collections.abc import Callable
from http.client import HTTPException

import pytest

from odradek.broker.testing.broker import Broker
from tests.support.registry_client import RegistryClient, produce_batch, schema_batch

INT, STRING = '"int"', '"string"'
TOPIC = "_schemas"


def state(registry: RegistryClient) -> object:
    """All that a registry says about itself."""
    names = registry.get("/subjects?deleted=true")
    return {
        "schemas": registry.get("/schemas?deleted=true"),
        "config": registry.get("/config"),
        "modes": {name: registry.get(f"/mode/{name}?defaultToGlobal=true") for name in names},
        "configs": {name: registry.get(f"/config/{name}?defaultToGlobal=true") for name in names},
        "contexts": registry.get("/contexts"),
    }


def fill(registry: RegistryClient) -> None:
    registry.put("/config", {"compatibility": "NONE"})
    registry.register("a", INT)
    registry.register("a", STRING)
    registry.register("b", INT, metadata={"properties": {"x": "1"}})
    registry.register(":.prod:c", STRING)
    registry.put("/config/b", {"compatibility": "FULL"})
    registry.put("/mode/b", {"mode": "READONLY"})
    registry.delete("/subjects/a/versions/1")


@pytest.mark.slow
def test_a_kill_loses_nothing(own_broker: Broker) -> None:
    registry = RegistryClient(own_broker.registry_url)
    fill(registry)
    before = state(registry)
    own_broker.kill_and_restart()
    assert state(registry) == before


@pytest.mark.slow
def test_compaction_and_a_clean_stop_keep_everything(own_broker: Broker) -> None:
    registry = RegistryClient(own_broker.registry_url)
    fill(registry)
    before = state(registry)
    own_broker.run_compaction_now()
    assert state(registry) == before
    own_broker.stop(clean=True)
    own_broker.start()
    assert state(RegistryClient(own_broker.registry_url)) == before


@pytest.mark.slow
def test_a_kill_between_registrations_loses_none_that_was_answered(own_broker: Broker) -> None:
    registry = RegistryClient(own_broker.registry_url)
    answered: dict[str, int] = {}
    enough, is_killed = threading.Event(), threading.Event()

    def register() -> None:
        while not is_killed.is_set():
            subject = f"s{len(answered)}"
            try:
                answered[subject] = registry.register(subject, INT)
            except (OSError, HTTPException):
                return
            if len(answered) == 50:
                enough.set()

    thread = threading.Thread(target=register)
    thread.start()
    assert enough.wait(60)
    own_broker.kill_and_restart()
    is_killed.set()
    thread.join()
    assert set(answered) <= set(registry.get("/subjects"))


@pytest.mark.slow
def test_a_log_that_is_longer_than_one_read_is_replayed(own_broker: Broker) -> None:
    registry = RegistryClient(own_broker.registry_url)
    for number in range(12):
        name = f"{number:03}" + 30_000 * "x"
        schema = json.dumps({"type": "fixed", "name": f"F{name}", "size": 1})
        assert registry.register(f"s{number}", schema) == number + 1
    before = state(registry)
    own_broker.kill_and_restart()
    assert state(registry) == before


def test_a_registration_may_be_synced(broker: Broker, registry: RegistryClient) -> None:
    broker.create_topic(TOPIC, 1, {"cleanup.policy": "compact", "flush.messages": "1"})
    assert [registry.register(name, INT) for name in "abc"] == [1, 1, 1]
    assert registry.get("/subjects") == ["a", "b", "c"]


def test_the_topic_is_compacted_and_has_one_partition(
    broker: Broker, registry: RegistryClient
) -> None:
    assert registry.get("/subjects") == []
    assert TOPIC not in broker.topics(), "it is made with the first record"
    registry.register("s", INT)
    assert broker.topics()[TOPIC] == 1
    (record,) = broker.records(TOPIC)
    assert record.key == b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    assert json.loads(record.value)["id"] == 1


# What Confluent's registry has written, and Karapace, whose records have blanks.
CONFLUENT = (
    (
        b'{"keytype":"SCHEMA","subject":"s-value","version":1,"magic":1}',
        b'{"subject":"s-value","version":1,"id":7,"schemaType":"AVRO","schema":"\\"int\\"",'
        b'"deleted":false}',
    ),
    (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (b'{"keytype":"NOOP","magic":0}', None),
)
KARAPACE = (
    (
        b'{"keytype": "SCHEMA", "subject": "s-value", "version": 1, "magic": 1}',
        b'{"subject": "s-value", "version": 1, "id": 7, "schema": "\\"int\\"", "deleted": false}',
    ),
    (
        b'{"keytype": "CONFIG", "subject": null, "magic": 0}',
        b'{"compatibilityLevel": "FULL"}',
    ),
    (b'{"keytype": "NOOP", "magic": 0}', None),
)


@pytest.mark.parametrize("stored", [CONFLUENT, KARAPACE])
def test_records_of_other_registries_count(
    broker: Broker,
    registry: RegistryClient,
    stored: tuple[tuple[bytes, bytes | None], ...],
) -> None:
    broker.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    for key, value in stored:
        broker.produce(TOPIC, value, key=key)
    assert registry.get("/schemas/ids/7")["schema"] == INT
    assert registry.get("/config") == {"compatibilityLevel": "FULL"}
    assert registry.register("t", STRING) == 8, "ids go on"
    broker.produce(TOPIC, None, key=stored[0][0])
    assert registry.get("/subjects") == ["t"]


def test_a_record_that_cannot_be_read_is_left_out(broker: Broker, registry: RegistryClient) -> None:
    registry.register("s", INT)
    odd_schema = b'{"id":1,"schema":"\\"int\\"","references":7}'
    for key, value in (
        (b"{", b"x"),
        (b'{"keytype":"FUTURE","magic":9}', b"{}"),
        (b'{"keytype":[]}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', odd_schema),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":[]}'),
        (b'{"keytype":"CONTEXT","context":"\\ud800","magic":0}', b"{}"),
    ):
        broker.produce(TOPIC, value, key=key)
    assert registry.register("s", '"long"') == 2
    assert registry.get("/subjects/s/versions") == [1, 2]
    assert len(registry.get("/schemas")) == 2
    assert registry.get("/contexts") == ["."]
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize("headers", [0, 10_001])
def test_a_record_that_would_take_too_long_is_left_out(
    broker: Broker, registry: RegistryClient, headers: int
) -> None:
    registry.register("s", INT)
    batch = schema_batch("long", 2 if headers else 2 << 20, headers)
    assert len(batch) < 100_000
    produce_batch(int(broker.bootstrap_servers.rpartition(":")[2]), TOPIC, batch)
    assert registry.get("/subjects") == ["s"]
    assert registry.register("t", STRING) == 2


def test_a_topic_with_two_partitions_is_refused(broker: Broker, registry: RegistryClient) -> None:
    broker.create_topic(TOPIC, 2)
    status, code, message = registry.refused("GET", "/subjects")
    assert (status, code) == (500, 50001)
    assert "must have one" in message


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_nothing_is_written_to_a_topic_that_deletes_old_schemas(
    broker: Broker, registry: RegistryClient, policy: str
) -> None:
    broker.create_topic(TOPIC, 1, {"cleanup.policy": policy})
    refusal = registry.refused("POST", "/subjects/s/versions", {"schema": INT})
    assert refusal[:2] == (500, 50001)
    assert "cleanup.policy must be compact" in refusal[2]
    assert registry.get("/subjects") == []


def test_writers_at_once_get_one_id_for_one_schema(
    broker: Broker, registry: RegistryClient
) -> None:
    ids: dict[str, list[int]] = {}

    def register(subject: str) -> None:
        schemas = [json.dumps({"type": "fixed", "name": f"F{n}", "size": n}) for n in range(1, 21)]
        ids[subject] = [registry.register(subject, schema) for schema in schemas]

    registry.put("/config", {"compatibility": "NONE"})
    in_threads([lambda name=name: register(name) for name in ("a", "b", "c")])
    assert ids["a"] == ids["b"] == ids["c"]
    assert sorted(ids["a"]) == list(range(1, 21))


def test_a_long_schema_does_not_hold_up_readers(broker: Broker, registry: RegistryClient) -> None:
    """It is parsed in a thread. Meanwhile others are answered, and a change waits."""
    symbols = [f"S{number}" for number in range(20_000)]
    enum = json.dumps({"type": "enum", "name": "E", "symbols": symbols})
    registry.register("s", INT)
    found: list[object] = []
    in_threads(
        [
            lambda: found.append(registry.register("long", enum)),
            lambda: found.extend(registry.get("/subjects/s/versions") for _ in range(20)),
            lambda: found.append(registry.register("t", STRING)),
        ]
    )
    assert found.count([1]) == 20
    assert registry.get("/subjects") == ["long", "s", "t"]
    assert registry.post("/subjects/long", {"schema": enum})["version"] == 1


def test_a_full_disk_is_a_store_error(broker: Broker, registry: RegistryClient) -> None:
    registry.register("s", INT)
    broker.fill_disk()
    assert registry.refused("POST", "/subjects/t/versions", {"schema": INT})[:2] == (500, 50001)
    assert registry.get("/subjects") == ["s"]
    broker.free_disk()
    assert registry.register("t", INT) == 1


def in_threads(works: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
