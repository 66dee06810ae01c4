"""What a request asks for: its subject and context, the query, the body, the content type.

Each path is also served below `/contexts/{context}`: subjects of the path and of the query are then
in this context, unless they name one.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from odradek.broker.http.json_bodies import decoded
from odradek.broker.http.messages import HttpError, HttpRequest
from odradek.coordinator.registry import subjects
from odradek.coordinator.registry.requests import integer

from .replies import CONTENT_TYPE

_CONTENT_TYPES = (CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json")
_REQUEST_TYPES = (*_CONTENT_TYPES, "application/octet-stream")
# Of a body: rules, properties, references. To check, compare and store so many takes 10 ms.
_MAX_VALUES = 4000


class Asked:
    """A request. Raises HttpError where it is wrong."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._names = request.parameters
        self.context = _qualified_context(self._names.get("context"))
        self.content_type = _accepted(request.headers.get("accept", ""))

    @property
    def client(self) -> str:
        """Who shares long work fairly with others."""
        return self._request.peer_host

    # -- the path ----------------------------------------------------------------------------------

    @property
    def subject(self) -> str:
        """The subject of the path, in its context."""
        return self._in_context(self._names["subject"])

    @property
    def scope(self) -> str | None:
        """What a configuration or mode is of: a subject, the context, or (None) all subjects."""
        if "subject" in self._names:
            return self.subject
        return self.context or None

    def part(self, name: str) -> str:
        """A part of the path."""
        return self._names[name]

    def number(self, name: str) -> int:
        """A part of the path that is a number."""
        return _number(self._names[name])

    # -- the query ---------------------------------------------------------------------------------

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def text(self, name: str, default: str = "") -> str:
        return self._request.query.get(name, [default])[0]

    def texts(self, name: str) -> list[str]:
        return self._request.query.get(name, [])

    def asked_subject(self) -> str:
        """The subject of the query; without one, the context itself."""
        return self._in_context(self.text("subject"))

    def prefix(self, default: str) -> str:
        """The prefix of subjects, which is in the context of the path if it names one."""
        if "context" in self._names:
            default = ""
        return self._in_context(self.text("subjectPrefix", default))

    def page(self, found: list[Any], max_items: int | None = None) -> list[Any]:
        """The part of a list that the query asks for; at most `max_items` if that is given."""
        first = max(_number(self.text("offset", "0")), 0)
        limit = _number(self.text("limit", "-1"))
        if limit <= 0 or (max_items is not None and limit > max_items):
            return found[first:] if max_items is None else found[first : first + max_items]
        return found[first : first + limit]

    # -- the body ----------------------------------------------------------------------------------

    def body(self) -> Any:
        """The body, which must be JSON."""
        given = self._request.headers.get("content-type", _REQUEST_TYPES[0])
        if given.partition(";")[0].strip().lower() not in _REQUEST_TYPES:
            raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, given)
        if not self._request.body.strip():
            raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, "the request has no body")
        body = decoded(self._request.body, _MAX_VALUES)
        if body is None:
            raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, "the request has no body")
        return body

    def object(self) -> dict[str, Any]:
        """The body, which must be an object of JSON."""
        body = self.body()
        if not isinstance(body, dict):
            raise HttpError(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
        return body

    def _in_context(self, subject: str) -> str:
        has_context = subject.startswith((":.", subjects.ALL_CONTEXTS))
        return subject if has_context else self.context + subject


def _qualified_context(given: str | None) -> str:
    """Return `:.prod:` for prod, .prod or :.prod:, and nothing for the default context."""
    if given is None:
        return ""
    name = given.removeprefix(":").removesuffix(":")
    if ":" in name:
        text = f"Context name '{name}' cannot contain a colon"
        raise HttpError(HTTPStatus.BAD_REQUEST, text)
    name = name if name.startswith(".") else f".{name}"
    return subjects.Subject(name, "").qualified_context


def _accepted(header: str) -> str:
    """Return the content type of the reply; of equal ones, the registry's own is preferred."""
    if not header.strip():
        return CONTENT_TYPE
    best, best_weight = "", 0.0
    for offered in _CONTENT_TYPES:
        weight = max(_weight(each, offered) for each in header.split(","))
        if weight > best_weight:
            best, best_weight = offered, weight
    if not best:
        raise HttpError(HTTPStatus.NOT_ACCEPTABLE, header)
    return best


def _weight(accepted: str, offered: str) -> float:
    """Return the weight (q) that an entry of an Accept header gives to a content type."""
    name, *parameters = (part.strip() for part in accepted.lower().split(";"))
    if name not in ("*/*", "application/*", offered):
        return 0.0
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def _number(text: str) -> int:
    """Raises HttpError, as Confluent's server: a path or a query without a number is unknown."""
    number = integer(text)
    if number is None:
        raise HttpError(HTTPStatus.NOT_FOUND, text)
    return number
