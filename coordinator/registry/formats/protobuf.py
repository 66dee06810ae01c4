"""Protobuf schemas: a .proto file, with the files that it may import."""

from collections.abc import Iterable, Mapping

from odradek.coordinator.registry.errors import InvalidSchemaError

from .protobuf_descriptor import file_of
from .protobuf_file import File
from .protobuf_parser import parse_file
from .protobuf_serialized import serialized
from .protobuf_text import normalized, written


class ProtobufSchema:
    """A parsed file with the files that it may import."""

    def __init__(self, file: File, imports: Mapping[str, File]) -> None:
        self.file = file
        self.imports = imports

    def canonical(self) -> str:
        return written(self.file)

    def serialized(self) -> str:
        """Return the file as a descriptor, in base64. Raises InvalidSchemaError."""
        return serialized(self.file, self.imports)

    def normalized(self) -> "ProtobufSchema":
        return ProtobufSchema(parse_file(normalized(self.file, self.imports)), self.imports)

    def field_names(self) -> Iterable[str]:
        return (member.name for message in self.file.messages for member in message.fields)

    def check_fields(self) -> None:
        """Check that the file has a descriptor. Raises InvalidSchemaError."""
        self.serialized()


def parse(text: str, references: Mapping[str, str], *, is_new: bool) -> ProtobufSchema:
    """Parse a schema: the text of a file, or a FileDescriptorProto in base64.

    With `is_new`, the names of types must be known. Linear in the texts. Raises InvalidSchemaError.
    """
    schema = ProtobufSchema(
        _file_of(text), {name: _file_of(referred) for name, referred in references.items()}
    )
    if is_new:
        normalized(schema.file, schema.imports)  # resolves the names of types
    return schema


def _file_of(text: str) -> File:
    try:
        return parse_file(text)
    except InvalidSchemaError as error:
        if any(mark in text for mark in "{;"):
            raise
        return file_of(text, error)
