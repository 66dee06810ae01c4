"""The OpenAPI 3.1 description of the console's API, generated from its endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from .endpoints import PREFIX, TOKEN_HEADER, Endpoint, Failure
from .view import View
from .watching import CONTENT_TYPE

_SCHEMAS = "#/components/schemas/"
_REFERENCE = _SCHEMAS + "{name}"
_LOGIN = "basic"
_LOGINS = {
    _LOGIN: {
        "type": "http",
        "scheme": "basic",
        "description": "Needed if a listener of the broker has its clients log in by SASL.",
    }
}
_TOKEN = {
    "name": TOKEN_HEADER,
    "in": "header",
    "required": True,
    "description": "The token that /me gives.",
    "schema": {"type": "string"},
}


def describe(endpoints: Iterable[Endpoint], version: str) -> Mapping[str, Any]:
    """Return the description of endpoints as JSON values."""
    known = list(endpoints)
    types: set[type[View]] = {
        Failure,
        *(each.response for each in known),
        *(each.request for each in known),
    }
    ordered = sorted(types, key=lambda each: each.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in known:
        operation = _operation(endpoint, schemas)
        paths.setdefault(f"{PREFIX}{endpoint.template}", {})[endpoint.method.lower()] = operation
    # Requests that are described as parameters are left out.
    used = _references(paths, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "odradek console", "version": version},
        "security": [{}, {_LOGIN: []}],
        "paths": paths,
        "components": {
            "schemas": {name: each for name, each in schemas.items() if name in used},
            "securitySchemes": _LOGINS,
        },
    }


def _references(value: object, schemas: Mapping[str, Any]) -> set[str]:
    """The names of the schemas to which a value refers, also through other schemas."""
    found: set[str] = set()
    unread = [value]
    while unread:
        each = unread.pop()
        if isinstance(each, Mapping):
            reference = each.get("$ref")
            if isinstance(reference, str):
                name = reference.removeprefix(_SCHEMAS)
                if name not in found:
                    found.add(name)
                    unread.append(schemas[name])
            unread += each.values()
        elif isinstance(each, list | tuple):
            unread += each
    return found


def _operation(endpoint: Endpoint, schemas: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "responses": {
            "200": _answer(endpoint),
            "default": {
                "description": "Why it was refused.",
                **_json(_reference(Failure.__name__)),
            },
        },
    }
    schema = schemas[endpoint.request.__name__]
    in_path = {part[1:-1] for part in endpoint.template.split("/") if part.startswith("{")}
    parameters = [
        _parameter(name, value, schema, in_path)
        for name, value in schema["properties"].items()
        if not endpoint.changes or name in in_path
    ]
    if endpoint.changes:
        parameters.append(_TOKEN)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.changes:
        body = _body(endpoint, schema, in_path)
        if body is not None:
            operation["requestBody"] = body
    return operation


def _answer(endpoint: Endpoint) -> dict[str, Any]:
    description = "What was asked for."
    text = {"schema": {"type": "string"}}
    if endpoint.stream is not None:
        return {"description": description, "content": {endpoint.content_type: text}}
    found: dict[str, Any] = {
        "description": description,
        **_json(_reference(endpoint.response.__name__)),
    }
    if endpoint.every_s is not None:
        found["content"][CONTENT_TYPE] = text
    return found


def _parameter(
    name: str, value: Mapping[str, Any], schema: Mapping[str, Any], in_path: set[str]
) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path" if name in in_path else "query",
        "required": name in in_path or name in schema.get("required", ()),
        "schema": value,
    }


def _body(
    endpoint: Endpoint, schema: Mapping[str, Any], in_path: set[str]
) -> dict[str, Any] | None:
    """The fields of a request that its path does not have; None if there are no others."""
    fields = {name: each for name, each in schema["properties"].items() if name not in in_path}
    if not fields:
        return None
    required = [name for name in schema.get("required", ()) if name not in in_path]
    in_body: Mapping[str, Any] = _reference(endpoint.request.__name__)
    if len(fields) < len(schema["properties"]):
        in_body = {**schema, "properties": fields, "required": required}
    return {"required": bool(required), **_json(in_body)}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(name=name)}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
