"""A body of JSON has a limit of values; what its strings say does not count."""

import json
from http import HTTPStatus
from typing import Any

import pytest

from odradek.broker.http.json_bodies import decoded
from odradek.broker.http.messages import HttpError

MAX_VALUES = 10
LONG = json.dumps([{"a,[{": "\\"}] * 100) + 'a"b\\'


@pytest.mark.parametrize(
    "value", [[0] * (MAX_VALUES - 1), {str(n): [] for n in range(4)}, {"a": LONG}, LONG]
)
def test_a_body_with_so_many_values_is_parsed(value: Any) -> None:
    assert decoded(json.dumps(value).encode(), MAX_VALUES) == value


@pytest.mark.parametrize(
    "body",
    [
        json.dumps([0] * MAX_VALUES).encode(),
        json.dumps([LONG] * MAX_VALUES).encode(),
        b'{"":' * (MAX_VALUES + 1),
        b"[" * (MAX_VALUES + 1),
        b'""' * 3 * MAX_VALUES + b"," * MAX_VALUES,
    ],
)
def test_a_body_with_more_is_refused_before_it_is_parsed(body: bytes) -> None:
    with pytest.raises(HttpError) as refused:
        decoded(body, MAX_VALUES)
    assert refused.value.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE


@pytest.mark.parametrize("body", [b"", b"{", b'"\xff"', b"[" * 5000, b"5"])
def test_a_body_must_be_json_of_its_type(body: bytes) -> None:
    with pytest.raises(HttpError) as refused:
        decoded(body, 10_000, dict[str, Any])
    assert refused.value.status is HTTPStatus.BAD_REQUEST
