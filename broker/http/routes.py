"""Finds the handler of a request by its method and path.

A path is a template: `/topics/{topic}/partitions`. A part in braces matches one part of a path,
which may not be empty, and is decoded after the path has been split: a name may contain an encoded
slash. Of two templates that match, the one with the earlier literal part is meant:
`/schemas/types` before `/schemas/{id}`.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote

from .messages import Handler, HttpError

# Bytes of a request's body, unless its route allows more.
MAX_BODY_BYTES = 1024 * 1024


class Route(NamedTuple):
    """One method of one path, and who serves it. A body may have `max_body_bytes`."""

    method: str
    template: str
    handle: Handler
    max_body_bytes: int = MAX_BODY_BYTES


class _Node:
    """The routes below a part of a path."""

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.any: _Node | None = None  # for each other part
        self.routes: dict[str, Route] = {}  # by method, of paths that end here


class Routes:
    """The paths of a server."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.all = list(routes)
        self._root = _Node()
        for route in self.all:
            self._add(route)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a request, and the decoded parts of its path by their names.

        HEAD is served where GET is. Raises HttpError: 404, 405.
        """
        node, parts = self._match(self._root, path.split("/")[1:])
        if node is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no {path}{self._hint()}")
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = ", ".join([*node.routes, *(["HEAD"] if "GET" in node.routes else [])])
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"use {allowed}", [("Allow", allowed)])
        names = _names(route.template)
        return route, dict(zip(names, (unquote(part) for part in parts), strict=True))

    def _add(self, route: Route) -> None:
        node = self._root
        for part in route.template.split("/")[1:]:
            if part.startswith("{"):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.literal.setdefault(part, _Node())
        assert route.method not in node.routes, f"{route.method} {route.template} is there twice"
        node.routes[route.method] = route

    def _match(self, node: _Node, parts: list[str]) -> tuple[_Node | None, list[str]]:
        """The node of a path, and those parts of the path that a template leaves open."""
        if not parts:
            return (node if node.routes else None), []
        first, rest = parts[0], parts[1:]
        literal = node.literal.get(first)
        if literal is not None:
            found, values = self._match(literal, rest)
            if found is not None:
                return found, values
        if node.any is not None and first:
            found, values = self._match(node.any, rest)
            if found is not None:
                return found, [first, *values]
        return None, []

    def _hint(self) -> str:
        """The paths of a small server."""
        paths = sorted({route.template for route in self.all})
        return f"; try {', '.join(paths)}" if len(paths) <= 5 else ""


def _names(template: str) -> list[str]:
    return [part[1:-1] for part in template.split("/") if part.startswith("{")]
