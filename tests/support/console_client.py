"""Asks the API of a broker's console, without a browser."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 60.0


class Reply(NamedTuple):
    status: int
    body: Any


class ConsoleClient:
    """One user of a console. Paths are those below /api/v1."""

    def __init__(self, port: int, user: str = "", password: str = "") -> None:
        self._url = f"http://localhost:{port}/api/v1"
        self._headers: dict[str, str] = {}
        if user:
            login = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {login}"

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Reply:
        """Send a request, and return the reply, also that of an error."""
        url = self._url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return Reply(answer.status, json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, json.loads(error.read()))

    def get(self, path: str, **query: Any) -> Any:
        """The body of a successful reply."""
        return _body(self.ask("GET", path, None, **query))

    def change(self, method: str, path: str, body: Any) -> Any:
        """Change something with the token that pages get."""
        self._log_in()
        return _body(self.ask(method, path, body))

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str, str]:
        """The status, the name and the message of an error, of a request with the token."""
        self._log_in()
        reply = self.ask(method, path, body)
        assert reply.status >= 400, reply
        return reply.status, reply.body["error"], reply.body["message"]

    def _log_in(self) -> None:
        if "X-Odradek-Token" not in self._headers:
            self._headers["X-Odradek-Token"] = self.get("/me")["token"]


def _body(reply: Reply) -> Any:
    assert reply.status == 200, reply
    return reply.body
