"""Maps the names in certificates to user names (ssl.principal.mapping.rules, KIP-371).

    RULE:pattern/replacement/   the first pattern that matches the whole name decides
    RULE:.../.../L  or  U       ... and the result is in lower or upper case
    DEFAULT                     the name itself

Patterns and replacements are Java's. Python's differ in details that such rules do not use, except
the ways to write groups: `$1` and `(?<name>...)`, which are translated.

Kafka: SslPrincipalMapper.
"""

import re
from typing import NamedTuple

from odradek.config.errors import invalid_value

KEY = "ssl.principal.mapping.rules"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")
_PARSER = re.compile(_RULE)
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_REFERENCE = re.compile(r"\\(.)|\$(?:(\d)(\d*)|\{([a-zA-Z][a-zA-Z0-9]*)\})", re.DOTALL)


class NoRuleError(Exception):
    """No rule applies to a name."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if not self.pattern.fullmatch(name):
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)

    def _replaced(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda reference: _expanded(reference, match), self.replacement)


_DEFAULT = _Rule(re.compile("(?s).*"), "$0", "")


class PrincipalMapping:
    """The rules of one listener, in their order."""

    def __init__(self, rules: str) -> None:
        """Parse rules. Raises ConfigError."""
        parsed = [_parse(rules, match[1]) for match in _SPLITTER.finditer(rules.strip())]
        self._rules = [rule for rule in parsed if rule is not None]

    def user_name(self, distinguished_name: str) -> str:
        """The user name of a certificate's subject. Raises NoRuleError."""
        for rule in self._rules:
            if rule is _DEFAULT:
                return distinguished_name
            mapped = rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        raise NoRuleError(f"no rule of {KEY} applies to {distinguished_name!r}")


def _parse(rules: str, text: str) -> _Rule | None:
    """One rule; None if it is empty, which is allowed."""
    match = _PARSER.match(text)
    if match is None or match.end() != len(text):
        raise invalid_value(KEY, rules, f"{text!r} is neither DEFAULT nor RULE:pattern/name/[LU]")
    if match[1] is not None:
        return _DEFAULT
    if match[2] is None:
        return None
    try:
        pattern = re.compile(_NAMED_GROUP.sub(r"(?P<\1>", match[2]))
    except re.error as error:
        raise invalid_value(KEY, rules, f"the pattern {match[2]} is invalid: {error}") from None
    for reference in _REFERENCE.finditer(match[3]):
        if reference[4] is not None and reference[4] not in pattern.groupindex:
            # Kafka starts, and refuses each client that the rule applies to.
            raise invalid_value(KEY, rules, f"the pattern {match[2]} has no group {reference[4]}")
    return _Rule(pattern, match[3], match[4])


def _expanded(reference: re.Match[str], match: re.Match[str]) -> str:
    """What a `$1`, `${name}` or escaped character of a replacement stands for."""
    if reference[1] is not None:
        return reference[1]
    if reference[4] is not None:
        return match[reference[4]] or ""
    digits = reference[2]
    if int(digits) > match.re.groups:
        return reference[0]  # as in Kafka, a reference to no group is plain text
    rest = reference[3]
    while rest and int(digits + rest[0]) <= match.re.groups:
        digits, rest = digits + rest[0], rest[1:]
    return (match[int(digits)] or "") + rest
