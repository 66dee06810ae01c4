"""Parses the text of a .proto file.

The result is the file's declarations: messages with fields, oneofs, nested types, reserved and
extension ranges; enums; services; options with their values. Comments are dropped.

`proto-schema-parser` was measured and not taken: it reads 14 kB a second, goes on after a syntax
error, and takes a second to import. protoc would be exact, but is 2 MB of native code, and forgets
how the text was written.

Names and rules: the language specifications of proto2, proto3 and editions. What Confluent's
registry refuses is what its parser (Wire) cannot parse, and types that it cannot find. A number
that two fields share is not refused, nor here: such schemas may be stored.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from odradek.coordinator.registry.errors import InvalidSchemaError

from .protobuf_file import (
    LABELS,
    MAX_ENUM,
    MAX_TAG,
    SCALARS,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Literal,
    Message,
    Method,
    OneOf,
    Option,
    Range,
    Service,
    Symbol,
    Value,
)

_MAX_DEPTH = 100

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*(?s:.*?)\*/)
    |(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<mark>[{}()\[\]<>=;:,./+-])""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(
    r"\\([xX][0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_file(text: str) -> File:
    """Parse a .proto file. Linear in the text. Raises InvalidSchemaError."""
    return _Parser(text).file()


def unescaped(text: str) -> str:
    r"""Return a string without C's escapes: `\n`, `\xff`. Raises ValueError."""
    value = _ESCAPE.sub(_unescape, text)
    # Two surrogates are a character; one is none.
    return value.encode("utf-16", "surrogatepass").decode("utf-16")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._kind = self._token = ""
        self._position = 0
        self._tokens = self._scan()
        self._depth = 0
        self._advance()

    def _scan(self) -> Iterator[tuple[str, str, int]]:
        text, position, end = self._text, 0, len(self._text)
        if text.startswith("\ufeff"):
            position = 1
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None:
                self._position = position
                raise self._error(f"unexpected character {text[position]!r}")
            kind = found.lastgroup or ""
            if kind != "blank":
                yield kind, found[0], position
            position = found.end()
        yield "end", "", end

    def _advance(self) -> None:
        self._kind, self._token, self._position = next(self._tokens)

    def _error(self, what: str) -> InvalidSchemaError:
        line = self._text.count("\n", 0, self._position) + 1
        column = self._position - (self._text.rfind("\n", 0, self._position) + 1) + 1
        return InvalidSchemaError(f"Syntax error in {line}:{column}: {what}")

    def _take(self, *tokens: str) -> bool:
        if self._token in tokens and self._kind in ("name", "mark"):
            self._advance()
            return True
        return False

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise self._error(f"expected '{token}', found '{self._token}'")

    def _name(self, *, dotted: bool = False) -> str:
        name = self._token
        if self._kind != "name" or (not dotted and "." in name):
            raise self._error(f"expected a name, found '{name}'")
        self._advance()
        return name

    def _integer(self) -> int:
        sign = -1 if self._take("-") else 1
        text = self._token
        if self._kind != "number":
            raise self._error(f"expected a number, found '{text}'")
        try:
            value = int(text, 8) if text.startswith("0") and text.isdigit() else int(text, 0)
        except ValueError:
            raise self._error(f"expected an integer, found '{text}'") from None
        if not -(1 << 31) <= sign * value < 1 << 31:  # tags, enums and ranges are int32
            raise self._error(f"expected an integer of 32 bits, found '{text:.40}'")
        self._advance()
        return sign * value

    def _string(self) -> str:
        if self._kind != "string":
            raise self._error(f"expected a string, found '{self._token}'")
        parts = []
        while self._kind == "string":
            try:
                parts.append(unescaped(self._token[1:-1]))
            except ValueError as error:
                raise self._error(f"not a string: {error}") from None
            self._advance()
        return "".join(parts)

    # -- the file ----------------------------------------------------------------------------------

    def file(self) -> File:
        made = File()
        while self._kind != "end":
            if not self._take(";"):
                self._declaration(made)
        return made

    def _declaration(self, made: File) -> None:
        word = self._name()
        if word not in _DECLARATIONS:
            raise self._error(f"unexpected label: {word}")
        _DECLARATIONS[word](self, made)

    def _syntax(self, made: File) -> None:
        self._need("=")
        made.syntax = self._string()
        if made.syntax not in ("proto2", "proto3"):
            raise self._error(f"unexpected syntax: {made.syntax}")
        self._need(";")

    def _edition(self, made: File) -> None:
        self._need("=")
        made.edition = self._string()
        self._need(";")

    def _package(self, made: File) -> None:
        if made.package:
            raise self._error("too many package names")
        made.package = self._name(dotted=True)
        self._need(";")

    def _import(self, made: File) -> None:
        names = made.imports
        if self._take("public"):
            names = made.public_imports
        elif self._take("weak"):
            names = made.weak_imports
        names.append(self._string())
        self._need(";")

    def _statements(self, options: list[Option] | None = None) -> Iterator[None]:
        """Pass over a block in braces; stop before each statement, which the caller parses.

        Empty statements are left out, and with `options`, option statements are put there.
        """
        self._need("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if options is not None and self._take("option"):
                options.append(self._option_statement())
            else:
                yield

    @contextmanager
    def _nested(self) -> Iterator[None]:
        """Count a level of nesting. Parsing and writing recurse at each; the stack is limited."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(f"nested deeper than {_MAX_DEPTH}")
        yield
        self._depth -= 1

    def _message(self, name: str = "") -> Message:
        with self._nested():
            made = Message(name=name or self._name())
            for _ in self._statements():
                self._member(made)
            return made

    def _member(self, made: Message) -> None:
        if self._kind != "name":
            raise self._error(f"unexpected '{self._token}'")
        word = self._token
        # A field may have a keyword as its type's name: `message m = 1`.
        if word in _MEMBERS and not _LIKE_FIELD.match(self._text, self._position + len(word)):
            self._advance()
            _MEMBERS[word](self, made)
            return
        label = self._name() if word in LABELS else ""
        if self._token == "group":
            made.groups.append(self._group(label))
        else:
            made.fields.append(self._field(label))

    def _field(self, label: str) -> Field:
        of_type = self._type()
        name = self._name()
        self._need("=")
        tag = self._integer()
        options = self._compact_options()
        self._need(";")
        return Field(name=name, tag=tag, type=of_type, label=label, options=options)

    def _type(self) -> str:
        name = self._name(dotted=True)
        if name != "map" or not self._take("<"):
            return name
        key = self._name(dotted=True)
        if key not in SCALARS.keys() - {"float", "double", "bytes"}:
            raise self._error(f"{key} cannot be the key of a map")
        self._need(",")
        value = self._name(dotted=True)
        self._need(">")
        return f"map<{key}, {value}>"

    def _group(self, label: str) -> Group:
        self._need("group")
        name = self._name()
        self._need("=")
        tag = self._integer()
        self._compact_options()  # parsed only: the declaration of a group has no options
        return Group(name=name, tag=tag, label=label, message=self._message(name))

    def _oneof(self, into: Message) -> None:
        made = OneOf(name=self._name())
        for _ in self._statements(made.options):
            if self._token == "group":
                made.groups.append(self._group(""))
            else:
                made.fields.append(self._field(""))
        into.oneofs.append(made)

    def _extensions(self, into: Message) -> None:
        # `_ranges` also reads names, which only `reserved` may have. Here they are ignored.
        ranges = [item for item in self._ranges(MAX_TAG) if isinstance(item, Range)]
        made = Extensions(ranges=ranges, options=self._compact_options())
        self._need(";")
        into.extensions.append(made)

    def _reserved(self, into: Message | Enum) -> None:
        into.reserved.append(self._ranges(MAX_ENUM if isinstance(into, Enum) else MAX_TAG))
        self._need(";")

    def _ranges(self, largest: int) -> list[Range | str]:
        """Parse ranges and names, separated by commas; `largest` is the number that `max` means."""
        made: list[Range | str] = []
        while True:
            if self._kind == "string":
                made.append(self._string())
            elif self._kind == "name":
                made.append(self._name())  # editions: reserved names are not quoted
            else:
                first = last = self._integer()
                has_end = self._take("to")
                if has_end:
                    last = largest if self._take("max") else self._integer()
                made.append(Range(first, last, has_end))
            if not self._take(","):
                return made

    def _extend(self) -> Extend:
        made = Extend(name=self._name(dotted=True))
        for _ in self._statements():
            made.fields.append(self._field(self._name() if self._token in LABELS else ""))
        return made

    def _enum(self) -> Enum:
        made = Enum(name=self._name())
        for _ in self._statements(made.options):
            if self._take("reserved"):
                self._reserved(made)
            else:
                name = self._name()
                self._need("=")
                tag = self._integer()
                options = self._compact_options()
                made.constants.append(Constant(name=name, tag=tag, options=options))
                self._need(";")
        return made

    def _service(self) -> Service:
        made = Service(name=self._name())
        for _ in self._statements(made.options):
            if not self._take("rpc"):
                raise self._error(f"unexpected '{self._token}' in a service")
            made.methods.append(self._method())
        return made

    def _method(self) -> Method:
        name = self._name()
        is_request_stream, request = self._method_type()
        self._need("returns")
        is_response_stream, response = self._method_type()
        made = Method(
            name=name,
            request=request,
            response=response,
            is_request_stream=is_request_stream,
            is_response_stream=is_response_stream,
        )
        if self._take(";"):
            return made
        for _ in self._statements(made.options):  # stops only before what is not an option
            raise self._error(f"expected 'option', found '{self._token}'")
        return made

    def _method_type(self) -> tuple[bool, str]:
        self._need("(")
        name = self._name(dotted=True)
        is_stream = name == "stream" and self._kind == "name"
        if is_stream:
            name = self._name(dotted=True)
        self._need(")")
        return is_stream, name

    # -- options -----------------------------------------------------------------------------------

    def _option_statement(self) -> Option:
        made = self._option()
        self._need(";")
        return made

    def _compact_options(self) -> list[Option]:
        made: list[Option] = []
        if self._take("["):
            while True:
                made.append(self._option())
                if self._take("]"):
                    break
                self._need(",")
        return made

    def _option(self) -> Option:
        """Parse an option: `a.(b.c).d = 1` is d of the extension b.c of a."""
        names = self._option_names()
        self._need("=")
        value = self._value()
        for name, is_extension in reversed(names):
            value = Option(name=name, is_extension=is_extension, value=value)
        assert isinstance(value, Option)
        return value

    def _option_names(self) -> list[tuple[str, bool]]:
        """Parse the parts of an option's name; True for an extension, which is in parentheses.

        `a.(b.c).d` has the parts (a, False), (b.c, True) and (d, False).
        """
        names: list[tuple[str, bool]] = []
        while True:
            if self._take("("):
                names.append((self._name(dotted=True), True))
                self._need(")")
            else:
                names += [(name, False) for name in self._name(dotted=True).split(".")]
            if self._kind == "name" and self._token.startswith("."):
                self._token = self._token[1:]  # the `.d` after a parenthesis is one token
            elif not self._take("."):
                return names

    def _value(self) -> Value:
        if self._kind == "string":
            return self._string()
        if self._take("{"):
            return self._message_value("}")
        if self._take("<"):
            return self._message_value(">")
        if self._take("["):
            return self._list()
        sign = "-" if self._take("-") else ""
        if not sign:
            self._take("+")
        token, kind = self._token, self._kind
        if kind not in ("number", "name"):
            raise self._error(f"expected a value, found '{token}'")
        self._advance()
        if kind == "number":
            return Literal(sign + token)
        if token in ("true", "false") and not sign:
            return token == "true"
        return Symbol(sign + token)

    def _list(self) -> list[Value]:
        """Parse the rest of a list, after its bracket."""
        values: list[Value] = []
        with self._nested():
            while not self._take("]"):
                values.append(self._value())
                self._take(",")
        return values

    def _message_value(self, end: str) -> dict[str, Value]:
        """Parse the rest of a message in the text format, up to the token `end`.

        A field that is given several times has one list of all its values, also of those in lists:
        `a: 1 a: [2, 3]` is `a: [1, 2, 3]`.
        """
        made: dict[str, Value] = {}
        with self._nested():
            while not self._take(end):
                name = self._value_name()
                self._take(":")
                value = self._value()
                if name not in made:
                    made[name] = value
                else:
                    if not isinstance(made[name], list):
                        made[name] = [made[name]]
                    made[name] += value if isinstance(value, list) else [value]
                self._take(",", ";")
        return made

    def _value_name(self) -> str:
        """Parse the name of a field in the text format; an extension's is in brackets."""
        if not self._take("["):
            return self._name()
        name = ""
        while not self._take("]"):
            if self._kind not in ("name", "mark"):
                raise self._error(f"expected ']', found '{self._token}'")
            name += self._token
            self._advance()
        return f"[{name}]"


_DECLARATIONS: dict[str, Callable[[_Parser, File], None]] = {
    "syntax": _Parser._syntax,
    "edition": _Parser._edition,
    "package": _Parser._package,
    "import": _Parser._import,
    "option": lambda parser, made: made.options.append(parser._option_statement()),
    "message": lambda parser, made: made.messages.append(parser._message()),
    "enum": lambda parser, made: made.enums.append(parser._enum()),
    "extend": lambda parser, made: made.extends.append(parser._extend()),
    "service": lambda parser, made: made.services.append(parser._service()),
}
_LIKE_FIELD = re.compile(r"\s+[A-Za-z_]\w*\s*=\s*\d")
_MEMBERS: dict[str, Callable[[_Parser, Message], None]] = {
    "message": lambda parser, made: made.messages.append(parser._message()),
    "enum": lambda parser, made: made.enums.append(parser._enum()),
    "extend": lambda parser, made: made.extends.append(parser._extend()),
    "option": lambda parser, made: made.options.append(parser._option_statement()),
    "oneof": _Parser._oneof,
    "extensions": _Parser._extensions,
    "reserved": _Parser._reserved,
}


def _unescape(escape: re.Match[str]) -> str:
    text = escape[1]
    if text[0] in "xXuU" and len(text) > 1:
        code = int(text[1:], 16)
        if code > sys.maxunicode:
            raise ValueError(f"\\{text} is no character")
        return chr(code)
    if text[0] in "01234567":
        return chr(int(text, 8))
    return _ESCAPED.get(text, text)
