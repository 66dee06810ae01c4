"""Protobuf schemas as text: the canonical form, and the normalized one.

The canonical form is that of Confluent's registry, which stores and compares it: no comments, two
blanks a level, and in each message first what is reserved, then options, fields, oneofs, groups,
extensions, extends, messages and enums. A file has its messages before its enums.

The normalized form also sorts fields, constants, options, imports and ranges (messages keep their
order, because serialized data has their indexes), writes the full names of types with a dot in
front, writes maps as maps, and leaves out the syntax of proto2.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from odradek.coordinator.registry.errors import InvalidSchemaError

from .protobuf_file import (
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
    map_parts,
)
from .protobuf_names import Names

_ESCAPES = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
        "\v": "\\v", "\\": "\\\\", "'": "\\'", '"': '\\"',
    }
)  # fmt: skip


def written(file: File) -> str:
    """Return the canonical form of a file."""
    return _Writer(None).file(file)


def normalized(file: File, imports: Mapping[str, File]) -> str:
    """Return the normalized form. Raises InvalidSchemaError if a type cannot be found."""
    return _Writer(Names(file, imports)).file(file)


class _Writer:
    """Writes one file; with `names`, in the normalized form."""

    def __init__(self, names: Names | None) -> None:
        self._names = names
        self._inside: tuple[str, ...] = ()

    def file(self, file: File) -> str:
        parts = []
        if file.edition:
            parts.append(f"edition = {_quoted(file.edition)};\n")
        elif file.syntax and (self._names is None or file.syntax == "proto3"):
            parts.append(f'syntax = "{file.syntax}";\n')
        if file.package:
            parts.append(f"package {file.package};\n")
        imports = [
            *(f"import {_quoted(name)};\n" for name in self._unique(file.imports)),
            *(f"import public {_quoted(name)};\n" for name in self._unique(file.public_imports)),
            *(f"import weak {_quoted(name)};\n" for name in self._unique(file.weak_imports)),
        ]
        services = [self._service(service) for service in file.services]
        for block in (
            imports,
            self._option_lines(file.options),
            self._types(file.messages, file.enums),
            self._extends(file.extends),
            services,
        ):
            if block:
                parts += ["\n", *block]
        return "".join(parts)

    def _unique(self, names: list[str]) -> list[str]:
        return names if self._names is None else sorted(set(names))

    def _types(self, messages: list[Message], enums: list[Enum]) -> list[str]:
        kept = [message for message in messages if not self._is_entry(message)]
        return [*map(self._message, kept), *map(self._enum, enums)]

    def _is_entry(self, message: Message) -> bool:
        if self._names is None:
            return False
        found = self._names.type_named(message.name, self._inside)
        return found is not None and found[1].map_type is not None

    def _message(self, message: Message) -> str:
        self._inside = (*self._inside, message.name)
        blocks = [
            self._reserved(message.reserved),
            self._option_lines(message.options),
            [self._field(member) for member in self._by_tag(message.fields)],
            [self._oneof(oneof) for oneof in self._sorted_oneofs(message.oneofs)],
            [self._group(group) for group in self._by_tag(message.groups)],
            self._extensions(message.extensions),
            self._extends(message.extends),
            self._types(message.messages, message.enums),
        ]
        self._inside = self._inside[:-1]
        body = "".join("\n" + "".join(map(_indented, block)) for block in blocks if block)
        return f"message {message.name} {{{body}}}\n"

    def _by_tag(self, members: Iterable[Any]) -> list[Any]:
        if self._names is None:
            return list(members)
        return sorted(members, key=lambda member: member.tag)

    def _sorted_oneofs(self, oneofs: list[OneOf]) -> list[OneOf]:
        if self._names is None:
            return oneofs
        filled = [oneof for oneof in oneofs if oneof.fields]
        return sorted(filled, key=lambda oneof: min(member.tag for member in oneof.fields))

    def _oneof(self, oneof: OneOf) -> str:
        blocks = [
            self._option_lines(oneof.options),
            [self._field(member) for member in self._by_tag(oneof.fields)],
            [self._group(group) for group in self._by_tag(oneof.groups)],
        ]
        body = "".join("\n" + "".join(map(_indented, block)) for block in blocks if block)
        return f"oneof {oneof.name} {{{body}}}\n"

    def _group(self, group: Group) -> str:
        label = f"{group.label} " if group.label else ""
        fields = "".join(_indented(self._field(f)) for f in self._by_tag(group.message.fields))
        body = f"\n{fields}" if fields else ""
        return f"{label}group {group.name} = {group.tag} {{{body}}}\n"

    def _field(self, member: Field) -> str:
        of_type, label = member.type, member.label
        if self._names is not None:
            of_type = self._full_type(of_type)
            if of_type.startswith("map<"):
                label = ""
        options = self._compact_options(_special_last(member.options))
        return f"{label + ' ' if label else ''}{of_type} {member.name} = {member.tag}{options};\n"

    def _full_type(self, of_type: str) -> str:
        """Return a type with full names; the entries of a map as a map."""
        if of_type in SCALARS:
            return of_type
        if not of_type.startswith("map<"):
            assert self._names is not None
            full = self._resolve(of_type)
            map_type = self._names.types[full[1:]].map_type
            if map_type is None:
                return full
            of_type = map_type
        key, value = map_parts(of_type)
        return f"map<{key}, {value if value in SCALARS else self._resolve(value)}>"

    def _resolve(self, name: str) -> str:
        assert self._names is not None
        found = self._names.type_named(name, self._inside)
        if found is None:
            raise InvalidSchemaError(f"Could not resolve type: {name}")
        return f".{found[0]}"

    def _enum(self, enum: Enum) -> str:
        self._inside = (*self._inside, enum.name)
        constants = enum.constants
        if self._names is not None:
            constants = sorted(constants, key=lambda constant: (constant.tag, constant.name))
        lines = [
            *self._reserved(enum.reserved),
            *self._option_lines(enum.options),
            *map(self._constant, constants),
        ]
        self._inside = self._inside[:-1]
        body = "\n" + "".join(map(_indented, lines)) if lines else ""
        return f"enum {enum.name} {{{body}}}\n"

    def _constant(self, constant: Constant) -> str:
        return f"{constant.name} = {constant.tag}{self._compact_options(constant.options)};\n"

    def _reserved(self, statements: list[list[Range | str]]) -> list[str]:
        if self._names is not None:
            each = [[item] for items in statements for item in items]
            statements = sorted(each, key=lambda items: _range_order(items[0]))
        return [f"reserved {', '.join(map(self._range, items))};\n" for items in statements]

    def _range(self, item: Range | str) -> str:
        if isinstance(item, str):
            return _quoted(item)
        if item.first == item.last and (self._names is not None or not item.has_end):
            return str(item.first)
        return f"{item.first} to {item.last if item.last < MAX_TAG else 'max'}"

    def _extensions(self, extensions: list[Extensions]) -> list[str]:
        if self._names is not None:
            each = [Extensions(ranges=[r], options=e.options) for e in extensions for r in e.ranges]
            extensions = sorted(each, key=lambda extension: extension.ranges)
        return [
            f"extensions {', '.join(map(self._range, extension.ranges))}"
            f"{self._compact_options(extension.options)};\n"
            for extension in extensions
        ]

    def _extends(self, extends: list[Extend]) -> list[str]:
        if self._names is not None:
            joined: dict[str, Extend] = {}
            for extend in extends:
                name = self._resolve(extend.name)
                joined.setdefault(name, Extend(name=name)).fields.extend(extend.fields)
            extends = list(joined.values())
        lines = []
        for extend in extends:
            fields = "".join(_indented(self._field(f)) for f in self._by_tag(extend.fields))
            body = f"\n{fields}" if fields else ""
            lines.append(f"extend {extend.name} {{{body}}}\n")
        return lines

    def _service(self, service: Service) -> str:
        blocks = [self._option_lines(service.options), list(map(self._method, service.methods))]
        body = "".join("\n" + "".join(map(_indented, block)) for block in blocks if block)
        return f"service {service.name} {{{body}}}\n"

    def _method(self, method: Method) -> str:
        full: Callable[[str], str] = str if self._names is None else self._resolve
        request = ("stream " if method.is_request_stream else "") + full(method.request)
        response = ("stream " if method.is_response_stream else "") + full(method.response)
        options = "".join(map(_indented, self._option_lines(method.options)))
        body = f" {{\n{options}}}" if options else ""
        return f"rpc {method.name} ({request}) returns ({response}){body};\n"

    # -- options -----------------------------------------------------------------------------------

    def _option_lines(self, options: list[Option]) -> list[str]:
        return [f"option {self._option(option)};\n" for option in self._sorted(options)]

    def _compact_options(self, options: list[Option]) -> str:
        texts = [self._option(option) for option in self._sorted(options)]
        if len(texts) < 2:
            return f" [{texts[0]}]" if texts else ""
        return " [\n" + "".join(map(_indented, _with_commas(texts))) + "]"

    def _sorted(self, options: list[Option]) -> list[Option]:
        """In the normalized form, options are sorted by name, and extensions have full names."""
        if self._names is None:
            return options
        named = []
        for option in options:
            full = self._names.extension_named(option.name, self._inside)
            if option.is_extension and full is not None:
                value = option.value
                if isinstance(value, Option):  # `(x).y = 1` is `(x) = {y: 1}`
                    value = _as_literal(value)
                option = Option(name=full, is_extension=True, value=value)
            named.append(option)
        return sorted(named, key=lambda option: option.name)

    def _option(self, option: Option) -> str:
        name = f"({option.name})" if option.is_extension else option.name
        value = option.value
        if isinstance(value, Option):
            return f"{name}.{self._option(value)}"
        return f"{name} = {self._value(value, is_option=True)}"

    def _value(self, value: Any, *, is_option: bool = False) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Literal):
            return value if self._names is None else _number(value)
        if isinstance(value, Symbol):
            return str(value)
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, dict):
            return "{\n" + "".join(map(_indented, _with_commas(self._members(value)))) + "}"
        if len(value) == 1 and (is_option or self._names is not None):
            return f"[{self._value(value[0])}]" if is_option else self._value(value[0])
        return "[\n" + "".join(map(_indented, _with_commas(map(self._value, value)))) + "]"

    def _members(self, literal: dict[str, Any]) -> list[str]:
        if self._names is not None:
            full = {
                f"[{self._names.extension_named(name[1:-1], self._inside) or name[1:-1]}]"
                if name.startswith("[")
                else name: value
                for name, value in literal.items()
                if value != []
            }
            literal = {name: full[name] for name in sorted(full)}
        return [f"{name}: {self._value(value)}" for name, value in literal.items()]


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _as_literal(option: Option) -> dict[str, Any]:
    value = option.value
    return {option.name: _as_literal(value) if isinstance(value, Option) else value}


def _special_last(options: list[Option]) -> list[Option]:
    """`default` and `json_name` are written after the others."""
    special = {"default": 1, "json_name": 2}
    return sorted(options, key=lambda o: 0 if o.is_extension else special.get(o.name, 0))


def _with_commas(texts: Iterable[str]) -> list[str]:
    made = list(texts)
    return [f"{text}," for text in made[:-1]] + made[-1:]


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


def _number(text: str) -> str:
    """Write a number without an exponent, with three digits after the point at most."""
    try:
        value = Decimal(int(text, 0)) if "x" in text.lower() else Decimal(text)
        rounded = format(round(value, 3), "f")
    except (InvalidOperation, ValueError):
        return text
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def _range_order(item: Range | str) -> tuple[int, str]:
    return (1 << 31, item) if isinstance(item, str) else (item.first, str(item.last))
