"""The schemas of values: those of the registry whose topic, `_schemas`, this broker has.

It may be the registry of this process (odradek.registry.listener), or another one that keeps its
schemas in this broker. The topic is read when the first value with a schema is shown. What reads
the values of a format is imported then; it comes with odradek[registry].
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec

from odradek.broker.broker import Broker
from odradek.broker.registry.remote_work import in_process
from odradek.coordinator.registry import subjects
from odradek.coordinator.registry.errors import RegistryError
from odradek.coordinator.registry.schema_work import Done, NotDoneError
from odradek.coordinator.registry.schemas import AVRO, JSON, PROTOBUF, TOPIC, SchemaVersion
from odradek.coordinator.runtime.steps import Step
from odradek.protocol.errors import ApiError
from odradek.protocol.primitives import read_uvarint

from .avro_values import read_value, shape_of
from .framing import Framed

if TYPE_CHECKING:
    from odradek.broker.registry.schema_log import SchemaLog
    from odradek.coordinator.registry.registry import Registry

FORMATS = {AVRO: "avro", PROTOBUF: "protobuf", JSON: "jsonschema"}
_KEPT = 200
_MAX_INDEXES = 100
# One byte of Protobuf may stand for the name of a value of an enum.
_LONG_NAME = re.compile(rb"\w{128}")
# A longer payload of Protobuf is read by a thread: its reader is not made to give way.
_SHORT_PAYLOAD = 256


class UndecodableError(Exception):
    """A value cannot be shown by its schema. The message says why."""


# Makes JSON of a payload; calls the step now and then. Raises anything.
_Read = Callable[[bytes, Step], bytes]


# The id of the topic, which may be created again, a schema's id, and its GUID.
_Key = tuple[bytes | None, int, bytes]


class Shape(NamedTuple):
    """A schema with which values can be read."""

    schema_id: int
    format: str
    read: _Read

    async def json_of(self, payload: bytes, step: Step) -> bytes:
        """The JSON of a payload. Raises anything."""
        if self.format == FORMATS[PROTOBUF] and len(payload) > _SHORT_PAYLOAD:
            return await asyncio.to_thread(self.read, payload, step)
        return self.read(payload, step)


class Schemas:
    """The schemas of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._log: SchemaLog | None = None
        self._shapes: OrderedDict[_Key, Shape] = OrderedDict()
        self._making: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()
        # Held while the log is read, and while a thread uses what was read.
        self._lock = asyncio.Lock()

    async def shape(self, value: Framed, client: Hashable) -> Shape:
        """The schema that a value names. Raises UndecodableError.

        `client` is whose long schemas are parsed by turns.
        """
        topic = self._broker.metadata.topics.get(TOPIC)
        key = (None if topic is None else topic.id, value.schema_id, value.guid)
        found = self._shapes.get(key)
        if found is None:
            async with self._making.setdefault(key, asyncio.Lock()):
                # While it waited, another client may have made it.
                found = self._shapes.get(key) or await self._made(value, client)
                self._shapes[key] = found
        self._shapes.move_to_end(key)
        while len(self._shapes) > _KEPT:
            self._shapes.popitem(last=False)
        return found

    async def _made(self, value: Framed, client: Hashable) -> Shape:
        try:
            registry = await self._registry()
            version = _version_of(registry, value)
            read = await self._reader(registry, version, client)
        except (ApiError, RegistryError) as error:
            raise UndecodableError(_unusable(error)) from None
        except ImportError as error:
            text = f"{error.name} is not installed here: pip install 'odradek[registry]'"
            raise UndecodableError(text) from None
        except UndecodableError:
            raise
        except Exception as error:  # noqa: BLE001 # libraries raise what they like for strange schemas
            read = _refusing(_unusable(error))  # kept, so that not each record tries it again
        return Shape(version.id, FORMATS.get(version.schema.schema_type, "schema"), read)

    async def _reader(self, registry: Registry, version: SchemaVersion, client: Hashable) -> _Read:
        """Make what reads the values of a schema. Raises anything."""
        done = Done()
        while True:
            try:
                async with self._lock:
                    return await asyncio.to_thread(_reader, registry.knowing(done), version)
            except NotDoneError as error:
                work = error.work
            walks, slices = self._broker.fetching.walks, self._broker.turns.slices
            done.results[work] = await in_process(work, walks, slices, client)

    async def _registry(self) -> Registry:
        if TOPIC not in self._broker.metadata.topics:
            raise UndecodableError(f"there is no topic {TOPIC} with schemas")
        from odradek.broker.registry.schema_log import SchemaLog  # few brokers have schemas

        if self._log is None:
            self._log = SchemaLog(self._broker)
        async with self._lock:
            await self._log.follow()
        return self._log.registry


_SCHEMAS: WeakKeyDictionary[Broker, Schemas] = WeakKeyDictionary()


def schemas_of(broker: Broker) -> Schemas:
    """The schemas of a broker. They are kept as long as it is."""
    found = _SCHEMAS.get(broker)
    if found is None:
        found = _SCHEMAS[broker] = Schemas(broker)
    return found


def _version_of(registry: Registry, value: Framed) -> SchemaVersion:
    """Raises UndecodableError."""
    if value.guid:
        by_guid = registry.state.by_guid(value.guid)
        if by_guid is None:
            raise UndecodableError(f"no schema in _schemas has the GUID {value.guid.hex()}")
        return by_guid[0]
    found = registry.state.by_id(value.schema_id)
    if found is None:
        raise UndecodableError(f"no schema in _schemas has the id {value.schema_id}")
    return found


def _unusable(error: Exception) -> str:
    return f"the schema cannot be used: {error}"


def _refusing(reason: str) -> _Read:
    def read(_payload: bytes, _step: Step) -> bytes:
        raise UndecodableError(reason)

    return read


def _reader(registry: Registry, version: SchemaVersion) -> _Read:
    """Make what reads the values of a schema. May be long. Raises anything, as NotDoneError."""
    schema_type = version.schema.schema_type
    if schema_type == AVRO:
        return _avro_reader(registry.text_in(version, "resolved"))
    if schema_type == PROTOBUF:
        return _protobuf_reader(registry, version)
    return _as_it_is


def _as_it_is(payload: bytes, _step: Step) -> bytes:
    return payload


def _avro_reader(text: str) -> _Read:
    shape = shape_of(msgspec.json.decode(text))

    def read(payload: bytes, step: Step) -> bytes:
        return msgspec.json.encode(read_value(shape, payload, step), enc_hook=str)

    return read


def _protobuf_reader(registry: Registry, version: SchemaVersion) -> _Read:
    from google.protobuf import descriptor_pool, json_format, message_factory

    pool = descriptor_pool.DescriptorPool()
    file = _add_file(registry, version, "the-schema.proto", pool, set())

    def read(payload: bytes, _step: Step) -> bytes:
        indexes, position = _indexes(payload)
        if min(indexes) < 0:
            raise ValueError(f"it names a message by {indexes}")
        descriptor = file.message_types_by_name[list(file.message_types_by_name)[indexes[0]]]
        for index in indexes[1:]:
            descriptor = descriptor.nested_types[index]
        message = message_factory.GetMessageClass(descriptor)()
        message.ParseFromString(payload[position:])
        shown = json_format.MessageToJson(message, preserving_proto_field_name=True, indent=None)
        return shown.encode()

    return read


def _add_file(
    registry: Registry, version: SchemaVersion, name: str, pool: Any, added: set[str]
) -> Any:
    """Add a file to a pool, after those that it imports. Returns its descriptor."""
    from google.protobuf import descriptor_pb2

    added.add(name)
    for reference in version.schema.references:
        if reference.name not in added:
            owner = subjects.beside(version.subject, reference.subject)
            referred = registry.version(owner, reference.version, deleted=True)
            _add_file(registry, referred, reference.name, pool, added)
    content = base64.b64decode(registry.text_in(version, "serialized"))
    if _LONG_NAME.search(content):
        raise ValueError("a name in it is too long")
    file = descriptor_pb2.FileDescriptorProto()
    file.ParseFromString(content)
    file.name = name
    for imported in file.dependency:
        if imported not in added:
            _add_known(imported, pool, added)
    pool.Add(file)
    return pool.FindFileByName(name)


def _add_known(name: str, pool: Any, added: set[str]) -> None:
    """Add a file that comes with Protobuf, as google/protobuf/timestamp.proto."""
    from importlib import import_module

    from google.protobuf import descriptor_pb2, descriptor_pool

    added.add(name)
    if name.startswith("google/protobuf/"):
        module = name.removesuffix(".proto").replace("/", ".")
        try:
            import_module(f"{module}_pb2")
        except ModuleNotFoundError:
            raise UndecodableError(f"there is no file {name}") from None
    file = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    for imported in file.dependency:
        if imported not in added:
            _add_known(imported, pool, added)
    pool.Add(file)


def _indexes(payload: bytes) -> tuple[list[int], int]:
    """The place of a message in its file, and the position after it. Zigzag varints."""
    count, position = read_uvarint(payload, 0)
    count = (count >> 1) ^ -(count & 1)
    if not 0 <= count <= _MAX_INDEXES:
        raise ValueError(f"it names a message by {count} numbers")
    indexes = []
    for _ in range(count):
        index, position = read_uvarint(payload, position)
        indexes.append((index >> 1) ^ -(index & 1))
    return indexes or [0], position
