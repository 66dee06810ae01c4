"""Our bytes are read by kio, and kio's bytes by us.

kio is a second implementation, generated from Kafka's definitions: a class per message and version.
Some of its values are richer than ours (times, error codes), so what is drawn for those fields is
kept to what kio can express.
"""

import importlib
import io
import re
from pathlib import Path

import kio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from odradek.protocol.schema import Message, WireType
from tests.support.message_strategies import EXAMPLES, messages
from tests.support.messages import all_messages, layouts, versions_of

KIO = Path(kio.__path__[0])
ERROR_CODES = [int(code) for code in KioErrorCode]
LATEST_MS = 10**12  # some day in 2001: fits a datetime and a timedelta


def kio_module(message: type[Message], version: int) -> str | None:
    """The name of kio's module for a version of a message, which may not exist."""
    name, kind = message.__name__, "data"
    for ending in ("Request", "Response"):
        if name.endswith(ending) and message.SPEC.key is not None:
            name, kind = name.removesuffix(ending), ending.lower()
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    if not (KIO / "schema" / folder / f"v{version}" / f"{kind}.py").exists():
        return None
    return f"kio.schema.{folder}.v{version}.{kind}"


def shared() -> dict[type[Message], list[int]]:
    """The messages that kio has too, with the versions it has of them."""
    found = {}
    for message in all_messages():
        versions = [v for v in versions_of(message) if kio_module(message, v)]
        if versions:
            found[message] = versions
    return found


SHARED = shared()


def within_kio(name: str, wire: WireType) -> st.SearchStrategy[object] | None:
    if name.endswith("error_code"):
        return st.sampled_from(ERROR_CODES)
    if name.endswith(("_ms", "_timestamp", "timestamp")) and wire.name in ("int32", "int64"):
        return st.integers(0, LATEST_MS if wire.name == "int64" else 2**31 - 1)
    return None


def exchange(message: type[Message], version: int) -> int:
    """Send some values of one version there and back: how many. AssertionError: not the same."""
    entity = getattr(importlib.import_module(kio_module(message, version) or ""), message.__name__)
    exchanged = 0

    @EXAMPLES
    @given(value=messages(message, version, within_kio))
    def there_and_back(value: Message) -> None:
        nonlocal exchanged
        ours = value.encode(version)
        theirs, size = entity_reader(entity)(ours, 0)
        assert size == len(ours)
        out = io.BytesIO()
        entity_writer(entity)(out, theirs)
        assert message.decode(out.getvalue(), version) == value
        assert out.getvalue() == ours
        exchanged += 1

    there_and_back()
    return exchanged


@pytest.mark.parametrize("message", SHARED, ids=lambda made: made.__name__)
def test_kio_reads_what_we_write_and_we_what_kio_writes(message: type[Message]) -> None:
    versions = set(SHARED[message])
    for version in versions.intersection(layouts(message)) or versions:
        assert exchange(message, version) > 0


def test_kio_knows_most_of_our_messages() -> None:
    assert len(SHARED) > 130
    assert sum(map(len, SHARED.values())) > 400
