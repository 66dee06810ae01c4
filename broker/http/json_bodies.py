"""The JSON of a request's body. How many values it has is limited before it is parsed.

Parsing a megabyte of `[],` takes tens of milliseconds, and freeing the lists takes as long.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from .messages import HttpError


def decoded(body: bytes, max_values: int, shape: Any = Any) -> Any:
    """Parse a body, which must have a type. Raises HttpError: 400, or 413 if it is too much.

    An empty list or object may count as two values.
    """
    if _has_more(body, max_values):
        text = f"a body may have {max_values} values here"
        raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
    except RecursionError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body is nested too deeply") from None


def _has_more(body: bytes, max_values: int) -> bool:
    """Whether a body may have more values than that.

    Before each value, but the first, is a comma or a bracket. Strings may have them too, and are
    left out if there are too many. Some milliseconds for a megabyte.
    """
    if _separators(body) < max_values:
        return False
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 4 * max_values:  # a value is a string at most, and has a name
        return True
    return _separators(b"".join(unescaped.split(b'"')[::2])) >= max_values


def _separators(text: bytes) -> int:
    return len(text) - len(text.translate(None, b",[{"))
