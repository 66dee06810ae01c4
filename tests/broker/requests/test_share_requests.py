"""Acknowledgements in the requests of share groups: which are refused, and why."""

from collections.abc import Sequence

import pytest

from odradek.broker.requests.share_requests import check_acknowledgements
from odradek.coordinator.share_partitions.changes import Acknowledgement, AcknowledgeType
from odradek.protocol.errors import ApiError, ErrorCode


def check(*ranges: tuple[int, int], types: Sequence[int] = (AcknowledgeType.ACCEPT,)) -> None:
    acknowledgements = [Acknowledgement(first, last, types) for first, last in ranges]
    check_acknowledgements(acknowledgements, may_renew=False)


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([(5, 3)], "5 to 3 ends before it begins"),
        ([(0, 4), (3, 6)], "3 to 6 does not follow 4"),
    ],
)
def test_the_reason_of_a_refusal_is_named(ranges: list[tuple[int, int]], text: str) -> None:
    with pytest.raises(ApiError) as caught:
        check(*ranges)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, text)


def test_an_acknowledgement_may_begin_at_the_last_offset_of_the_one_before() -> None:
    check((0, 4), (4, 6))
