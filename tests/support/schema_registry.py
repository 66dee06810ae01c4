"""A schema registry for tests: the part of Confluent's REST API that readers use, over HTTP."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import fastavro


class SchemaRegistry:
    """Remembers schemas by id and by subject. `failure` is the status of every answer if it is set.

    A Protobuf schema is given as a serialized file in base64; a real registry would compile it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.failure = 0
        self.requests: list[str] = []
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}

    def register(self, subject: str, schema: str, kind: str = "AVRO", **more: Any) -> int:
        """Add a version of a subject, and return the id of its schema."""
        self._schemas.append({"schema": schema, "schemaType": kind, **more})
        self._subjects.setdefault(subject, []).append(len(self._schemas))
        return len(self._schemas)

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status and the body for a GET."""
        self.requests.append(path)
        if self.failure:
            return self.failure, {"error_code": self.failure * 100 + 1, "message": "it is broken"}
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match parts:
            case ["schemas", "ids", number] if 0 < int(number) <= len(self._schemas):
                return 200, self._schema(int(number), path)
            case ["subjects", subject, "versions", "latest"] if subject in self._subjects:
                numbers = self._subjects[subject]
                about = {"subject": subject, "version": len(numbers), "id": numbers[-1]}
                return 200, {**about, **self._schema(numbers[-1], path)}
        return 404, {"error_code": 40403, "message": "not found"}

    def _schema(self, number: int, path: str) -> dict[str, Any]:
        found = self._schemas[number - 1]
        if found["schemaType"] == "PROTOBUF" and "format" not in parse_qs(urlsplit(path).query):
            return {**found, "schema": "syntax = ..."}
        return found


@contextmanager
def schema_registry() -> Iterator[SchemaRegistry]:
    """A registry that serves inside the `with`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry = SchemaRegistry(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()


def framed(schema_id: int, value: bytes) -> bytes:
    """A value with the header of the wire format."""
    return b"\0" + schema_id.to_bytes(4, "big") + value


def serialized(file: bytes) -> str:
    """A serialized Protobuf file as a registry gives it."""
    return base64.b64encode(file).decode()


def record(*fields: dict[str, Any], name: str = "Order") -> str:
    """A schema of Avro."""
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields})


def avro(schema: str, value: Any) -> bytes:
    """A value in Avro, without the header of the registry's wire format."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return out.getvalue()
