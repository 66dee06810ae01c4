"""Errors of producers, in the codes that the client's version knows."""

from odradek.protocol.errors import ErrorCode


def known_producer_error(code: ErrorCode, *, knows_fenced: bool) -> ErrorCode:
    """The code; INVALID_PRODUCER_EPOCH for a client that does not know PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
