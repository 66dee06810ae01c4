"""The JSON of the registry's replies: Confluent's names, in its order, without what is empty."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from odradek.broker.http.messages import HttpError, HttpResponse
from odradek.coordinator.registry.errors import RegistryError
from odradek.coordinator.registry.schemas import Json, SchemaVersion

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_PIECE_BYTES = 64 * 1024
# Of these the text is the one that Confluent's server gives to each.
_PLAIN_ERRORS = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_ERROR_CODES = {HTTPStatus.FORBIDDEN: 40301}


def whole_version(version: SchemaVersion) -> Json:
    """A version with its place."""
    return _filled(
        {
            "subject": version.subject,
            "version": version.version,
            "id": version.id,
            **_content(version),
        }
    )


def registered(version: SchemaVersion) -> Json:
    """The reply to a registration."""
    return _filled({"id": version.id, "version": version.version, **_content(version)})


def schema_of_id(
    version: SchemaVersion, *, with_place: bool, text: str | None = None, max_id: int | None = None
) -> Json:
    """The schema of an id, or without a place, of a guid."""
    content = _content(version)
    guid, schema_type = content.pop("guid"), content.pop("schemaType")
    stored = content.pop("schema")
    return _filled(
        {
            "subject": version.subject if with_place else None,
            "version": version.version if with_place else None,
            "guid": guid,
            "schemaType": schema_type,
            "schema": stored if text is None else text,
            "references": content.pop("references"),
            "metadata": content.pop("metadata"),
            "ruleSet": content.pop("ruleSet"),
            "maxId": max_id,
            **content,
        }
    )


def changed_config(config: Json) -> Json:
    """The reply to a change of a configuration calls the level otherwise than the configuration."""
    return {
        "compatibility" if name == "compatibilityLevel" else name: value
        for name, value in config.items()
    }


def _content(version: SchemaVersion) -> Json:
    schema = version.schema
    is_new = version.stored_ms is None
    return {
        "guid": schema.guid,
        "schemaType": schema.schema_type,
        "references": [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ],
        "metadata": schema.metadata,
        "ruleSet": schema.rule_set,
        "schema": schema.text,
        "ts": version.stored_ms,
        "deleted": None if is_new else version.deleted,
    }


def _filled(fields: Mapping[str, Any]) -> Json:
    return {name: value for name, value in fields.items() if value is not None and value != []}


# -- responses -------------------------------------------------------------------------------------


def json_response(value: Any, content_type: str) -> HttpResponse:
    return HttpResponse(HTTPStatus.OK, msgspec.json.encode(value), content_type)


def array_response(values: Iterable[Any], content_type: str) -> HttpResponse:
    """An array that may be large. It is sent in pieces."""
    return HttpResponse(HTTPStatus.OK, _pieces(values), content_type)


async def _pieces(values: Iterable[Any]) -> AsyncGenerator[bytes, None]:
    piece = bytearray(b"[")
    separator = b""
    for value in values:
        piece += separator + msgspec.json.encode(value)
        separator = b","
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece + b"]")


def registry_error(error: RegistryError) -> HttpResponse:
    return _error(HTTPStatus(error.status), error.code, error.message)


def http_error(error: HttpError, _: str = "") -> HttpResponse:
    """The response to a request that does not reach the registry."""
    status = error.status
    text = f"HTTP {status.value} {status.phrase}" if status in _PLAIN_ERRORS else str(error)
    response = _error(status, _ERROR_CODES.get(status, status.value), text)
    return HttpResponse(status, response.body, CONTENT_TYPE, error.headers)


def _error(status: HTTPStatus, code: int, message: str) -> HttpResponse:
    body = msgspec.json.encode({"error_code": int(code), "message": message})
    return HttpResponse(status, body, CONTENT_TYPE)
