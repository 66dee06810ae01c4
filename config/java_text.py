"""Splits texts, reads and formats numbers as Java does, because users compare them with Kafka's."""

import re

# Leading zeros do not count. `int` refuses very many of them, and more digits take it long.
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
JAVA_BLANKS = "".join(map(chr, range(33)))  # the characters that String.trim() removes
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7  # Double.toString writes these without an exponent


def split_list(text: str) -> list[str]:
    """Split as Java's String.split(","). Trailing empty items are dropped.

    An empty text gives one empty item, and "," gives none.
    """
    items = text.split(",")
    while len(items) > 1 and not items[-1]:
        items.pop()
    return [] if text and items == [""] else items


def parse_integer(text: str, bits: int) -> int:
    """Parse as Integer.parseInt and Long.parseLong (`bits` 32 and 64). Raises ValueError."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:100]!r} is not a number")
    value = int(match[1] + match[2])
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} has more than {bits} bits")
    return value


def double_text(value: float) -> str:
    """Format a number as Double.toString: 0.5, 1.0E-4, 1.7976931348623157E308, NaN, Infinity."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
    magnitude = abs(value)
    if value == 0 or _PLAIN_FROM <= magnitude < _PLAIN_BELOW:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
        whole, _, fraction = digits.partition(".")
        significant = (whole + fraction).lstrip("0").rstrip("0")
        power = len(whole) - 1 if whole != "0" else -1 - len(fraction) + len(fraction.lstrip("0"))
        digits, exponent = f"{sign}{significant[0]}.{significant[1:]}", str(power)
    if "." not in digits:
        digits += "."
    return f"{digits}{'' if digits[-1] != '.' else '0'}E{int(exponent)}"
