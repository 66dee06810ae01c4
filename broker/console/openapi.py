"""The OpenAPI 3.1 description of the console's API, made of its endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from .endpoints import PREFIX, Endpoint, Failure
from .view import View

_REFERENCE = "#/components/schemas/{name}"


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
    requests = {each.request.__name__ for each in known if each.method == "GET"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "odradek console", "version": version},
        "paths": paths,
        "components": {
            "schemas": {name: each for name, each in schemas.items() if name not in requests}
        },
    }


def _operation(endpoint: Endpoint, schemas: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "responses": {
            "200": _answer(endpoint),
            "default": _content("Why it was refused.", Failure.__name__),
        },
    }
    schema = schemas[endpoint.request.__name__]
    in_path = {part[1:-1] for part in endpoint.template.split("/") if part.startswith("{")}
    parameters = [
        _parameter(name, value, schema, in_path)
        for name, value in schema["properties"].items()
        if endpoint.method == "GET" or name in in_path
    ]
    if parameters:
        operation["parameters"] = parameters
    if endpoint.method != "GET":
        operation["requestBody"] = _content("", endpoint.request.__name__)
    return operation


def _answer(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.stream is None:
        return _content("What was asked for.", endpoint.response.__name__)
    body = {"schema": {"type": "string"}}
    return {"description": "What was asked for.", "content": {endpoint.content_type: body}}


def _parameter(
    name: str, value: Mapping[str, Any], schema: Mapping[str, Any], in_path: set[str]
) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path" if name in in_path else "query",
        "required": name in in_path or name in schema.get("required", ()),
        "schema": value,
    }


def _content(description: str, name: str) -> dict[str, Any]:
    reference = {"$ref": _REFERENCE.format(name=name)}
    content: dict[str, Any] = {"content": {"application/json": {"schema": reference}}}
    return {"description": description, **content} if description else content
