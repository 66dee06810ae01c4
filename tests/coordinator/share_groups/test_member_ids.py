"""Which ids the members of share groups may have."""

import pytest

from odradek.coordinator.share_groups.heartbeat import MAX_MEMBER_ID_UNITS, check_member_id
from odradek.protocol.errors import ApiError


@pytest.mark.parametrize("letter", ["m", "é", "\N{HOT BEVERAGE}", "\N{CUP WITH STRAW}"])
def test_the_length_is_counted_as_by_java(letter: str) -> None:
    longest = letter * (MAX_MEMBER_ID_UNITS // (1 + (letter > "\uffff")))
    assert check_member_id(longest) == longest
    for refused in (longest + letter, "", None):
        with pytest.raises(ApiError):
            check_member_id(refused)
