"""The types of requests and responses."""

from __future__ import annotations

from msgspec import Struct


class View(Struct, rename="camel"):
    """A request or a response of an endpoint, or a part of one; in JSON its names are camelCase."""
