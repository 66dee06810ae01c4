"""Requests to the registry: decisions are replayed as the log would."""

from collections.abc import Mapping
from typing import Any

import pytest

from odradek.coordinator.registry.errors import ErrorCode, RegistryError
from odradek.coordinator.registry.formats import Parsed
from odradek.coordinator.registry.records import Record, config_record, schema_record
from odradek.coordinator.registry.registration import Decision
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.requests import SchemaRequest, schema_request, version_number
from odradek.coordinator.registry.schema_work import (
    Check,
    Describe,
    Done,
    Equivalences,
    Form,
    Invalid,
    NotDoneError,
    Validate,
    Work,
    outcome,
)
from odradek.coordinator.registry.schemas import Reference, Schema, SchemaVersion
from odradek.coordinator.registry.settings import Mode
from odradek.coordinator.registry.state import RegistryState


class Log:
    """A registry and the records that it has written, compacted on request."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.registry = Registry(RegistryState())

    def do(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            self.write(record)
        self.registry.state.note_equivalence(decision.equivalence)
        return decision.reply

    def write(self, record: Record) -> None:
        self.records.append(record)
        self.registry.state.replay(record.key, record.value)

    def register(self, subject: str, schema: str, /, **more: Any) -> SchemaVersion:
        body = {"schema": schema, **more}
        reply: SchemaVersion = self.do(self.registry.register(subject, schema_request(body)))
        return reply

    def restarted(self, *, with_tombstones: bool = True) -> "Log":
        """Return a registry that has read the compacted log."""
        last = {record.key: index for index, record in enumerate(self.records)}
        log = Log()
        for index in sorted(last.values()):
            record = self.records[index]
            if with_tombstones or record.value is not None:
                log.write(record)
        return log


@pytest.fixture
def log() -> Log:
    return Log()


def record_type(*fields: Mapping[str, Any], name: str = "R") -> str:
    import json

    return json.dumps({"type": "record", "name": name, "fields": fields})


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int"}
B_DEFAULT = {"name": "b", "type": "int", "default": 0}


def refusal(action: Any) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        action()
    return caught.value


# -- registering -----------------------------------------------------------------------------------


def test_the_same_schema_has_one_id_in_all_subjects(log: Log) -> None:
    first = log.register("s", '{"type": "int"}')
    again = log.register("s", '"int"')
    other = log.register("t", '"int"')
    assert (first.id, first.version, first.schema.text) == (1, 1, '"int"')
    assert again == first
    assert (other.id, other.version) == (1, 1)
    assert log.register("s", '"long"').id == 2
    assert log.register("u", '"int"', id=-5).id == 1
    assert [v.subject for v in log.registry.schema_versions(1)] == ["s", "t", "u"]


def test_contexts_number_their_schemas_for_themselves(log: Log) -> None:
    log.register("s", '"int"')
    assert log.register(":.c:s", '"long"').id == 1
    assert log.registry.contexts() == [".", ".c"]
    assert log.registry.schema(1).schema.text == '"int"'
    assert log.registry.schema(1, ":.c:").schema.text == '"long"'
    assert log.registry.subjects() == [":.c:s", "s"]
    assert log.restarted().registry.contexts() == [".", ".c"]


def test_an_incompatible_schema_is_refused_with_reasons(log: Log) -> None:
    log.register("s", record_type(A))
    error = refusal(lambda: log.register("s", record_type(A, B)))
    assert (error.status, error.code) == (409, ErrorCode.INCOMPATIBLE_SCHEMA)
    assert error.message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details:'
        " [{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path"
        " '/fields/1' in the new schema has no default value and is missing in the old schema'"
    )
    assert error.message.endswith("{validateFields: 'false', compatibility: 'BACKWARD'}]")
    assert log.register("s", record_type(A, B_DEFAULT)).version == 2


def test_levels_decide_what_is_compared(log: Log) -> None:
    wide, narrow = record_type(A, B), record_type(A)
    verdicts = {}
    for level in ("NONE", "BACKWARD", "FORWARD", "FULL"):
        log.do(log.registry.change_config(level, {"compatibility": level}))
        log.register(level, narrow)
        verdicts[level] = log.registry.incompatibilities(level, schema_request({"schema": wide}))
    assert {level: not reasons for level, reasons in verdicts.items()} == {
        "NONE": True,
        "BACKWARD": False,
        "FORWARD": True,
        "FULL": False,
    }


def test_transitive_levels_compare_all_versions(log: Log) -> None:
    log.do(log.registry.change_config("s", {"compatibility": "NONE"}))
    log.register("s", record_type(A))
    log.register("s", record_type(B_DEFAULT))
    request = schema_request({"schema": record_type(B)})
    for level, is_compatible in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        log.do(log.registry.change_config("s", {"compatibility": level}))
        assert (not log.registry.incompatibilities("s", request)) == is_compatible


def test_a_compatibility_check_may_name_a_version(log: Log) -> None:
    log.register("s", record_type(A))
    request = schema_request({"schema": record_type(A, B)})
    assert log.registry.incompatibilities("s", request, 1)
    assert log.registry.incompatibilities("s", request, -1)
    assert not log.registry.incompatibilities("none", request, -1)
    error = refusal(lambda: log.registry.incompatibilities("s", request, 2))
    assert error.message == "Version 2 not found."


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": "{"}, ErrorCode.INVALID_SCHEMA),
        ({"schema": ""}, ErrorCode.INVALID_SCHEMA),
        ({"schema": '"int"', "schemaType": "XML"}, ErrorCode.INVALID_SCHEMA),
        ({"schema": '"int"', "references": [{"name": "x"}]}, ErrorCode.INVALID_SCHEMA),
        ({"schema": '"int"', "version": 7}, ErrorCode.INVALID_SCHEMA),
        ({"schema": '"int"', "id": 7}, ErrorCode.OPERATION_NOT_PERMITTED),
        ({"schema": '"int"', "ruleSet": {"domainRules": [{}]}}, ErrorCode.INVALID_RULE_SET),
        ({"schema": '"int"', "metadata": {"properties": {"a": 1}}}, ErrorCode.INVALID_SCHEMA),
        ({"schema": '"int"', "propagateSchemaTags": True}, ErrorCode.INVALID_SCHEMA),
    ],
)
def test_wrong_requests_are_refused(log: Log, body: dict[str, Any], code: ErrorCode) -> None:
    error = refusal(lambda: log.registry.register("s", schema_request(body)))
    assert error.code == code
    assert log.registry.subjects() == []


@pytest.mark.parametrize("subject", ["a\x00b", "__GLOBAL", ":.__GLOBAL:s", ":.c:__EMPTY"])
def test_wrong_subjects_are_refused(log: Log, subject: str) -> None:
    assert refusal(lambda: log.register(subject, '"int"')).code == ErrorCode.INVALID_SUBJECT


def test_versions_are_read(log: Log) -> None:
    assert [version_number(text) for text in ("1", "latest", "-1", "LATEST")] == [1, -1, -1, -1]
    for text in ("0", "-2", "x", "2147483648", ""):
        assert refusal(lambda t=text: version_number(t)).code == ErrorCode.INVALID_VERSION  # type: ignore[misc]


def test_references_are_resolved_and_protected(log: Log) -> None:
    log.register("b", record_type(A, name="n.B"))
    using = record_type({"name": "b", "type": "n.B"})
    body = {"references": [{"name": "n.B", "subject": "b", "version": -1}]}
    made = log.register("r", using, **body)
    assert made.schema.references[0].version == 1
    assert log.registry.referenced_by("b", 1) == [made.id]
    error = refusal(lambda: log.registry.delete_version("b", 1))
    assert error.message == (
        "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=b,version=1}."
    )
    assert refusal(lambda: log.registry.delete_subject("b")).code == ErrorCode.REFERENCE_EXISTS
    log.do(log.registry.delete_subject("r"))
    assert log.registry.referenced_by("b", 1) == []
    log.do(log.registry.delete_subject("b"))
    assert refusal(lambda: log.registry.delete_subject("b", permanent=True)).status == 422
    log.do(log.registry.delete_subject("r", permanent=True))
    log.do(log.registry.delete_subject("b", permanent=True))
    assert log.registry.subjects(deleted=True) == []


def test_a_missing_reference_is_refused(log: Log) -> None:
    body = {"references": [{"name": "n.B", "subject": "b", "version": 1}]}
    error = refusal(lambda: log.register("r", '"int"', **body))
    assert 'No schema reference found for subject "b" and version 1' in error.message


def test_long_chains_of_references_are_refused(log: Log) -> None:
    for number in range(101):
        references = (Reference(f"n{number}", f"s{number - 1}", 1),) if number else ()
        schema = Schema(text='"int"', references=references)
        log.write(
            schema_record(SchemaVersion(subject=f"s{number}", version=1, id=1, schema=schema))
        )

    def register(referred: str) -> SchemaVersion:
        reference = {"name": "n", "subject": referred, "version": 1}
        body = {"schema": '"int"', "references": [reference]}
        return decided(log.registry, schema_request(body), []).reply

    assert register("s99").schema.references
    error = refusal(lambda: register("s100"))
    assert error.code is ErrorCode.INVALID_SCHEMA
    assert error.message.endswith("more than 100 deep")


def test_a_schema_has_a_limit_of_references(log: Log) -> None:
    log.register("s", '"int"')
    many = [{"name": "a", "subject": "s", "version": 1}] * 1000
    log.register("t", '"int"', references=many)
    more = [*many, {"name": "b", "subject": "t", "version": 1}]
    error = refusal(lambda: log.register("u", '"int"', references=more))
    assert error.message.endswith("more than 2000 references")


# -- looking up ------------------------------------------------------------------------------------


def test_look_up_finds_the_version(log: Log) -> None:
    log.register("s", '"int"')
    request = schema_request({"schema": ' "int" '})
    assert log.registry.look_up("s", request).version == 1
    assert refusal(lambda: log.registry.look_up("t", request)).code == ErrorCode.SUBJECT_NOT_FOUND
    unknown = schema_request({"schema": '"bytes"'})
    assert refusal(lambda: log.registry.look_up("s", unknown)).code == ErrorCode.SCHEMA_NOT_FOUND


def test_look_up_finds_what_another_registry_wrote_otherwise(log: Log) -> None:
    text = '{"fields": [{"type": "int", "name": "a"}], "name": "R", "type": "record"}'
    version = SchemaVersion(subject="s", version=1, id=5, schema=Schema(text=text))
    log.write(schema_record(version))
    assert log.registry.look_up("s", schema_request({"schema": record_type(A)})).id == 5
    assert log.register("s", record_type(A)).id == 5


def test_look_up_finds_a_schema_by_its_resolved_text(log: Log) -> None:
    log.register("b", record_type(A, name="n.B"))
    body = {"references": [{"name": "n.B", "subject": "b", "version": 1}]}
    made = log.register("r", record_type({"name": "b", "type": "n.B"}), **body)
    import json

    resolved = record_type({"name": "b", "type": json.loads(record_type(A, name="n.B"))})
    assert log.registry.look_up("r", schema_request({"schema": resolved})) == made


def test_one_text_is_another_schema_where_it_refers_to_another(log: Log) -> None:
    reference = {"name": "P", "subject": "p", "version": 1}
    referring = '{"type": "record", "name": "R", "fields": [{"name": "p", "type": "P"}]}'
    inlined = {}
    for context, field in (("", "int"), (":.a:", "long")):
        text = record_type({"name": "x", "type": field}, name="P")
        log.register(f"{context}p", text)
        log.register(f"{context}s", referring, references=[reference])
        inlined[context] = schema_request({"schema": referring.replace('"P"', text)})
    for context, request in inlined.items():
        assert log.registry.look_up(f"{context}s", request).subject == f"{context}s"


def test_the_nearest_reference_of_a_name_counts(log: Log) -> None:
    log.register("c", '{"type": "string"}', schemaType="JSON")
    older = {"name": "c.json", "subject": "c", "version": 1}
    log.do(log.registry.change_config("c", {"compatibility": "NONE"}))
    newer = '{"type": "object", "properties": {"old": {"$ref": "c.json"}}}'
    log.register("c", newer, schemaType="JSON", references=[older])
    body = {"schemaType": "JSON", "references": [{**older, "version": 2}]}
    log.register("s", '{"$ref": "c.json"}', **body)
    changed = schema_request({"schema": '{"type": "string"}', "schemaType": "JSON"})
    assert log.registry.incompatibilities("s", changed)


def test_look_up_passes_over_a_context_that_lacks_a_reference(log: Log) -> None:
    for subject in ("s", ":.c:s"):
        log.register(subject, '"int"')
    log.register("ref", '{"type": "record", "name": "R", "fields": []}')
    record = '{"type": "record", "name": "S", "fields": [{"name": "r", "type": "R"}]}'
    reference = {"name": "R", "subject": "ref", "version": 1}
    referring = schema_request({"schema": record, "references": [reference]})
    assert refusal(lambda: log.registry.look_up("s", referring)).code == ErrorCode.SCHEMA_NOT_FOUND
    unknown = schema_request({"schema": '"R"'})
    assert refusal(lambda: log.registry.look_up("s", unknown)).code == ErrorCode.INVALID_SCHEMA


def test_normalized_look_up_and_registration(log: Log) -> None:
    one = '{"type":"object","title":"t","additionalProperties":false}'
    two = '{"additionalProperties":false,"title":"t","type":"object"}'
    first = log.do(
        log.registry.register(
            "s", schema_request({"schema": one, "schemaType": "JSON"}), normalize=True
        )
    )
    request = schema_request({"schema": two, "schemaType": "JSON"})
    assert first.schema.text == two
    assert log.registry.look_up("s", request, normalize=True) == first
    log.do(log.registry.change_config("t", {"normalize": True}))
    assert log.register("t", one, schemaType="JSON").id == first.id


def test_metadata_and_rules_are_kept_and_inherited(log: Log) -> None:
    rule = {"name": "r", "kind": "CONDITION", "mode": "READ", "type": "CEL", "expr": "true"}
    body = {"metadata": {"properties": {"owner": "me"}}, "ruleSet": {"domainRules": [rule]}}
    first = log.register("s", '"int"', **body)
    second = log.register("s", '"long"')
    assert second.schema.metadata == first.schema.metadata == {"properties": {"owner": "me"}}
    assert second.schema.rule_set == {"domainRules": [{**rule, "disabled": False}]}
    read = log.restarted().registry.version("s", 2)
    assert read.schema == second.schema
    assert log.registry.look_up("s", schema_request({"schema": '"long"'})) == second


def test_defaults_and_overrides_of_a_configuration_are_added(log: Log) -> None:
    config = {
        "defaultMetadata": {"properties": {"a": "1", "b": "1"}},
        "overrideMetadata": {"properties": {"b": "2"}},
    }
    log.do(log.registry.change_config("s", config))
    made = log.register("s", '"int"', metadata={"properties": {"a": "0"}})
    assert made.schema.metadata == {"properties": {"a": "0", "b": "2"}}


@pytest.mark.parametrize(
    ("schema_type", "text"),
    [("JSON", '{"$ref":"#/nothing"}'), ("PROTOBUF", "message A { Nope n = 1; }")],
)
def test_what_a_schema_refers_to_must_be_there_unless_it_is_imported(
    log: Log, schema_type: str, text: str
) -> None:
    registry = log.registry
    log.do(registry.change_config(None, {"validateNewSchemas": False}))
    request = schema_request({"schema": text, "schemaType": schema_type})
    assert refusal(lambda: registry.register("s", request)).code == 42201
    assert refusal(lambda: registry.look_up("s", request)).code == 42201
    assert refusal(lambda: registry.incompatibilities("s", request)).code == 42201
    log.do(registry.change_mode("s", "IMPORT"))
    imported = log.register("s", text, schemaType=schema_type, id=7)
    assert registry.look_up("s", request) == imported


def test_fields_are_checked_if_a_configuration_asks_for_it(log: Log) -> None:
    log.do(log.registry.change_config(None, {"compatibility": "NONE", "validateFields": True}))
    reserved = {"properties": {"confluent:reserved": "a, b"}}
    log.register("s", record_type(), metadata=reserved)
    error = refusal(lambda: log.register("s", record_type(A), metadata=reserved))
    assert error.code is ErrorCode.INCOMPATIBLE_SCHEMA
    assert error.message.endswith(
        "[The new schema has field that conflicts with the reserved field a.,"
        " {validateFields: 'true', compatibility: 'NONE'}]"
    )
    error = refusal(lambda: log.register("s", record_type(A, B), metadata={}))
    assert "The new schema has reserved field a removed from its metadata" in error.message
    json = {"schemaType": "JSON"}
    assert refusal(lambda: log.register("t", '{"properties":{"$$a":{}}}', **json)).code == 42201
    protobuf = {"schemaType": "PROTOBUF"}
    text = "message M { optional int32 a = 1 [json_name = true]; }"
    assert refusal(lambda: log.register("u", text, **protobuf)).code == 42201


# -- deleting --------------------------------------------------------------------------------------


def test_versions_are_deleted_in_two_steps(log: Log) -> None:
    registry = log.registry
    log.register("s", '"int"')
    log.register("s", '"long"')
    assert refusal(lambda: registry.delete_version("s", 1, permanent=True)).code == 40407
    assert log.do(registry.delete_version("s", 1)) == 1
    assert refusal(lambda: registry.delete_version("s", 1)).code == 40406
    assert [v.version for v in registry.versions("s")] == [2]
    assert [v.version for v in registry.versions("s", deleted=True)] == [1, 2]
    assert [v.version for v in registry.versions("s", deleted_only=True)] == [1]
    assert refusal(lambda: registry.version("s", 1)).code == 40402
    assert registry.version("s", 1, deleted=True).id == registry.schema(1).id == 1
    assert log.do(registry.delete_version("s", 1, permanent=True)) == 1
    assert refusal(lambda: registry.schema(1)).code == 40403
    assert log.do(registry.delete_version("s", -1)) == 2
    assert refusal(lambda: registry.versions("s")).code == 40401
    assert log.register("s", '"int"').id == 3  # ids are not given again


def test_subjects_are_deleted_in_two_steps(log: Log) -> None:
    registry = log.registry
    log.register("s", '"int"')
    log.register("s", '"long"')
    log.do(registry.change_config("s", {"compatibility": "FULL"}))
    log.do(registry.change_mode("s", "READWRITE"))
    assert refusal(lambda: registry.delete_subject("t")).code == 40401
    assert refusal(lambda: registry.delete_subject("s", permanent=True)).code == 40405
    assert log.do(registry.delete_subject("s")) == [1, 2]
    assert refusal(lambda: registry.delete_subject("s")).code == 40404
    assert registry.subjects() == []
    assert registry.subjects(deleted=True) == registry.subjects(deleted_only=True) == ["s"]
    assert log.do(registry.delete_subject("s", permanent=True)) == [1, 2]
    assert registry.subjects(deleted=True) == []
    assert refusal(lambda: registry.config("s")).code == 40408
    assert refusal(lambda: registry.mode("s")).code == 40409


def test_a_deleted_schema_that_comes_again_has_its_id_and_a_new_version(log: Log) -> None:
    first = log.register("s", '"int"')
    log.do(log.registry.delete_subject("s"))
    again = log.register("s", '"int"')
    assert (again.id, again.version) == (first.id, 2)
    assert [v.version for v in log.registry.versions("s", deleted=True)] == [2]


# -- configurations and modes ----------------------------------------------------------------------


def test_configurations_come_from_outside(log: Log) -> None:
    registry = log.registry
    assert registry.config(None) == {"compatibilityLevel": "BACKWARD"}
    assert refusal(lambda: registry.config("s")).message == (
        "Subject 's' does not have subject-level compatibility configured"
    )
    log.do(registry.change_config(None, {"compatibility": "none", "normalize": True}))
    assert registry.config("s", default_to_global=True)["compatibilityLevel"] == "NONE"
    assert log.do(registry.change_config("s", {"alias": "t"})) == {"alias": "t"}
    assert registry.config("s") == {"compatibilityLevel": "BACKWARD", "alias": "t"}
    assert registry.config("s", default_to_global=True)["normalize"] is True
    assert registry.aliased("s") == "t"
    log.do(registry.change_config("s", {"alias": None, "compatibility": "FULL"}))
    assert registry.state.configs["s"] == {"compatibilityLevel": "FULL"}
    assert log.do(registry.delete_config("s")) == {"compatibilityLevel": "FULL"}
    assert refusal(lambda: registry.delete_config("s")).code == 40401
    assert refusal(lambda: registry.change_config("s", {"compatibility": "X"})).code == 42203
    log.do(registry.change_config(":.c:", {"compatibility": "FORWARD"}))
    assert registry.config(":.c:s", default_to_global=True) == {"compatibilityLevel": "FORWARD"}


def test_read_only_modes_refuse_changes(log: Log) -> None:
    registry = log.registry
    made = log.register("s", '"int"')
    for mode in ("READONLY", "READONLY_OVERRIDE"):
        log.do(registry.change_mode("s", mode))
        assert log.register("s", '"int"') == made  # nothing new
        for action in (
            lambda: log.register("s", '"long"'),
            lambda: registry.delete_version("s", 1),
            lambda: registry.delete_subject("s"),
            lambda: registry.change_config("s", {"compatibility": "FULL"}),
        ):
            error = refusal(action)
            assert error.code == ErrorCode.OPERATION_NOT_PERMITTED
            assert error.message == "Subject s in context  is in read-only mode"
    assert log.do(registry.delete_mode("s")) is Mode.READONLY_OVERRIDE
    assert log.register("s", '"long"').version == 2


def test_schemas_are_imported_with_their_ids(log: Log) -> None:
    registry = log.registry
    log.do(registry.change_mode(None, "IMPORT"))
    made = log.register("s", '"int"', id=100, version=7)
    assert (made.id, made.version) == (100, 7)
    assert log.register("s", record_type(A), id=200, version=3).version == 3
    assert refusal(lambda: log.register("t", '"int"')).message.endswith("is not in read-write mode")
    assert refusal(lambda: log.register("s", '"long"', id=100)).code == 42205
    log.do(registry.change_mode(None, "READWRITE"))
    assert refusal(lambda: log.register("s", '"bytes"', id=5)).code == 42205
    assert log.register("t", '"long"').id == 201
    assert [v.version for v in log.restarted().registry.versions("s")] == [3, 7]


@pytest.mark.parametrize(("deleted", "kept", "kept_id"), [("s", "t", 7), ("t", "s", 1)])
def test_a_schema_with_two_ids_keeps_the_one_that_is_not_deleted(
    log: Log, deleted: str, kept: str, kept_id: int
) -> None:
    guid = log.register("s", '"int"').schema.guid
    log.do(log.registry.change_mode("t", "IMPORT"))
    log.register("t", '"int"', id=7, version=1)
    assert log.registry.ids_of_guid(guid) == [(".", 7)]
    log.do(log.registry.delete_subject(deleted))
    log.do(log.registry.delete_subject(deleted, permanent=True))
    for life in (log, log.restarted(with_tombstones=False)):
        assert life.registry.ids_of_guid(guid) == [(".", kept_id)]
        assert life.registry.schema_by_guid(guid).subject == kept
        assert life.register("u", '"int"').id == kept_id


def test_import_mode_needs_an_empty_registry(log: Log) -> None:
    registry = log.registry
    log.register("s", '"int"')
    error = refusal(lambda: registry.change_mode(None, "IMPORT"))
    assert error.message == "Cannot import since found existing subjects"
    log.do(registry.change_mode("t", "IMPORT"))
    log.do(registry.delete_subject("s"))
    log.do(registry.change_mode(None, "IMPORT"))
    assert registry.subjects(deleted=True) == []
    assert log.restarted().registry.subjects(deleted=True) == []


def test_modes_come_from_outside(log: Log) -> None:
    registry = log.registry
    assert registry.mode(None) is Mode.READWRITE
    assert refusal(lambda: registry.mode("s")).code == 40409
    assert refusal(lambda: registry.change_mode("s", "X")).code == 42204
    assert refusal(lambda: registry.change_mode("s", "FORWARD")).code == 42204
    log.do(registry.change_mode(":.c:", "READONLY"))
    assert registry.mode(":.c:s", default_to_global=True) is Mode.READONLY
    log.do(registry.change_mode(":.c:s", "READWRITE"))
    log.do(registry.delete_mode(":.c:", recursive=True))
    assert registry.state.modes == {}


# -- the log ---------------------------------------------------------------------------------------


def test_a_restarted_registry_knows_the_same(log: Log) -> None:
    registry = log.registry
    log.register("s", '"int"')
    log.register("s", '"long"')
    log.register("t", '"int"')
    log.do(registry.delete_version("s", 1))
    log.register("u", '"bytes"')
    log.do(registry.delete_subject("u"))
    log.register("u", '"string"')
    log.do(registry.change_config("s", {"compatibility": "FULL"}))
    log.do(registry.change_mode("t", "READONLY"))
    for with_tombstones in (True, False):
        state = log.restarted(with_tombstones=with_tombstones).registry.state
        assert state.versions == registry.state.versions
        assert state.configs == registry.state.configs
        assert state.modes == registry.state.modes
        assert state.contexts["."].ids_by_md5 == registry.state.contexts["."].ids_by_md5


def test_a_key_in_another_spelling_is_deleted_with_ours(log: Log) -> None:
    old = Record(b'{"subject": "s", "magic": 0, "keytype": "CONFIG"}', b'{"compatibility": "NONE"}')
    log.write(old)
    assert log.registry.config("s") == {"compatibilityLevel": "NONE"}
    decision = log.registry.change_config("s", {"compatibility": "FULL"})
    assert decision.records == (
        Record(old.key, None),
        config_record("s", {"compatibilityLevel": "FULL"}),
    )
    log.do(decision)
    log.do(log.registry.delete_config("s"))
    for with_tombstones in (True, False):
        assert log.restarted(with_tombstones=with_tombstones).registry.state.configs == {}


def test_digests_are_forgotten_with_their_versions(log: Log) -> None:
    state, subjects = log.registry.state, ("s", ":.c:s")
    log.registry.register("s", schema_request({"schema": '"string"'}))  # not stored
    assert not state.context_of("s").equivalences
    for subject in subjects:
        log.register(subject, '"int"')
        log.register(subject, '{"type": "int", "doc": "again"}')
        assert state.context_of(subject).equivalences
    for subject in subjects:
        log.do(log.registry.delete_subject(subject))
        log.do(log.registry.delete_subject(subject, permanent=True))
        assert not state.context_of(subject).equivalences


def test_guids_and_types(log: Log) -> None:
    made = log.register("s", '"int"')
    assert log.registry.schema_by_guid(made.schema.guid) == made
    assert refusal(lambda: log.registry.schema_by_guid("x")).code == 40403
    assert log.registry.types() == ["JSON", "PROTOBUF", "AVRO"]


def test_a_schema_that_its_format_cannot_read_is_invalid() -> None:
    def parse(_: Form) -> Parsed:
        raise ZeroDivisionError("unexpected")

    invalid = outcome(Validate(Form("AVRO", '"int"')), parse)
    assert invalid == Invalid("it cannot be read: ZeroDivisionError: unexpected")


def decided(
    registry: Registry, request: SchemaRequest, asked: list[type[Work[object]]]
) -> Decision[SchemaVersion]:
    """Register a schema; `asked` is the long work that was needed."""
    done = Done()
    while True:
        try:
            return registry.knowing(done).register("s", request)
        except NotDoneError as error:
            asked.append(type(error.work))
            done.results[error.work] = outcome(error.work, Form.parsed)


@pytest.mark.parametrize("length", [100, 10_000])
def test_after_a_restart_versions_are_parsed_together_as_long_work(log: Log, length: int) -> None:
    log.do(log.registry.change_config("s", {"compatibility": "NONE"}))
    for number in range(1, 60):
        schema = Schema(text=f'"{number:0{length}}"' if number % 7 else '{ "type": "int" }')
        log.write(
            schema_record(SchemaVersion(subject="s", version=number, id=number, schema=schema))
        )
    asked: list[type[Work[object]]] = []
    found = decided(log.registry, schema_request({"schema": '"int"'}), asked)
    assert (found.records, found.reply.version) == ((), 56)
    assert asked == [Equivalences] * (1 if length == 100 else 2)


def test_a_decision_that_needs_long_work_asks_for_it(log: Log) -> None:
    long = schema_request({"schema": record_type({**A, "doc": "d" * 5000})})
    other = schema_request({"schema": record_type({**A, "type": "string", "doc": "d" * 5000})})
    asked: list[type[Work[object]]] = []
    log.do(decided(log.registry, long, asked))
    assert decided(log.registry, long, asked).records == ()
    error = refusal(lambda: decided(log.registry, other, asked))
    assert error.code is ErrorCode.INCOMPATIBLE_SCHEMA
    described = [Describe, Validate]  # as a stored schema, then as a new one
    assert asked == [*described, *described, Check]


def test_a_transitive_check_of_long_versions_is_made_in_pieces(log: Log) -> None:
    log.do(log.registry.change_config("s", {"compatibility": "NONE"}))
    for number in range(1, 7):
        of_type = "string" if number == 1 else "int"
        text = record_type({**A, "type": of_type, "doc": f"{number:0100000}"})
        schema = Schema(text=text)
        log.write(
            schema_record(SchemaVersion(subject="s", version=number, id=number, schema=schema))
        )
    log.do(log.registry.change_config("s", {"compatibility": "BACKWARD_TRANSITIVE"}))
    request = schema_request({"schema": record_type(A)})
    asked: list[type[Work[object]]] = []
    error = refusal(lambda: decided(log.registry, request, asked))
    assert "{oldSchemaVersion: 1}" in error.message
    assert asked == [Equivalences, Equivalences, Check, Check]


def test_a_decision_takes_a_step_for_each_reference(log: Log) -> None:
    log.register("leaf", '"int"')
    leaves = [{"name": f"n{number}", "subject": "leaf", "version": 1} for number in range(8)]
    log.register("hub", '"int"', references=leaves)
    hub = [{"name": "hub", "subject": "hub", "version": 1}]
    for text in (record_type(), record_type(A)):
        log.do(log.registry.change_config("s", {"compatibility": "NONE"}))
        log.register("s", text, references=hub)
    log.do(log.registry.change_config("s", {"compatibility": "FULL_TRANSITIVE"}))
    taken: list[None] = []
    request = schema_request({"schema": record_type(B_DEFAULT), "references": hub})
    registry = log.registry.knowing(Done(), lambda: taken.append(None))
    registry.incompatibilities("s", request)
    assert len(taken) == 3 * 9  # for the new schema and each version: hub, and its leaves
