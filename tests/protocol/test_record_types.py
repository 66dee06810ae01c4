"""Every record that Kafka defines for its internal logs is declared, under Kafka's number.

What a declaration says is compared in test_declarations.py; here it is which there are, how the
keys and values of a coordinator's log go together, and that Kafka's own tool, reading a log with a
record of every type, finds these types there.
"""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec, MetadataRecordCodec
from odradek.protocol.declaration import ListOf, Wire, present_fields
from odradek.protocol.primitives import uuid_text
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import (
    cluster_metadata,
    consumer_offsets,
    share_group_state,
    transaction_state,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from odradek.protocol.records.control import (
    QUORUM_RECORDS,
    ControlRecordType,
    ControlRecordTypeSchema,
    EndTxnMarker,
)
from odradek.protocol.schema import Message, Struct, WireType
from tests.support.java_tools import JavaTools
from tests.support.kafka_definitions import Definition, definitions
from tests.support.messages import sample, versions_of

pytestmark = pytest.mark.java

Pairs = Mapping[int, tuple[type[Message], type[Message]]]

COORDINATORS: list[tuple[str, Pairs, str]] = [
    ("kafka-group-coordinator", consumer_offsets.RECORD_TYPES, "offsets"),
    ("kafka-transaction-coordinator", transaction_state.RECORD_TYPES, "transaction-log"),
    ("kafka-share-coordinator", share_group_state.RECORD_TYPES, "share-group-state"),
]
EVERY_COORDINATOR = pytest.mark.parametrize(
    ("jar", "types", "decoder"), COORDINATORS, ids=[jar for jar, _, _ in COORDINATORS]
)

NO_RECORDS = {
    "AbortedTxn": "an entry of a transaction index: storage/txn_index.py",
    "DefaultPrincipalData": "goes with a request that a broker forwards to its controller",
    "QuorumStateData": "the file `quorum-state`: JSON",
}


def defined(type_: str, jar: str | None = None) -> list[Definition]:
    return [d for d in definitions().values() if d.type == type_ and jar in (None, d.jar)]


@EVERY_COORDINATOR
def test_every_record_of_a_coordinators_log_is_in_its_table(
    jar: str, types: Pairs, decoder: str
) -> None:
    keys = {d.key: d.name for d in defined("coordinator-key", jar)}
    values = {d.key: d.name for d in defined("coordinator-value", jar)}
    assert keys
    assert keys.keys() == values.keys()
    ours = {number: (key.__name__, value.__name__) for number, (key, value) in types.items()}
    assert ours == {number: (keys[number], values[number]) for number in keys}


def test_no_coordinators_log_is_missed() -> None:
    jars = {d.jar for d in (*defined("coordinator-key"), *defined("coordinator-value"))}
    assert jars == {jar for jar, _, _ in COORDINATORS}


def test_every_record_of_the_metadata_log_is_in_its_table() -> None:
    theirs = {definition.key: definition.name for definition in defined("metadata")}
    ours = {n: message.__name__ for n, message in cluster_metadata.RECORD_TYPES.items()}
    assert ours == theirs


def test_every_other_structure_is_declared_or_is_no_record() -> None:
    ours: set[type[Message]] = {
        ControlRecordTypeSchema,
        EndTxnMarker,
        ConsumerProtocolSubscription,
        ConsumerProtocolAssignment,
        *QUORUM_RECORDS.values(),
    }
    names = {message.__name__ for message in ours}
    assert names | NO_RECORDS.keys() == {definition.name for definition in defined("data")}
    ends = {ControlRecordType.ABORT, ControlRecordType.COMMIT}
    assert QUORUM_RECORDS.keys() == set(ControlRecordType) - ends


# -- what Kafka's own tool reads ------------------------------------------------------------------


def every_record(types: Pairs) -> list[JournalRecord]:
    """A record of each type, in each version of its value."""
    return [
        JournalRecord(sample(value, version), version, sample(key, 0))
        for key, value in types.values()
        for version in versions_of(value)
    ]


def dumped(java: JavaTools, folder: Path, records: list[Record], decoder: str) -> list[str]:
    """What the tool makes of each record of a log."""
    path = folder / f"{0:020}.log"
    path.write_bytes(build_batch(records))
    output = java.run("DumpLogSegments", f"--{decoder}-decoder", "--files", str(path))
    return [line for line in output.splitlines() if line.startswith("| offset: ")]


@EVERY_COORDINATOR
def test_kafkas_tool_reads_every_record_of_a_coordinators_log(
    jar: str, types: Pairs, decoder: str, java: JavaTools, tmp_path: Path
) -> None:
    codec = CoordinatorRecordCodec(types)
    numbers = {key: number for number, (key, _) in types.items()}
    written = every_record(types)
    lines = dumped(java, tmp_path, [Record(*codec.encode(each), 0) for each in written], decoder)
    for line, record in zip(lines, written, strict=True):
        found = re.search(r" key: (\{.*\}) payload: (\{.*\})$", line)
        assert found, line
        assert record.key is not None
        key = {"type": str(numbers[type(record.key)]), "data": as_json(record.key, 0)}
        assert json.loads(found[1]) == key
        version = record.value_version
        data = as_json(record.value, version)
        assert isinstance(data, dict)
        if "transactionStatus" in data:  # the tool shows its name, and a number without one as text
            data["transactionStatus"] = str(data["transactionStatus"])
        assert json.loads(found[2]) == {"version": str(version), "data": data}


def test_kafkas_tool_reads_every_record_of_the_metadata_log(
    java: JavaTools, tmp_path: Path
) -> None:
    codec = MetadataRecordCodec.of_cluster()
    written = [
        JournalRecord(sample(message, version), version)
        for message in cluster_metadata.RECORD_TYPES.values()
        for version in versions_of(message)
    ]
    records = [Record(*codec.encode(each), 0) for each in written]
    lines = dumped(java, tmp_path, records, "cluster-metadata")
    for line, record in zip(lines, written, strict=True):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(record.value).__name__).upper()
        version = record.value_version
        value = {"type": name, "version": version, "data": as_json(record.value, version)}
        assert json.loads(line.partition(" payload: ")[2]) == value


def as_json(value: object, version: int, wire: Wire | None = None) -> object:
    """A value as Kafka's JsonConverters show it."""
    if isinstance(value, Struct):
        return {
            camel(field.name): as_json(getattr(value, field.name), version, field.wire)
            for field, _ in present_fields(type(value), version)
        }
    if isinstance(wire, ListOf):
        assert isinstance(value, list)
        return [as_json(item, version, wire.item) for item in value]
    if isinstance(value, bytes):
        is_uuid = isinstance(wire, WireType) and wire.name == "uuid"
        return uuid_text(value) if is_uuid else base64.b64encode(value).decode()
    return value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
