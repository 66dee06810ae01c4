"""Which requests a browser may send for whom."""

from contextlib import suppress
from http import HTTPStatus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.broker.http.messages import HttpError, HttpRequest
from odradek.broker.http.origin import check_origin

NAMES = {"broker.example"}


def request_with(**headers: str) -> HttpRequest:
    return HttpRequest(
        method="POST", path="/", query={}, headers=headers, body=b"", peer_host="127.0.0.1"
    )


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:9404",
        "a.localhost",
        "127.0.0.1:9404",
        "10.0.0.7",
        "[::1]:9404",
        "kafka:9404",
        "broker.example",
        "BROKER.example:9404",
    ],
)
def test_a_name_that_no_stranger_owns_is_served(host: str) -> None:
    check_origin(request_with(host=host), NAMES)
    check_origin(request_with(host=host, origin=f"http://{host}"), NAMES)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "a.b:x"])
def test_another_name_is_refused(host: str) -> None:
    with pytest.raises(HttpError) as refused:
        check_origin(request_with(host=host), NAMES)
    assert refused.value.status is HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "http://localhost.evil.example"]
)
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    with pytest.raises(HttpError) as refused:
        check_origin(request_with(host="localhost:9404", origin=origin), NAMES)
    assert refused.value.status is HTTPStatus.FORBIDDEN


@given(st.text(), st.text())
@example("localhost", "http://[")
@example("localhost", "http://[::1")
@example("localhost", "http://localhost]")
@example("[", "http://\u2100")
def test_no_name_breaks_the_check(host: str, origin: str) -> None:
    for name in (host, "localhost"):
        with suppress(HttpError):
            check_origin(request_with(host=name, origin=origin), NAMES)
