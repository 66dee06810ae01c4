"""An HTTP proxy that fails as networks and stores do. `python -m tests.support.failing_proxy PORT`

It runs in a process of its own, because a client in Rust may hold Python's lock while it waits. It
prints its port. A PUT to /.faults sets what happens from then on, as JSON:

    {"seed": 1, "rate": 0.1}                                 that part of all requests fails somehow
    {"method": "PUT", "suffix": ".json", "fault": "no answer"}    requests of that kind fail so
    {}                                                       none fails
"""

import http.client
import json
import random
import socket
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ERROR = "error"  # an answer of 500, and nothing was done
NO_REQUEST = "no request"  # the connection ends before the server gets the request
NO_ANSWER = "no answer"  # it is done, and the connection ends
ALL = (ERROR, NO_REQUEST, NO_ANSWER)
CONTROL = "/.faults"
_PER_HOP = ("transfer-encoding", "connection", "content-length")


class Faults:
    """Decides which request fails, and how."""

    def __init__(self) -> None:
        self.rules: dict[str, Any] = {}
        self.random = random.Random()

    def set(self, rules: dict[str, Any]) -> None:
        """Begin with other rules."""
        self.rules = rules
        self.random.seed(rules.get("seed"))

    def of(self, method: str, path: str) -> str | None:
        """What happens to a request; None if it is answered."""
        if self.random.random() < self.rules.get("rate", 0):
            return self.random.choice(ALL)
        if method == self.rules.get("method") and path.endswith(self.rules["suffix"]):
            return str(self.rules["fault"])
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults = Faults()
    server_port = 0

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == CONTROL:
            self.faults.set(json.loads(body))
            self._answer(200, [], b"")
            return
        fault = self.faults.of(self.command, self.path)
        if fault == ERROR:
            self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")
            return
        if fault == NO_REQUEST:
            self._hang_up()
            return
        answer = self._forwarded(body)
        if fault == NO_ANSWER:
            self._hang_up()
        else:
            self._answer(*answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 # http.server's names

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _PER_HOP:
                self.send_header(name, value)
        known = {name.lower(): value for name, value in headers}
        length = known.get("content-length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Handler.server_port = int(sys.argv[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        sys.stdout.write(f"{proxy.server_port}\n")
        sys.stdout.flush()
        proxy.serve_forever()
