"""Requests that make no sense are refused with 4xx: never 500, nor an exception in the log."""

import http.client
import json
import random
from collections.abc import Iterator, Mapping
from urllib.parse import quote

import pytest

from odradek.broker.console.endpoints import PREFIX
from odradek.broker.testing.broker import Broker
from tests.support.console_client import ConsoleClient

pytestmark = pytest.mark.slow

HUGE = [str(1 << 63), str((1 << 63) - 1), str(1 << 64), "9" * 5000, "-" + "9" * 5000]
ODD = [*HUGE, "", "-1", "1e999", "NaN", "null", "[", "http://[", "http://[::1", "\x00", "\ud7ff"]
ODD += ["$[" + "9" * 5000 + "]", "$" + ".a" * 5000, "$[", "\u0663", "\xff"]
QUERY = ["from", "limit", "search", "sort", "membersFrom", "partition", "offset", "timestampMs"]
QUERY += ["position", "cursor", "jsonPath", "header", "key", "format", "isolation", "internal"]
TOO_MANY = b"[" * 100_000
BODIES = [TOO_MANY, b'{"a":' * 5000, b"[" * 5000, b'{"a":"\xff"}', b"\xff\xfe", b"[]", b"5", b"{"]


@pytest.fixture(autouse=True)
def no_exception_is_logged(console: ConsoleClient) -> Iterator[None]:
    before = errors(console)
    yield
    assert errors(console) == before


def errors(console: ConsoleClient) -> list[str]:
    entries = console.get("/log")["entries"]
    return [each["text"] for each in entries if each["level"] == "ERROR"]


def ask(
    console: ConsoleClient,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str | bytes] | None = None,
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def paths(console: ConsoleClient, method: str) -> list[str]:
    description = console.get("/openapi.json")["paths"]
    names = {"topic": "orders", "partition": "0", "group": "readers", "offset": "0"}
    return [path.format(**names) for path in description if method in description[path]]


def check(status: int, body: bytes, what: object) -> None:
    assert status < 500, (what, body)
    if status >= 400:
        assert set(json.loads(body)) == {"error", "message"}, what


def test_no_query_is_too_odd(broker: Broker, console: ConsoleClient) -> None:
    broker.create_topic("orders")
    dice = random.Random(1)
    for path in paths(console, "get"):
        for name in ("from", "membersFrom"):
            where = f"{path}?{name}={HUGE[1]}"
            check(*ask(console, "GET", where), where)
        for _ in range(12):
            pairs = [(dice.choice(QUERY), dice.choice(ODD)) for _ in range(2)]
            where = f"{path}?" + "&".join(f"{name}={quote(odd)[:8000]}" for name, odd in pairs)
            check(*ask(console, "GET", where), where)


def test_no_body_is_too_odd(broker: Broker, console: ConsoleClient) -> None:
    broker.create_topic("orders")
    headers = {"X-Odradek-Token": console.get("/me")["token"]}
    for method in ("post", "put", "delete"):
        for path in paths(console, method):
            for body in BODIES:
                status, answer = ask(console, method.upper(), path, body, headers)
                check(status, answer, (path, body[:10]))
                assert status == (413 if body is TOO_MANY else 400)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/topics/orders/messages", {"value": "x", "timestampMs": 1 << 63}),
        ("/topics/orders/messages", {"value": "x", "timestampMs": -(1 << 63)}),
        ("/topics/orders/delete-records", {"offsets": {}}),
        ("/topics/orders/delete-records", {"offsets": {"0": 1 << 63}}),
    ],
)
def test_no_number_is_too_odd(
    broker: Broker, console: ConsoleClient, path: str, body: object
) -> None:
    broker.create_topic("orders")
    headers = {"X-Odradek-Token": console.get("/me")["token"]}
    status, answer = ask(console, "POST", PREFIX + path, json.dumps(body).encode(), headers)
    check(status, answer, body)
    assert status == 400


@pytest.mark.parametrize("path", ["/nothing", "/me/nothing", "/"])
def test_a_path_that_is_unknown_is_refused_in_json(console: ConsoleClient, path: str) -> None:
    for method in ("GET", "POST"):
        status, body = ask(console, method, PREFIX + path)
        assert status == 404
        assert json.loads(body)["error"] == "NOT_FOUND"
    status, body = ask(console, "DELETE", f"{PREFIX}/me")
    assert (status, json.loads(body)["error"]) == (405, "METHOD_NOT_ALLOWED")
    assert ask(console, "GET", "/nothing")[1].startswith(b"there is no /nothing")


def test_no_header_is_too_odd(console: ConsoleClient) -> None:
    dice = random.Random(2)
    for name in ("Origin", "Host", "Authorization", "Accept", "X-Odradek-Token", "If-None-Match"):
        odd: list[bytes] = [each.encode()[:5000].replace(b"\0", b"") for each in ODD]
        odd += [bytes(dice.choices(range(33, 256), k=dice.randrange(1, 20))) for _ in range(10)]
        odd += [b"http://localhost]", b"Basic \xff", b"Basic /w=="]
        for value in odd:
            for method, path in (("GET", "/topics"), ("POST", "/topics")):
                given = ask(console, method, PREFIX + path, b"", {name: value})
                check(*given, (name, value))
