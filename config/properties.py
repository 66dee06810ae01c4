r"""Reads and writes Java's .properties files (`key=value`), as java.util.Properties does.

- A line is a comment if its first character is # or !.
- The key ends at the first =, : or blank without a backslash before it. Blanks around the separator
  are ignored, blanks at the end of a value are part of it.
- A backslash at the end of a line joins it with the next line, without that line's leading blanks.
- \t \n \r \f are the usual control characters, \uXXXX is a UTF-16 code unit. Any other character
  after a backslash stands for itself.
- If a key occurs twice, the last value is used.

Kafka reads its files with Properties.load(InputStream), which decodes them as Latin-1, also if they
are UTF-8. This module does the same, so that a directory name with an umlaut means the same
directory to both. Other characters must be written as \uXXXX; `render_properties` does so.
"""

import re
from collections.abc import Iterator, Mapping

from .errors import ConfigError

ENCODING = "latin-1"

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_LAST_LINE_END = re.compile(r"(?:\r|(?<!\r)\n)\Z")  # removed first, as Java reads a final backslash
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_PLAIN_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*\\?)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_TO_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def parse_properties(data: bytes) -> dict[str, str]:
    """Parse the bytes of a file. Raises ConfigError for a malformed \\u escape."""
    pairs = {}
    for line in _logical_lines(data.decode(ENCODING)):
        match = _KEY.match(line)
        assert match is not None  # every part of the pattern may be empty
        name = _unescape(match[1], "a key")
        pairs[name] = _unescape(line[match.end() :], name)
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    """The lines with their continuations joined, without comments and blank lines."""
    pending = ""
    continues = False
    for line in _LINE_END.split(_LAST_LINE_END.sub("", text)):
        line = line.lstrip(_BLANKS)
        if not pending and line[:1] in ("#", "!"):
            continues = False
            continue
        pending += line
        continues = _ends_in_backslash(line)
        if continues:
            pending = pending[:-1]
            continue
        if pending:
            yield pending
        pending = ""
    if continues:
        yield pending


def _ends_in_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, where: str) -> str:
    if "\\" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        code = match[1]
        if code[:1] != "u":
            return _PLAIN_ESCAPES.get(code, code)
        if not re.fullmatch(r"u[0-9a-fA-F]{4}", code):
            raise ConfigError(f"Malformed \\uxxxx encoding in {where}: must be 4 hex digits")
        return chr(int(code[1:], 16))

    units = _ESCAPE.sub(replacement, text)
    # In Java the two halves of a surrogate pair are one character.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def render_properties(pairs: Mapping[str, str], comments: tuple[str, ...] = ()) -> bytes:
    """The bytes of a file: the comments, then one `key=value` line for each pair, in order."""
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(name, True)}={_escape(value, False)}" for name, value in pairs.items()]
    return "".join(f"{line}\n" for line in lines).encode(ENCODING)


def _escape(text: str, every_blank: bool) -> str:
    escaped = [_escape_one(c) for c in text]
    for position, character in enumerate(text):
        if character == " " and (every_blank or position == 0):
            escaped[position] = "\\ "
    return "".join(escaped)


def _escape_one(character: str) -> str:
    if character in _TO_ESCAPES:
        return _TO_ESCAPES[character]
    if character in "\\=:#!":
        return "\\" + character
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
