"""The stored form of records.

The bytes were written by Confluent's own classes (schema-registry, commit 794611bd86d of its public
source: storage.SchemaKey, SchemaValue, ConfigValue, … through JacksonMapper, with Jackson 2.19).
Those of Karapace and of older releases are from Karapace's tests and from what users published.
"""

import pytest

from odradek.coordinator.registry import records
from odradek.coordinator.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    ModeKey,
    NoopKey,
    Record,
    SchemaKey,
    UnreadableError,
)
from odradek.coordinator.registry.schemas import (
    JSON,
    PROTOBUF,
    Reference,
    Schema,
    SchemaVersion,
    stored_metadata,
    stored_rule_set,
)
from odradek.coordinator.registry.settings import Mode, changed_config

METADATA = {
    "tags": {"b": ["z", "a"], "a": ["t"]},
    "properties": {"z": "1", "a": "2"},
    "sensitive": ["z"],
}
RULE_SET = {
    "domainRules": [
        {
            "name": "r",
            "kind": "TRANSFORM",
            "mode": "WRITEREAD",
            "type": "ENCRYPT",
            "tags": ["PII"],
            "params": {"b": "1", "a": "2"},
            "onFailure": "ERROR,NONE",
        },
        {
            "name": "s",
            "doc": "d",
            "kind": "CONDITION",
            "mode": "READ",
            "type": "CEL",
            "expr": "x",
            "disabled": True,
        },
    ],
    "migrationRules": [],
}

AVRO_VERSION = SchemaVersion(subject="s-value", version=1, id=1, schema=Schema(text='"int"'))
PROTOBUF_VERSION = SchemaVersion(
    subject=":.prod:s",
    version=2,
    id=7,
    schema=Schema(
        schema_type=PROTOBUF,
        text='syntax = "proto3";\n\x1f\x7fä😀/',
        references=(Reference("a.proto", "a", 1),),
    ),
    deleted=True,
)
RULES_VERSION = SchemaVersion(
    subject="s",
    version=3,
    id=9,
    schema=Schema(
        schema_type=JSON,
        text="{}",
        metadata=stored_metadata(METADATA),
        rule_set=stored_rule_set(RULE_SET),
    ),
)
CONFIG = {
    "compatibility": "backward",
    "compatibilityGroup": "g",
    "compatibilityPolicy": "LENIENT",
    "validateRules": True,
    "normalize": True,
    "validateFields": False,
    "aliasForDeks": "ald",
    "alias": "al",
}

GOLDEN = [
    (
        records.schema_record(AVRO_VERSION),
        '{"keytype":"SCHEMA","subject":"s-value","version":1,"magic":1}',
        '{"subject":"s-value","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"",'
        '"deleted":false}',
    ),
    (
        records.schema_record(PROTOBUF_VERSION),
        '{"keytype":"SCHEMA","subject":":.prod:s","version":2,"magic":1}',
        '{"subject":":.prod:s","version":2,"id":7,"schemaType":"PROTOBUF","references":[{"name":'
        '"a.proto","subject":"a","version":1}],"schema":"syntax = \\"proto3\\";\\n\\u001F\x7fä😀/",'
        '"deleted":true}',
    ),
    (
        records.schema_record(RULES_VERSION),
        '{"keytype":"SCHEMA","subject":"s","version":3,"magic":1}',
        '{"subject":"s","version":3,"id":9,"schemaType":"JSON","metadata":{"tags":{"a":["t"],"b":'
        '["a","z"]},"properties":{"a":"2","z":"1"},"sensitive":["z"]},"ruleSet":{"domainRules":[{'
        '"name":"r","kind":"TRANSFORM","mode":"WRITEREAD","type":"ENCRYPT","tags":["PII"],"params":'
        '{"a":"2","b":"1"},"onFailure":"ERROR,NONE","disabled":false},{"name":"s","doc":"d","kind":'
        '"CONDITION","mode":"READ","type":"CEL","expr":"x","disabled":true}]},"schema":"{}",'
        '"deleted":false}',
    ),
    (
        records.config_record(None, changed_config(None, {"compatibility": "FULL"})),
        '{"keytype":"CONFIG","magic":0}',
        '{"compatibilityLevel":"FULL"}',
    ),
    (
        records.config_record("s", changed_config(None, CONFIG)),
        '{"keytype":"CONFIG","subject":"s","magic":0}',
        '{"subject":"s","alias":"al","aliasForDeks":"ald","normalize":true,"validateFields":false,'
        '"validateRules":true,"compatibilityLevel":"BACKWARD","compatibilityPolicy":"LENIENT",'
        '"compatibilityGroup":"g"}',
    ),
    (records.mode_record(None, Mode.IMPORT), '{"keytype":"MODE","magic":0}', '{"mode":"IMPORT"}'),
    (
        records.mode_record("s", Mode.READONLY_OVERRIDE),
        '{"keytype":"MODE","subject":"s","magic":0}',
        '{"subject":"s","mode":"READONLY_OVERRIDE"}',
    ),
    (
        records.delete_subject_record("s", 3),
        '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        '{"subject":"s","version":3}',
    ),
    (
        records.clear_subject_record("s"),
        '{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
        '{"subject":"s"}',
    ),
    (records.clear_subject_record(None), '{"keytype":"CLEAR_SUBJECT","magic":0}', "{}"),
    (records.tombstone(records.NoopKey()), '{"keytype":"NOOP","magic":0}', None),
    (
        records.context_record(".prod"),
        '{"keytype":"CONTEXT","tenant":"default","context":".prod","magic":0}',
        '{"tenant":"default","context":".prod"}',
    ),
]


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_records_are_written_as_confluent_writes_them(
    record: Record, key: str, value: str | None
) -> None:
    assert record.key.decode() == key
    assert (None if record.value is None else record.value.decode()) == value


@pytest.mark.parametrize("version", [AVRO_VERSION, PROTOBUF_VERSION, RULES_VERSION])
def test_written_schemas_are_read_again(version: SchemaVersion) -> None:
    record = records.schema_record(version)
    assert record.value is not None
    key = records.decode_key(record.key)
    assert isinstance(key, SchemaKey)
    assert records.decode_schema(key, record.value) == version


@pytest.mark.parametrize(
    ("stored", "key"),
    [
        ('{"subject": "s", "version": 1, "magic": 1, "keytype": "SCHEMA"}', SchemaKey("s", 1)),
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":0}', SchemaKey("s", 1)),
        ('{"subject":null,"magic":0,"keytype":"CONFIG"}', ConfigKey(None)),
        ('{"keytype":"MODE","subject":"s","magic":0,"new":1}', ModeKey("s")),
        ('{"keytype":"DELETE_SUBJECT","magic":0,"subject":"s"}', DeleteSubjectKey("s")),
        ('{"keytype":"CLEAR_SUBJECT","subject":":.c:","magic":0}', ClearSubjectKey(":.c:")),
        ('{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}', ContextKey(".c")),
        ('{"keytype":"NOOP","magic":0}', NoopKey()),
    ],
)
def test_keys_of_other_registries_are_read(stored: str, key: object) -> None:
    assert records.decode_key(stored.encode()) == key


def test_values_of_older_registries_are_read() -> None:
    key = SchemaKey("s", 1)
    version = SchemaVersion(subject="s", version=1, id=4, schema=Schema(text='"int"'))
    of_release_5 = b'{"subject":"s","version":1,"id":4,"schema":"\\"int\\"","deleted":false}'
    of_karapace = (
        b'{"deleted": false, "id": 4, "schema": "\\"int\\"", "subject": "s", "version": 1}'
    )
    assert records.decode_schema(key, of_release_5) == version
    assert records.decode_schema(key, of_karapace) == version
    assert records.decode_config(b'{"compatibility":"NONE"}') == {"compatibilityLevel": "NONE"}


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"x",
        b"[]",
        b'{"keytype":"ASSOC"}',
        b'{"keytype":"SCHEMA","subject":"s","version":"1","magic":1}',
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":2}',
        b'{"keytype":"SCHEMA","version":1,"magic":1}',
        b"\xff",
    ],
)
def test_other_keys_are_unreadable(stored: bytes) -> None:
    with pytest.raises(UnreadableError):
        records.decode_key(stored)


@pytest.mark.parametrize(
    "stored",
    [
        b"{}",
        b'{"id":1}',
        b'{"id":1,"schema":2}',
        b'{"id":1,"schema":"x","references":[1]}',
        b'{"id":1,"schema":"x","metadata":[]}',
        b'{"id":1,"schema":"x","md5":"%"}',
    ],
)
def test_other_values_are_unreadable(stored: bytes) -> None:
    with pytest.raises(UnreadableError):
        records.decode_schema(SchemaKey("s", 1), stored)


def test_fingerprints_are_confluents() -> None:
    """The guids are those that Confluent's class Schema gave."""
    assert RULES_VERSION.schema.guid == "50a08497-2c6f-40cf-ae79-294e34d068ba"
    referring = Schema(text='"int"', references=(Reference("a.B", "b", 2),))
    assert referring.guid == "5ba45171-ad66-6365-0555-7d745ca2eeb9"
    assert Schema(text='"int"', metadata={}).guid == "1d1d1f70-2ee5-5e03-8ce5-4f3b6703c50f"
