"""Every declaration says what Kafka's own definition of the message says.

The definitions are the JSON files in Apache Kafka's jars; those of the versions that Kafka 4 has
dropped lie in the jar of Kafka 3.9. A declaration may leave out what cannot
be seen in any version that it speaks: that a field which is always there could be ignored, or a
version range that ends before ours begins. Where a default can be seen on no wire, it may be null.
"""

from collections.abc import Iterable

import msgspec
import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.declaration import Field, ListOf, Wire, fields_of
from odradek.protocol.schema import Message, Struct, VersionRange, WireType
from tests.support.kafka_definitions import (
    Definition,
    FieldDefinition,
    definitions,
    definitions_of_39,
)
from tests.support.messages import all_messages, has_tags_in_header, versions_of

pytestmark = pytest.mark.java

ALL = set(range(128))
CONTROLLER_LISTENER = {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
# librdkafka gives up on a broker that does not announce Produce v0 (KAFKA-18659).
ANNOUNCED = {"Produce": VersionRange(0, 13)}
# The APIs that we speak in versions which Kafka 4 has dropped.
SPOKEN_FROM_0 = {"Produce", "Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch"}


@pytest.mark.parametrize("message", all_messages(), ids=lambda made: made.__name__)
def test_a_declaration_says_what_kafkas_definition_says(message: type[Message]) -> None:
    definition = definitions()[message.__name__]
    spoken = definition.versions
    if api_name(definition) in SPOKEN_FROM_0:
        spoken = VersionRange(0, definition.versions.highest)
        before = definitions_of_39()[message.__name__]
        compare(message, before.fields, within(before.versions, ALL), f"{message.__name__} of 3.9")
    assert message.SPEC.versions == spoken
    assert message.SPEC.advertised == announced(definition)
    assert flexible(message) == [v for v in versions_of(message) if v in definition.flexible]
    if message.__name__.endswith(("Request", "Response")):
        assert message.SPEC.key == definition.key
    compare(message, definition.fields, within(definition.versions, ALL), message.__name__)


def test_every_api_of_the_broker_listener_is_declared() -> None:
    declared = {message.SPEC.key for message in all_messages()}
    wanted = {
        definition.key
        for definition in definitions().values()
        if definition.name.endswith("Request")
    }
    assert wanted - declared - {None} == CONTROLLER_LISTENER
    assert {key for key in wanted if key is not None} == set(ApiKey)


def test_header_versions_follow_from_the_definitions() -> None:
    for definition in definitions().values():
        if definition.key is None or not definition.name.endswith("Request"):
            continue
        for version in range(-1, definition.versions.highest + 2):
            is_flexible = version in definition.flexible
            assert has_tags_in_header(definition.key, version) == is_flexible


def api_name(definition: Definition) -> str:
    return definition.name.removesuffix("Request").removesuffix("Response")


def announced(definition: Definition) -> VersionRange:
    name = api_name(definition)
    lowest, highest = definition.versions
    request = definitions().get(name + "Request", definition)
    return ANNOUNCED.get(name, VersionRange(lowest, highest - request.is_newest_unstable))


def flexible(message: type[Message]) -> list[int]:
    return [version for version in versions_of(message) if version in message.SPEC.flexible]


def compare(
    declared: type[Struct], defined: Iterable[FieldDefinition], spoken: set[int], path: str
) -> None:
    """Compare a struct in the versions in which it occurs."""
    ours = {f.name: f for f in fields_of(declared) if within(f.versions, spoken)}
    theirs = {field.name: field for field in defined if within(field.versions, spoken)}
    assert list(ours) == list(theirs), path
    for name, field in ours.items():
        compare_field(field, theirs[name], spoken, f"{path}.{name}")


def within(versions: VersionRange, spoken: set[int]) -> set[int]:
    return {version for version in spoken if version in versions}


def compare_field(ours: Field, theirs: FieldDefinition, spoken: set[int], path: str) -> None:
    present = within(theirs.versions, spoken)
    assert within(ours.versions, spoken) == present, path
    assert within(ours.nullable, present) == within(theirs.nullable, present), path
    for version in present:
        expected = theirs.tag if version in theirs.tagged else None
        assert ours.tag_in(version) == expected, path
    assert type_name(ours.wire) == comparable(theirs), path
    can_be_left_out = present != spoken
    if can_be_left_out:
        assert ours.is_ignorable == theirs.is_ignorable, path
    compare_default(ours, theirs, path, is_free=not can_be_left_out and theirs.tag is None)
    item = ours.wire.item if isinstance(ours.wire, ListOf) else ours.wire
    if isinstance(item, type):
        assert theirs.fields is not None
        compare(item, theirs.fields, present, path)


def type_name(wire: Wire) -> str:
    if isinstance(wire, ListOf):
        return "[]" + type_name(wire.item)
    return wire.name if isinstance(wire, WireType) else "struct"


def comparable(theirs: FieldDefinition) -> str:
    if theirs.fields is None:
        return theirs.type
    return "[]struct" if theirs.type.startswith("[]") else "struct"


def compare_default(ours: Field, theirs: FieldDefinition, path: str, *, is_free: bool) -> None:
    """Equal where it travels or a value is compared with it; else zero or null will do."""
    if is_free and theirs.default is None and ours.default is msgspec.NODEFAULT:
        return
    expected = default_of(ours.wire, theirs)
    if is_free and theirs.default is None and ours.default is None:
        assert ours.may_be_null, path
        return
    assert ours.default == expected, path
    assert type(ours.default) is type(expected), path


def default_of(wire: Wire, theirs: FieldDefinition) -> object:
    if theirs.default == "null":
        return None
    if isinstance(wire, ListOf):
        return []
    if isinstance(wire, type):
        return wire()
    said = theirs.default
    if said is None or wire.name == "string":
        return wire.zero if said is None else said
    if wire.name == "bool":
        return said in (True, "true")
    return int(str(said), 0)
