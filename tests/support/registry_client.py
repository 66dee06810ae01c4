"""Asks a schema registry over HTTP, without a client's library, and writes to its topic."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.wire import WireClient

JSON = "application/vnd.schemaregistry.v1+json"
TIMEOUT_SECONDS = 300.0  # a busy machine compares long schemas for a minute


class Reply(NamedTuple):
    status: int
    body: Any
    content_type: str = JSON


class RegistryClient:
    """One user of a registry. All replies are returned, errors too."""

    def __init__(self, url: str, user: str = "", password: str = "") -> None:
        self.url = url
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request. A body of bytes is sent as it is, another one as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Content-Type": JSON, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self._login:
            given["Authorization"] = f"Basic {self._login}"
        request = urllib.request.Request(self.url + path, data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return _reply(answer.status, answer.read(), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return _reply(error.code, error.read(), error.headers)

    def get(self, path: str) -> Any:
        """The body of a successful reply."""
        return _body(self.ask("GET", path))

    def post(self, path: str, body: Any) -> Any:
        return _body(self.ask("POST", path, body))

    def put(self, path: str, body: Any) -> Any:
        return _body(self.ask("PUT", path, body))

    def delete(self, path: str) -> Any:
        return _body(self.ask("DELETE", path))

    def register(self, subject: str, schema: str, **more: Any) -> int:
        """Register a schema, and return its id."""
        found: int = self.post(f"/subjects/{subject}/versions", {"schema": schema, **more})["id"]
        return found

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, int, str]:
        """The status, the code and the message of an error."""
        reply = self.ask(method, path, body)
        assert reply.status >= 400, reply
        assert set(reply.body) == {"error_code", "message"}
        return reply.status, reply.body["error_code"], reply.body["message"]


def _reply(status: int, data: bytes, headers: Any) -> Reply:
    content_type = headers.get("Content-Type", "")
    return Reply(status, json.loads(data) if data else None, content_type)


def _body(reply: Reply) -> Any:
    assert reply.status == 200, reply
    return reply.body


def schema_batch(subject: str, unknown_bytes: int, headers: int = 0) -> bytes:
    """A compressed record of a schema, with a field of that size that no registry knows."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
    value = {"subject": subject, "version": 1, "id": 7, "schema": '"bytes"'}
    filled = {**value, "unknown": "a" * unknown_bytes}
    record = Record(
        json.dumps(key).encode(), json.dumps(filled).encode(), 1_000, (("h", b""),) * headers
    )
    return bytes(build_batch([record], compression=CompressionType.ZSTD))


def produce_batch(port: int, topic: str, batch: bytes) -> None:
    """Append a batch to partition 0."""
    data = ProducePartitionData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=60_000,
        topic_data=[ProduceTopicData(name=topic, partition_data=[data])],
    )
    with WireClient(port) as client:
        answer = client.ask(request, ProduceResponse, 9)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code == ErrorCode.NONE, partition
