"""Checks of heartbeats that are the same in every type of group.

Kafka: throwIfEmptyString and others of GroupCoordinatorService.
"""

from odradek.protocol.errors import ApiError, ErrorCode

NO_TIMEOUT = -1
# The characters that Java's String.trim removes.
BLANKS = "".join(map(chr, range(33)))


def check_not_blank(what: str, text: str | None) -> None:
    """Raise ApiError INVALID_REQUEST for a text that is present and blank."""
    if text is not None and not text.strip(BLANKS):
        raise invalid(f"{what} must not be blank")


def invalid(message: str) -> ApiError:
    """Return the error of a request that is not valid."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)
