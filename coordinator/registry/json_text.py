"""JSON as Jackson writes it, because what the registry stores and compares is such text.

No blanks; letters as they are, in UTF-8; a control character as `\\u001F`, with capital letters.
Numbers: of a float, the digits are those of Java's Double.toString; what is not finite, as 1e999,
is a string, as Jackson writes it.

A lone surrogate (`"\\ud800"`) is no character: such text cannot be stored in UTF-8, and is refused.
NaN and Infinity are no JSON.
"""

import json
import math
import re
from decimal import Decimal
from typing import Any

from odradek.config.java_text import double_text

_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
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
        value = json.loads(
            text, parse_float=Number if exact else float, parse_constant=_refuse_constant
        )
        if _SURROGATE.search(text):
            dumps(value).encode()
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidJsonError(str(error) or "nested too deeply") from None
    return value


def dumps(value: Any, *, sort_keys: bool = False) -> str:
    encode = _ENCODERS[sort_keys].encode
    text = _with_floats(value, sort_keys) if _has_floats(value) else encode(value)
    return _ESCAPE.sub(_capital, text) if "\\u00" in text else text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"Non-standard token '{name}'")


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


def _with_floats(value: Any, sort_keys: bool) -> str:
    """Encode a value with floats, which the encoder would write in its own way."""
    if isinstance(value, dict):
        items = sorted(value.items()) if sort_keys else value.items()
        return f"{{{','.join(f'{_quoted(n)}:{_with_floats(v, sort_keys)}' for n, v in items)}}}"
    if isinstance(value, list):
        return f"[{','.join(_with_floats(item, sort_keys) for item in value)}]"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float):
        text = double_text(value)
        return text if math.isfinite(value) else _quoted(text)
    return _quoted(value)


def _quoted(value: Any) -> str:
    return _ENCODERS[False].encode(value)
