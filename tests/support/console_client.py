"""Asks a broker's console over HTTP, as its pages do."""

import base64
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.metrics import http_port

PREFIX = "/api/v1"
CONSOLE = {"odradek.http.listener": "127.0.0.1:0", "odradek.console": "true"}
TIMEOUT_SECONDS = 60.0


class Answer(NamedTuple):
    status: int
    body: Any

    @property
    def error(self) -> tuple[int, str]:
        """The status and the error's name."""
        return self.status, self.body["error"]


class ConsoleClient:
    """One user of a console."""

    def __init__(self, port: int, user: str = "", password: str = "") -> None:
        self.port = port
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}"} if user else {}
        self._token: str | None = None

    def ask(self, method: str, path: str, body: Any = None, **query: object) -> Answer:
        """Send a request. One that changes something carries the console's token."""
        headers = dict(self._headers)
        if method != "GET":
            if self._token is None:
                self._token = self.get("/me")["token"]
            headers["X-Odradek-Token"] = self._token
        data = None if body is None else json.dumps(body).encode()
        where = f"{PREFIX}{path}" + (f"?{urlencode(query)}" if query else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, where, data, headers)
            answer = connection.getresponse()
            return Answer(answer.status, json.loads(answer.read()))
        finally:
            connection.close()

    def get(self, path: str, **query: object) -> Any:
        """The body of a successful answer."""
        return _body(self.ask("GET", path, **query))

    def post(self, path: str, body: Any) -> Any:
        return _body(self.ask("POST", path, body))

    def put(self, path: str, body: Any) -> Any:
        return _body(self.ask("PUT", path, body))

    def delete(self, path: str, body: Any) -> Any:
        return _body(self.ask("DELETE", path, body))


def _body(answer: Answer) -> Any:
    assert answer.status == 200, answer
    return answer.body


class ConsoleBroker(NamedTuple):
    """A broker with a console, and its client."""

    process: BrokerProcess
    console: ConsoleClient


@contextmanager
def console_broker(directory: Path, settings: dict[str, str]) -> Iterator[ConsoleBroker]:
    """A broker process with a console."""
    with running_broker(directory, {**CONSOLE, **settings}) as process:
        yield ConsoleBroker(process, ConsoleClient(http_port(process)))
