"""What all endpoints have in common: their description, their errors, and watching."""

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from odradek.broker.console.endpoints import PREFIX, TOKEN_HEADER, Endpoint, Nothing
from odradek.broker.console.openapi import describe
from odradek.broker.console.view import View
from odradek.broker.console.views import ENDPOINTS
from odradek.broker.console.watching import CONTENT_TYPE, QUIET_S, SharedViews, events
from odradek.broker.lifecycle.running import start_broker
from odradek.broker.testing.broker import Broker
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.console_client import ConsoleClient

IN_PATHS = {"topic": "orders", "partition": "0", "group": "readers", "offset": "0"}


async def test_the_description_names_exactly_the_routes(tmp_path: Path) -> None:
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "odradek.http.listener": "127.0.0.1:0",
        "odradek.console": "true",
    }
    running = await start_broker(BrokerConfig.from_texts(texts))
    try:
        console = running._console
        assert console is not None
        routes = {
            (each.method.lower(), each.template)
            for each in console.routes()
            if each.template.startswith(PREFIX) and not each.template.endswith("/openapi.json")
        }
        description = json.loads((await console._openapi(local_request())).body)
    finally:
        await running.stop()
    paths = description["paths"]
    assert {(method, path) for path in paths for method in paths[path]} == routes


def local_request() -> Any:
    from odradek.broker.http.messages import HttpRequest

    headers = {"host": "localhost"}
    return HttpRequest(
        method="GET", path="/", query={}, headers=headers, body=b"", peer_host="127.0.0.1"
    )


def test_each_reference_of_the_description_resolves_and_a_path_holds_its_names_once() -> None:
    description = json.loads(msgspec.json.encode(describe(ENDPOINTS, "1")))
    schemas = description["components"]["schemas"]
    names = {f"#/components/schemas/{name}" for name in schemas}
    assert set(references(description)) == names
    for path, methods in description["paths"].items():
        in_path = {part[1:-1] for part in path.split("/") if part.startswith("{")}
        for method, operation in methods.items():
            parameters = operation.get("parameters", [])
            assert {each["name"] for each in parameters if each["in"] == "path"} == in_path
            assert all(each["required"] for each in parameters if each["in"] == "path")
            if "requestBody" in operation:
                body = body_schema(operation, schemas)
                assert not in_path.intersection(body["properties"]), (method, path)
                assert operation["requestBody"]["required"] == bool(body.get("required"))


def test_the_body_of_a_request_has_the_fields_that_its_path_lacks() -> None:
    description = json.loads(msgspec.json.encode(describe(ENDPOINTS, "1")))
    schemas, paths = description["components"]["schemas"], description["paths"]
    more = body_schema(paths[f"{PREFIX}/topics/{{topic}}/partitions"]["post"], schemas)
    assert (list(more["properties"]), more["required"]) == (["total", "validateOnly"], ["total"])
    terminate = paths[f"{PREFIX}/transactions/terminate"]["post"]
    assert body_schema(terminate, schemas)["required"] == ["transactionalId"]


def test_the_description_has_what_a_request_needs_besides_its_fields() -> None:
    description = json.loads(msgspec.json.encode(describe(ENDPOINTS, "1")))
    [name] = description["components"]["securitySchemes"]
    assert description["security"] == [{}, {name: []}]  # only some brokers have logins
    for each in ENDPOINTS:
        operation = description["paths"][f"{PREFIX}{each.template}"][each.method.lower()]
        parameters = operation.get("parameters", [])
        headers = [(one["name"], one["required"]) for one in parameters if one["in"] == "header"]
        assert headers == ([(TOKEN_HEADER, True)] if each.changes else []), each.template
        content = operation["responses"]["200"]["content"]
        assert (CONTENT_TYPE in content) == (each.every_s is not None), each.template


def body_schema(operation: Any, schemas: Any) -> Any:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from references(each)


@pytest.mark.slow
def test_each_view_is_as_it_is_described(broker: Broker, console: ConsoleClient) -> None:
    fill(broker, console)
    description = console.get("/openapi.json")
    assert description["openapi"] == "3.1.0"
    close_objects(description["components"]["schemas"])
    for path, methods in description["paths"].items():
        if "get" not in methods:
            continue
        content = methods["get"]["responses"]["200"]["content"]
        if "application/json" not in content:
            continue
        where = path.removeprefix(PREFIX).format(**IN_PATHS)
        schema = {"components": description["components"], **content["application/json"]["schema"]}
        Draft202012Validator(schema).validate(console.get(where))


def fill(broker: Broker, console: ConsoleClient) -> None:
    """Let the broker have something of everything that a view can show here."""
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"{}", b"k", headers={"h": b"x"})
    producer.flush()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()
    producer.abort_transaction()
    console.put(
        "/quotas", {"entity": [{"type": "user"}], "set": {"consumer_byte_rate": 1_000_000_000}}
    )
    console.post("/users", {"name": "u", "password": "p", "mechanism": "SCRAM-SHA-256"})


def close_objects(value: Any) -> None:
    """Let the schemas of objects allow only the fields that they name."""
    if isinstance(value, dict):
        if "properties" in value:
            value["additionalProperties"] = False
        for each in value.values():
            close_objects(each)
    elif isinstance(value, list):
        for each in value:
            close_objects(each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/connections?limit=0", 400),
        ("/connections?limit=1001", 400),
        ("/connections?from=-1", 400),
        ("/connections?limit=many", 400),
    ],
)
def test_bad_input_is_refused(console: ConsoleClient, path: str, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    connection.request("GET", f"{PREFIX}{path}")
    assert connection.getresponse().status == status
    connection.close()


class Number(View):
    number: int


class Unshared(SharedViews):
    """Makes each response again."""

    async def get(
        self, _: object, __: float, make: Callable[[], Awaitable[tuple[View, bytes]]]
    ) -> tuple[View, bytes]:
        return await make()


async def test_clients_that_watch_the_same_get_the_same_response() -> None:
    shared = SharedViews(asyncio.get_running_loop())
    made: list[str] = []

    async def response(key: str) -> tuple[View, bytes]:
        return await shared.get(key, 0.02, partial(make, key))

    async def make(key: str) -> tuple[View, bytes]:
        made.append(key)
        return Nothing(), key.encode()

    both = await asyncio.gather(response("a"), response("a"), response("b"))
    assert [body for _, body in both] == [b"a", b"a", b"b"]
    assert made == ["a", "b"]
    while len(made) < 3:  # it is forgotten after a while
        await asyncio.sleep(0.01)
        await response("a")


async def test_a_response_is_given_up_when_all_who_wait_for_it_have_gone() -> None:
    shared = SharedViews(asyncio.get_running_loop())
    is_begun, is_given_up = asyncio.Event(), asyncio.Event()

    async def make() -> tuple[View, bytes]:
        is_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_given_up.set()
        raise AssertionError

    clients = [asyncio.create_task(shared.get("a", 60, make)) for _ in range(2)]
    await is_begun.wait()
    clients[0].cancel()
    await asyncio.wait(clients, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    assert not is_given_up.is_set()
    clients[1].cancel()
    await is_given_up.wait()

    async def made() -> tuple[View, bytes]:
        return Nothing(), b"b"

    assert await shared.get("a", 60, made) == (Nothing(), b"b")


async def watch(results: list[int | ApiError], every_s: float = 0.0) -> list[bytes]:
    """The first events of a view that gives one result after the other, and fails at the end."""
    left = iter([*results, ApiError(ErrorCode.NOT_COORDINATOR, "it is over")])

    def handle(_: object, __: object) -> View:
        result = next(left)
        if isinstance(result, ApiError):
            raise result
        return Number(number=result)

    async def run(work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await work(None)

    endpoint = Endpoint(
        method="GET", template="/", summary="", handle=handle, response=Number, every_s=every_s
    )
    unshared = Unshared(asyncio.get_running_loop())
    return [event async for event in events(endpoint, Nothing(), run, unshared, "client")]


async def test_only_changes_are_sent() -> None:
    *sent, failure = await watch([1, 1, 1, 2, 2, 1])
    assert sent == [b'data: {"number":%d}\n\n' % number for number in (1, 2, 1)]
    assert failure.startswith(b"event: failure\ndata: ")
    assert json.loads(failure.split(b"data: ")[1]) == {
        "error": "NOT_COORDINATOR",
        "message": "it is over",
    }


async def test_a_client_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_sleep(_: float) -> None:
        pass

    monkeypatch.setattr("odradek.broker.console.watching.asyncio.sleep", no_sleep)
    *sent, _ = await watch([1, 1, 1], every_s=QUIET_S)
    assert sent == [b'data: {"number":1}\n\n', b":\n\n", b":\n\n"]


@pytest.mark.slow
def test_a_view_can_be_watched(broker: Broker, console: ConsoleClient) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    connection.request("GET", f"{PREFIX}/quotas", headers={"Accept": "text/event-stream"})
    assert connection.getresponse().headers["Content-Type"] == "application/json"
    connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    connection.request("GET", f"{PREFIX}/topics", headers={"Accept": "text/event-stream"})
    stream = connection.getresponse()
    assert stream.headers["Content-Type"] == "text/event-stream"
    assert next_event(stream)["total"] == 0
    broker.create_topic("new")
    assert next_event(stream)["topics"][0]["name"] == "new"
    connection.close()


def next_event(stream: http.client.HTTPResponse) -> Any:
    while not (line := stream.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    return json.loads(line.removeprefix(b"data: "))


@pytest.mark.slow
def test_the_overview_names_a_transaction_that_is_open_for_long(
    broker: Broker, console: ConsoleClient
) -> None:
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "shop"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"1")
    assert producer.flush(30) == 0
    view = console.get("/overview")
    assert (view["counts"]["openTransactions"], view["findings"]) == (1, [])
    broker.set_clock(int(time.time() * 1000) + 150_000)
    [finding] = console.get("/overview")["findings"]
    assert "the transaction of shop has been open for 2 minutes" in finding["text"]
