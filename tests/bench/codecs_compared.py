"""One message, read and written by odradek, by kio and by kafka-python.

All three get the same bytes in the same version, and must give the same bytes back, so what is
timed is the same work. Each goes through the door that its own programs use: kio's readers and
writers are fetched once, and write into a BytesIO; kafka-python has `decode` and `encode` and pools
its buffers; odradek's codec is fetched once, reads a view of a frame and appends to a bytearray, as
dispatch does. What is compiled at first use is compiled before the clock runs.
"""

import importlib
import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kio.serial import entity_reader, entity_writer

from odradek.protocol.schema import Message, codec_for


class Work(NamedTuple):
    """Reading and writing one message, by one library."""

    read: Callable[[], object]
    write: Callable[[], bytes | bytearray]


def by_odradek(message: Message, version: int) -> Work:
    """Our codec."""
    codec = codec_for(type(message), version)
    view = memoryview(message.encode(version))
    if codec.decode(view) != (message, len(view)):
        raise AssertionError(f"{message} is not what was written")

    return Work(lambda: codec.decode(view), lambda: codec.encode(message))


def by_kio(message: Message, version: int) -> Work:
    """kio: its reader is compiled (Rust), its writer is Python."""
    data = message.encode(version)
    entity = _kio_class(type(message).__name__, version)
    read, write_to = entity_reader(entity), entity_writer(entity)
    theirs, _ = read(data, 0)

    def write() -> bytes:
        out = io.BytesIO()
        write_to(out, theirs)
        return out.getvalue()

    return Work(lambda: read(data, 0), write)


def _kio_class(name: str, version: int) -> Any:
    kind = "request" if name.endswith("Request") else "response"
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix(kind.title())).lower()
    return getattr(importlib.import_module(f"kio.schema.{folder}.v{version}.{kind}"), name)


def by_kafka_python(message: Message, version: int) -> Work:
    """kafka-python 3: Python, generated at first use as ours is."""
    data = message.encode(version)
    made = _kafka_python_class(type(message).__name__)
    theirs = _copied(made.decode(data, version=version))
    theirs.API_VERSION = version
    view = memoryview(data)
    return Work(lambda: made.decode(view, version=version), theirs.encode)


def _copied(message: Any) -> Any:
    """The same, made by the class's `__init__`: what `decode` makes lacks what `encode` needs."""
    values = {name: getattr(message, name) for name in type(message).fields}
    return type(message)(**values)


def _kafka_python_class(name: str) -> Any:
    for package in ("producer", "consumer", "metadata"):
        module = importlib.import_module(f"kafka.protocol.{package}")
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(f"kafka-python has no {name}")


LIBRARIES: dict[str, Callable[[Message, int], Work]] = {
    "odradek": by_odradek,
    "kio": by_kio,
    "kafka-python": by_kafka_python,
}
