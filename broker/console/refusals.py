"""Errors of parts of Kafka's responses."""

from __future__ import annotations

from odradek.protocol.errors import ApiError, ErrorCode


def check_code(code: int, message: str | None = None) -> None:
    """Raise ApiError unless the code is that of no error."""
    if code:
        raise ApiError(ErrorCode(code), message or "")
