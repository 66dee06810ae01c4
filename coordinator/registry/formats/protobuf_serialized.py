"""Writes a .proto file as a FileDescriptorProto, which clients that cannot compile files ask for.

Names of types are full names. Options that extensions define are left out. Of a message's nested
types, the declared messages come first, because a record names its type by such an index. The
entries of maps and the messages of groups follow.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from odradek.coordinator.registry.errors import InvalidSchemaError

from .protobuf_file import (
    LABELS,
    MAX_TAG,
    SCALARS,
    Enum,
    Extend,
    Field,
    File,
    Group,
    Message,
    Option,
    Range,
    Service,
    map_parts,
)
from .protobuf_names import Names

_GROUP, _MESSAGE, _ENUM = 10, 11, 14
_NOT_OPTIONS = ("default", "json_name")
_UNINTERPRETED = "uninterpreted_option"  # what compilers put there is no option of a file

Inside = tuple[str, ...]  # the names of the messages around a declaration


def serialized(file: File, imports: Mapping[str, File]) -> str:
    """Return the descriptor in base64. Raises InvalidSchemaError."""
    try:
        descriptor = _Writer(file, imports).descriptor().SerializeToString()
    except (ValueError, TypeError) as error:  # an option has a value of another type
        raise InvalidSchemaError(f"no descriptor: {error}") from None
    return base64.b64encode(descriptor).decode()


class _Writer:
    def __init__(self, file: File, imports: Mapping[str, File]) -> None:
        self._file = file
        self._names = Names(file, imports)
        self._is_proto3 = file.syntax == "proto3"

    def descriptor(self) -> Any:
        from google.protobuf import descriptor_pb2

        file = self._file
        made = descriptor_pb2.FileDescriptorProto(name="default", package=file.package or None)
        if file.edition:
            made.syntax = "editions"
            made.edition = descriptor_pb2.Edition.Value(f"EDITION_{file.edition}")
        elif self._is_proto3:
            made.syntax = "proto3"
        made.dependency.extend([*file.imports, *file.public_imports, *file.weak_imports])
        first_weak = len(file.imports) + len(file.public_imports)
        made.public_dependency.extend(range(len(file.imports), first_weak))
        made.weak_dependency.extend(range(first_weak, len(made.dependency)))
        for message in file.messages:
            self._message(made.message_type.add(), message, ())
        for enum in file.enums:
            self._enum(made.enum_type.add(), enum)
        self._extends(made.extension, file.extends, ())
        for service in file.services:
            self._service(made.service.add(), service)
        _set_options(made, file.options)
        return made

    def _message(self, made: Any, message: Message, outer: Inside) -> None:
        made.name = message.name
        inside = (*outer, message.name)
        for nested in message.messages:
            self._message(made.nested_type.add(), nested, inside)
        for enum in message.enums:
            self._enum(made.enum_type.add(), enum)
        self._members(made, message, inside)
        self._extends(made.extension, message.extends, inside)
        for extensions in message.extensions:
            for each in extensions.ranges:
                end = min(each.last, MAX_TAG) + 1
                added = made.extension_range.add(start=each.first, end=end)
                _set_options(added, extensions.options)
        for each in _reserve(made, message.reserved):
            made.reserved_range.add(start=each.first, end=min(each.last, MAX_TAG) + 1)
        _set_options(made, message.options)

    def _members(self, made: Any, message: Message, inside: Inside) -> None:
        for member in message.fields:
            self._field(made.field.add(), member, inside, entries=made.nested_type)
        for group in message.groups:
            self._group(made.field.add(), group, made.nested_type, inside)
        for index, oneof in enumerate(message.oneofs):
            declared = made.oneof_decl.add(name=oneof.name)
            _set_options(declared, oneof.options)
            first = len(made.field)
            for member in oneof.fields:
                self._field(made.field.add(), member, inside)
            for group in oneof.groups:
                self._group(made.field.add(), group, made.nested_type, inside)
            for added in made.field[first:]:
                added.oneof_index = index
        for added in made.field:
            if added.proto3_optional:
                added.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{added.name}")

    def _field(self, made: Any, member: Field, inside: Inside, *, entries: Any = None) -> None:
        made.name, made.number = member.name, member.tag
        made.label = _label(member.label)
        if self._is_proto3 and member.label == "optional":
            made.proto3_optional = True
        if member.is_map:
            self._map(made, member, inside, entries)
        else:
            self._set_type(made, member.type, inside)
        for option in member.options:
            if option.name == "default" and not option.is_extension:
                made.default_value = _default(member.type, option.value)
            elif option.name == "json_name" and not option.is_extension:
                made.json_name = option.value
        _set_options(made, [each for each in member.options if each.name not in _NOT_OPTIONS])

    def _map(self, made: Any, member: Field, inside: Inside, entries: Any) -> None:
        """Write a field of pairs, and the message of a pair."""
        if entries is None:
            raise InvalidSchemaError(f"the map {member.name} is in a oneof or an extension")
        key, value = map_parts(member.type)
        parts = member.name.split("_")
        entry = entries.add(name="".join(part[:1].upper() + part[1:] for part in parts) + "Entry")
        entry.options.map_entry = True
        for name, number, of_type in (("key", 1, key), ("value", 2, value)):
            added = entry.field.add(name=name, number=number, label=1)
            self._set_type(added, of_type, inside)
        made.label, made.type = LABELS["repeated"], _MESSAGE
        made.type_name = self._full_name((*inside, entry.name))

    def _group(self, made: Any, group: Group, nested: Any, inside: Inside) -> None:
        made.name, made.number = group.name.lower(), group.tag
        made.label, made.type = _label(group.label), _GROUP
        made.type_name = self._full_name((*inside, group.name))
        self._message(nested.add(), group.message, inside)

    def _set_type(self, made: Any, name: str, inside: Inside) -> None:
        if name in SCALARS:
            made.type = SCALARS[name]
            return
        full, is_enum = self._resolved(name, inside)
        made.type, made.type_name = _ENUM if is_enum else _MESSAGE, full

    def _resolved(self, name: str, inside: Inside) -> tuple[str, bool]:
        found = self._names.type_named(name, inside)
        if found is None:
            raise InvalidSchemaError(f"unknown type {name}")
        return f".{found[0]}", found[1].is_enum

    def _full_name(self, names: Inside) -> str:
        package = (self._file.package,) if self._file.package else ()
        return "." + ".".join((*package, *names))

    def _extends(self, made: Any, extends: Iterable[Extend], inside: Inside) -> None:
        for extend in extends:
            for member in extend.fields:
                added = made.add(extendee=self._resolved(extend.name, inside)[0])
                self._field(added, member, inside)

    def _enum(self, made: Any, enum: Enum) -> None:
        made.name = enum.name
        for constant in enum.constants:
            value = made.value.add(name=constant.name, number=constant.tag)
            _set_options(value, constant.options)
        for each in _reserve(made, enum.reserved):
            made.reserved_range.add(start=each.first, end=each.last)
        _set_options(made, enum.options)

    def _service(self, made: Any, service: Service) -> None:
        made.name = service.name
        for method in service.methods:
            added = made.method.add(
                name=method.name,
                input_type=self._resolved(method.request, ())[0],
                output_type=self._resolved(method.response, ())[0],
                client_streaming=method.is_request_stream,
                server_streaming=method.is_response_stream,
            )
            _set_options(added, method.options)
        _set_options(made, service.options)


def _label(label: str) -> int:
    return LABELS[label or "optional"]


def _reserve(made: Any, statements: Iterable[Iterable[Range | str]]) -> list[Range]:
    """Write the reserved names, and return the reserved ranges."""
    reserved = [each for statement in statements for each in statement]
    made.reserved_name.extend(each for each in reserved if isinstance(each, str))
    return [each for each in reserved if not isinstance(each, str)]


def _default(of_type: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if of_type == "bytes":
        from google.protobuf.text_encoding import CEscape

        return str(CEscape(str(value).encode(), as_utf8=False))
    return str(value)


def _set_options(made: Any, options: Iterable[Option]) -> None:
    """Set the options that Protobuf itself defines."""
    for option in options:
        if not option.is_extension:
            _set_members(made.options, {option.name: option.value})


def _set_members(message: Any, members: Mapping[str, Any]) -> None:
    for name, given in members.items():
        known = message.DESCRIPTOR.fields_by_name.get(name)
        if known is None or name == _UNINTERPRETED:
            continue
        for value in given if isinstance(given, list) else [given]:
            if known.message_type is None:
                _set_scalar(message, known, value)
            else:
                _set_message(message, known, value)


def _set_message(message: Any, known: Any, value: Any) -> None:
    """Set a field that is a message: `features = {enum_type: OPEN}` or `features.enum_type = OPEN`.

    Raises TypeError if the value is no message.
    """
    inner = getattr(message, known.name)
    if known.is_repeated:
        inner = inner.add()
    else:
        inner.SetInParent()
    members = value
    if isinstance(value, Option):
        members = {} if value.is_extension else {value.name: value.value}
    if not isinstance(members, dict):
        raise TypeError(f"{known.name} is a message")
    _set_members(inner, members)


def _set_scalar(options: Any, known: Any, value: Any) -> None:
    if known.enum_type is not None:
        found = known.enum_type.values_by_name.get(str(value))
        if found is None:
            return
        value = found.number
    elif known.type == known.TYPE_BOOL:
        value = value is True or str(value) == "true"
    elif known.cpp_type in (known.CPPTYPE_INT32, known.CPPTYPE_UINT64):
        value = int(str(value), 0)
    if known.is_repeated:
        getattr(options, known.name).append(value)
    else:
        setattr(options, known.name, value)
