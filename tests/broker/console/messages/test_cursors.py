"""Cursors that are not this console's are refused."""

import base64
import zlib

import pytest

from odradek.broker.console.messages.cursors import Cursor, Place, decode
from odradek.protocol.errors import ApiError, ErrorCode

CURSOR = Cursor(newest=True, searched=1, total=5, places=[Place(partition=0, next=4, bound=0)])


def test_a_cursor_is_read_again() -> None:
    assert decode(CURSOR.encode()) == CURSOR


@pytest.mark.parametrize("content", [b"", b"{", b"[true,1,5]", b"[true,1,5,[]," + b"[" * 60_000])
def test_another_text_is_refused(content: bytes) -> None:
    text = base64.urlsafe_b64encode(zlib.compress(content)).decode()
    with pytest.raises(ApiError) as refused:
        decode(text)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
