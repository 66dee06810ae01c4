r"""Parses JAAS configurations: the login module of a SASL mechanism, with its options; and files.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

The syntax is that of Kafka's JaasConfig, which reads tokens with java.io.StreamTokenizer:

- A word begins with a letter, `_` or `$`, and may then also have digits, `.` and `-`. What begins
  with a digit, `.` or `-` is a number, which is no valid value.
- A text in " or ' ends at the same quote or at the end of the line. Backslashes escape as in Java.
- `/` begins a comment: `/* … */`, or up to the end of the line.

An error names the place in the text, never the text itself: it may contain a password.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .errors import ConfigError

CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKEN = r"""
      (?P<skip>[\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /[^\r\n]*)
    | (?P<number>[0-9.]+ | -(?=[0-9.])[0-9.]+ | -)
    | (?P<word>[A-Za-z\xa0-\U0010ffff_$][A-Za-z0-9\xa0-\U0010ffff_$.\-]*)
    | "(?P<double>(?:\\.|[^"\\\r\n])*)(?:"|\\?\Z|(?=[\r\n]))
    | '(?P<single>(?:\\.|[^'\\\r\n])*)(?:'|\\?\Z|(?=[\r\n]))
    | (?P<other>.)
    """
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_VALUES = ("word", "double", "single")


class JaasEntry(NamedTuple):
    """A login module, by the name of its Java class, and its options."""

    login_module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.login_module}, {len(self.options)} options)"


class _Token(NamedTuple):
    """`text` is None unless the token is a word or a quoted text. `sign` is any other character."""

    text: str | None
    sign: str
    position: int


def parse_jaas(name: str, text: str) -> JaasEntry:
    """Parse the value of the key `name`, which must have one login module. Raises ConfigError."""
    tokens = _tokens(text)
    entries = [_parse_entry(name, token, tokens) for token in tokens]
    if len(entries) != 1:
        raise _invalid(name, f"it has {len(entries)} login modules, and must have one")
    return entries[0]


def parse_jaas_file(name: str, text: str) -> Mapping[str, tuple[JaasEntry, ...]]:
    """Parse a JAAS file, called `name` in errors: login modules by section. Raises ConfigError.

        KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required …; };

    Java: sun.security.provider.ConfigFile.
    """
    tokens = _tokens(text)
    sections: dict[str, tuple[JaasEntry, ...]] = {}
    for token in tokens:
        opening = next(tokens, None)
        if token.text is None or opening is None or opening.sign != "{":
            raise _invalid(name, f"no section, as in KafkaServer {{…}};, at {token.position}")
        entries = []
        closing = next(tokens, None)
        while closing is not None and closing.sign != "}":
            entries.append(_parse_entry(name, closing, tokens))
            closing = next(tokens, None)
        end = next(tokens, None)
        if end is None or end.sign != ";":
            raise _invalid(name, f"the section {token.text} must end with }};")
        sections[token.text] = tuple(entries)
    return sections


def _parse_entry(name: str, first: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    if first.text is None:
        raise _invalid(name, f"no login module at character {first.position}")
    flag = next(tokens, None)
    if flag is None or flag.text is None or flag.text.lower() not in CONTROL_FLAGS:
        flags = ", ".join(sorted(CONTROL_FLAGS))
        raise _invalid(name, f"the login module must be followed by one of: {flags}")
    options: dict[str, str] = {}
    for option in tokens:
        if option.sign == ";":
            return JaasEntry(first.text.strip(), options)
        equals, value = next(tokens, None), next(tokens, None)
        if option.text is None or equals is None or equals.sign != "=":
            raise _invalid(name, f"no option (key=value) at character {option.position}")
        if value is None or value.text is None:
            raise _invalid(
                name, f'no value after character {equals.position}; quote it, as in key="value"'
            )
        options[option.text] = value.text
    raise _invalid(name, "it must end with a semicolon")


def _tokens(text: str) -> Iterator[_Token]:
    # Compiled here: a start that has no JAAS line need not wait for it.
    for match in re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL):
        kind = match.lastgroup
        if kind == "skip":
            continue
        found = match[kind or 0] if kind in _VALUES else None
        if kind in ("double", "single"):
            found = _ESCAPE.sub(_unescape, match[kind])
        yield _Token(found, match[0] if kind == "other" else "", match.start() + 1)


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _CONTROLS.get(code, code)


def _invalid(name: str, reason: str) -> ConfigError:
    return ConfigError(f"Invalid value [hidden] for configuration {name}: {reason}")
