"""Errors of producers, in the codes that the client's version knows."""

from odradek.protocol.errors import ErrorCode


def known_producer_error(
    code: ErrorCode, api_version: int, first_version_with_fenced: int
) -> ErrorCode:
    """The code; older clients know INVALID_PRODUCER_EPOCH in the place of PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and api_version < first_version_with_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
