"""Checks of the fields that the heartbeats of all types of group have."""

from odradek.config.java_text import JAVA_BLANKS
from odradek.protocol.errors import ApiError, ErrorCode

# The rebalance_timeout_ms of a heartbeat that does not change the member's timeout.
NO_TIMEOUT = -1


def check_not_blank(what: str, text: str | None) -> None:
    """Raise ApiError INVALID_REQUEST if a text is set and has only blanks."""
    if text is not None and not text.strip(JAVA_BLANKS):
        raise invalid_request(f"{what} must not be blank")


def invalid_request(message: str) -> ApiError:
    """Make the error of a request whose fields are not valid."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)
