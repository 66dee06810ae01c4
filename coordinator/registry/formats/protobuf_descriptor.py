"""Protobuf schemas given as a descriptor, as Python's and .NET's clients register them.

The text is a FileDescriptorProto in base64. It is turned into the declarations that its .proto file
would have. A descriptor may have names that no file can have: then it is refused, because the file
is stored.
"""

import base64
from typing import Any

from odradek.coordinator.registry.errors import InvalidSchemaError

from .protobuf_file import (
    LABELS,
    MAX_TAG,
    SCALARS,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Literal,
    Message,
    Method,
    OneOf,
    Option,
    Range,
    Service,
    Symbol,
)
from .protobuf_parser import parse_file, unescaped
from .protobuf_text import written

_LABELS = {number: name for name, number in LABELS.items()}
_SCALARS = {number: name for name, number in SCALARS.items()}
_STRING, _BYTES = SCALARS["string"], SCALARS["bytes"]
_NAMED_DEFAULTS = (8, 14)


def file_of(text: str, text_error: InvalidSchemaError) -> File:
    """Return the file that a descriptor describes.

    Raises `text_error`, of parsing it as the text of a file, if it is no descriptor; and
    InvalidSchemaError if it describes no file.
    """
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from google.protobuf.message import DecodeError
    except ImportError:
        raise text_error from None
    descriptor = FileDescriptorProto()
    try:
        descriptor.ParseFromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        raise text_error from None
    text = written(_file(descriptor))
    try:
        return parse_file(text)
    except InvalidSchemaError as error:
        raise InvalidSchemaError(f"the descriptor describes no file: {error}") from None


def _file(descriptor: Any) -> File:
    is_proto2 = descriptor.syntax in ("", "proto2")
    public = set(descriptor.public_dependency)
    weak = set(descriptor.weak_dependency)
    imports = list(enumerate(descriptor.dependency))
    return File(
        syntax=descriptor.syntax if descriptor.syntax in ("proto2", "proto3") else "",
        edition=_edition(descriptor) if descriptor.syntax == "editions" else "",
        package=descriptor.package,
        imports=[name for index, name in imports if index not in public | weak],
        public_imports=[name for index, name in imports if index in public],
        weak_imports=[name for index, name in imports if index in weak],
        options=_options(descriptor),
        messages=[_message(message, is_proto2) for message in descriptor.message_type],
        enums=[_enum(enum) for enum in descriptor.enum_type],
        extends=_extends(descriptor.extension, is_proto2),
        services=[_service(service) for service in descriptor.service],
    )


def _edition(descriptor: Any) -> str:
    values = descriptor.DESCRIPTOR.fields_by_name["edition"].enum_type.values_by_number
    return str(values[descriptor.edition].name).removeprefix("EDITION_")


def _message(descriptor: Any, is_proto2: bool) -> Message:
    made = Message(name=descriptor.name, options=_options(descriptor))
    made.oneofs = [
        OneOf(name=oneof.name, options=_options(oneof)) for oneof in descriptor.oneof_decl
    ]
    for member in descriptor.field:
        if member.HasField("oneof_index") and not member.proto3_optional:
            if not 0 <= member.oneof_index < len(made.oneofs):
                raise InvalidSchemaError(f"the field {member.name} is in an unknown oneof")
            made.oneofs[member.oneof_index].fields.append(_field(member, is_proto2, label=""))
        else:
            made.fields.append(_field(member, is_proto2))
    made.oneofs = [oneof for oneof in made.oneofs if oneof.fields]
    made.messages = [_message(message, is_proto2) for message in descriptor.nested_type]
    made.enums = [_enum(enum) for enum in descriptor.enum_type]
    made.extends = _extends(descriptor.extension, is_proto2)
    made.extensions = [
        Extensions(ranges=[Range(r.start, min(r.end - 1, MAX_TAG))], options=_options(r))
        for r in descriptor.extension_range
    ]
    made.reserved = [[Range(r.start, r.end - 1)] for r in descriptor.reserved_range]
    made.reserved += [[name] for name in descriptor.reserved_name]
    return made


def _field(descriptor: Any, is_proto2: bool, label: str | None = None) -> Field:
    if label is None:
        label = _LABELS[descriptor.label]
        if not is_proto2 and label == "optional" and not descriptor.proto3_optional:
            label = ""
    options = _options(descriptor)
    if descriptor.HasField("default_value"):
        options.append(Option(name="default", value=_default(descriptor)))
    if descriptor.HasField("json_name") and descriptor.json_name != _json_name(descriptor.name):
        options.append(Option(name="json_name", value=descriptor.json_name))
    of_type = _SCALARS.get(descriptor.type) or descriptor.type_name
    return Field(
        name=descriptor.name, tag=descriptor.number, type=of_type, label=label, options=options
    )


def _default(descriptor: Any) -> Any:
    value = descriptor.default_value
    if descriptor.type == _STRING:
        return value
    if descriptor.type == _BYTES:
        return _bytes_default(value)
    return Symbol(value) if descriptor.type in _NAMED_DEFAULTS else Literal(value)


def _bytes_default(escaped: str) -> str:
    """Return the text that stands for bytes, which a descriptor has with escapes."""
    try:
        value = unescaped(escaped)
    except ValueError as error:
        raise InvalidSchemaError(f"wrong default of bytes: {error}") from None
    try:
        return value.encode("latin-1").decode()
    except ValueError:  # the bytes are no UTF-8
        return value


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _enum(descriptor: Any) -> Enum:
    made = Enum(name=descriptor.name, options=_options(descriptor))
    made.constants = [
        Constant(name=value.name, tag=value.number, options=_options(value))
        for value in descriptor.value
    ]
    made.reserved = [[Range(r.start, r.end)] for r in descriptor.reserved_range]
    made.reserved += [[name] for name in descriptor.reserved_name]
    return made


def _extends(descriptors: Any, is_proto2: bool) -> list[Extend]:
    made: dict[str, Extend] = {}
    for descriptor in descriptors:
        extend = made.setdefault(descriptor.extendee, Extend(name=descriptor.extendee))
        extend.fields.append(_field(descriptor, is_proto2))
    return list(made.values())


def _service(descriptor: Any) -> Service:
    made = Service(name=descriptor.name, options=_options(descriptor))
    made.methods = [
        Method(
            name=method.name,
            request=method.input_type,
            response=method.output_type,
            is_request_stream=method.client_streaming,
            is_response_stream=method.server_streaming,
            options=_options(method),
        )
        for method in descriptor.method
    ]
    return made


def _options(descriptor: Any) -> list[Option]:
    """Return the options that are set; those of extensions cannot be named and are left out."""
    if not descriptor.HasField("options"):
        return []
    made = []
    for described, value in descriptor.options.ListFields():
        if described.is_extension or described.name == "uninterpreted_option":
            continue
        values = value if described.is_repeated else [value]
        made += [Option(name=described.name, value=_option_value(described, v)) for v in values]
    return made


def _option_value(described: Any, value: Any) -> Any:
    if described.message_type is not None:
        return {
            inner.name: [_option_value(inner, v) for v in found]
            if inner.is_repeated
            else _option_value(inner, found)
            for inner, found in value.ListFields()
            if not inner.is_extension
        }
    if described.enum_type is not None:
        return Symbol(described.enum_type.values_by_number[value].name)
    return value if isinstance(value, bool | str) else Literal(str(value))
