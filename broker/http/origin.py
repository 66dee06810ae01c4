"""Keeps pages of other sites from the broker's own (DNS rebinding, cross-site requests).

A browser sends what a page asks for to any address that the page names, with that name as Host.
A page of another site may have a name that its owner points at this machine (DNS rebinding). So
only names are served that no stranger can own: addresses, `localhost`, names without a dot, and the
names of the broker. And a page of another origin must not change anything: its Origin must be ours.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from .messages import HttpError, HttpRequest


def check_origin(request: HttpRequest, own_names: Collection[str]) -> None:
    """Raise HttpError if a request was sent to a stranger's name, or by another site's page.

    `own_names` are names of the broker, in lower case.
    """
    authority = request.headers.get("host", "")
    name = _host_of(authority)
    if name is None or not (_is_local(name) or name in own_names):
        raise HttpError(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this broker is not called {name or authority!r}; odradek.http.hosts can name it so",
        )
    origin = request.headers.get("origin")
    if origin is not None and _authority_of(origin) != authority.lower():
        raise HttpError(HTTPStatus.FORBIDDEN, f"pages of {origin} may not ask this broker")


def _host_of(authority: str) -> str | None:
    """The name or address in HOST:PORT, in lower case."""
    try:
        return urlsplit(f"//{authority}").hostname
    except ValueError:
        return None


def _authority_of(origin: str) -> str | None:
    """The HOST:PORT of an origin, in lower case."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _is_local(name: str) -> bool:
    if "." not in name and ":" not in name:
        return True
    if name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
