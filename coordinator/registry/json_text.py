"""JSON as Jackson writes it, because what the registry stores and compares is such text.

No blanks; letters as they are, in UTF-8; a control character as `\\u001F`, with capital letters.
Numbers: of a float, the digits are those of Java's Double.toString.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from odradek.config.java_text import double_text

_ESCAPE = re.compile(r"\\(?:u00[01][0-9a-f]|.)")


class InvalidJsonError(ValueError):
    """A text that is not JSON."""


class Number(Decimal):
    """A number with a fraction or an exponent, with the digits that the text has."""


def loads(text: str, *, exact: bool = False) -> Any:
    """Parse JSON. With `exact`, numbers with a fraction keep their digits (as Number).

    Raises InvalidJsonError.
    """
    try:
        return json.loads(text, parse_float=Number if exact else float)
    except InvalidOperation:
        raise InvalidJsonError("a number's exponent is too large") from None
    except (ValueError, RecursionError) as error:
        raise InvalidJsonError(str(error) or "nested too deeply") from None


def dumps(value: Any, *, sort_keys: bool = False) -> str:
    text = _ENCODERS[sort_keys].encode(_plain(value) if _has_floats(value) else value)
    if "\\u00" in text:
        text = _ESCAPE.sub(_capital, text)
    return _FLOAT.sub(r"\1", text) if _FLOAT_MARK in text else text


_FLOAT_MARK = "\ue000\ue001"  # private characters around the digits of a float
_FLOAT = re.compile(f'"{_FLOAT_MARK}([^"]*)"')
_ENCODERS = {
    sort: json.JSONEncoder(
        ensure_ascii=False, check_circular=False, separators=(",", ":"), sort_keys=sort
    )
    for sort in (False, True)
}


def _capital(escape: re.Match[str]) -> str:
    text = escape[0]
    return text[:2] + text[2:].upper() if text.startswith("\\u00") else text


def _has_floats(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_floats, value.values()))
    if isinstance(value, list):
        return any(map(_has_floats, value))
    return isinstance(value, float | Decimal)


def _plain(value: Any) -> Any:
    """Replace floats by marked strings, because the encoder writes floats in its own way."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return _FLOAT_MARK + str(value)
    if isinstance(value, float):
        return _FLOAT_MARK + double_text(value)
    return value
