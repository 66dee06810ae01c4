"""Anybody may write to `_schemas`: odd records are left out, and the registry goes on."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.registry.errors import RegistryError
from odradek.coordinator.registry.records import UnreadableError
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.requests import schema_request
from odradek.coordinator.registry.state import RegistryState

RULE = {"name": "r", "mode": "READ", "type": "CEL", "tags": ["t"], "params": {"a": "b"}}
METADATA = {"tags": {"a": ["t"]}, "properties": {"a": "1"}, "sensitive": ["a"]}
RULE_SET = {"domainRules": [RULE], "enableAt": "x"}
SCHEMA_KEY = {"keytype": "SCHEMA", "subject": "p", "version": 1, "magic": 1}
CONFIG_KEY = {"keytype": "CONFIG", "subject": "s", "magic": 0}
SCHEMA = {
    "subject": "p",
    "version": 1,
    "id": 50,
    "md5": "AAAAAAAAAAAAAAAAAAAAAA==",
    "schemaType": "AVRO",
    "schema": '"int"',
    "references": [{"name": "a", "subject": "s", "version": 1}],
    "metadata": METADATA,
    "ruleSet": RULE_SET,
    "deleted": False,
}
CONFIG = {
    "alias": "p",
    "normalize": True,
    "compatibilityLevel": "FULL",
    "compatibilityPolicy": "STRICT",
    "defaultMetadata": METADATA,
    "overrideRuleSet": RULE_SET,
}
VALID: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (SCHEMA_KEY, SCHEMA),
    (CONFIG_KEY, CONFIG),
    ({"keytype": "CONFIG", "magic": 0}, CONFIG),
    ({"keytype": "MODE", "subject": "s", "magic": 0}, {"subject": "s", "mode": "IMPORT"}),
    ({"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s", "version": 1}),
    ({"keytype": "CLEAR_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s"}),
    ({"keytype": "CONTEXT", "tenant": "default", "context": ".c", "magic": 0}, {"context": ".c"}),
]
SURROGATE = "\ud800"


def a_registry() -> Registry:
    registry = Registry(RegistryState())
    for subject, schema in (("s", '"string"'), ("p", '"long"')):
        made = registry.register(subject, schema_request({"schema": schema}))
        for record in made.records:
            registry.state.replay(record.key, record.value, 1)
    return registry


def answers(registry: Registry) -> object:
    """All that the registry lists, as JSON."""
    names = registry.subjects(deleted=True)
    versions = registry.found_versions(deleted=True)
    said: list[Any] = [names, registry.contexts()]
    for version in versions:
        schema = version.schema
        said += [version.version, version.id, schema.guid, schema.text, schema.schema_type]
        said += [schema.metadata, schema.rule_set]
        said += [(each.name, each.subject, each.version) for each in schema.references]
        registry.referenced_by(version.subject, version.version, deleted=True)
    for name in ("s", "p", None):
        said.append(registry.config(name, default_to_global=True))
        said.append(registry.mode(name, default_to_global=True))
        said.append(registry.aliased(name or ""))
    for name in ("s", "p", "new"):
        try:
            registry.register(name, schema_request({"schema": '"double"'}))
        except RegistryError as error:
            said.append(error.message)
    return msgspec.json.encode(said)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ({}, {}),
        ({"keytype": []}, {}),
        ({"keytype": {}}, {}),
        *(
            (SCHEMA_KEY, {**SCHEMA, **odd})
            for odd in (
                {"references": 7},
                {"references": True},
                {"references": [{"name": "a", "subject": "b", "version": 1 << 40}]},
                {"references": [{"name": SURROGATE, "subject": "b", "version": 1}]},
                {"md5": "é"},
                {"md5": "AAAA"},
                {"metadata": {"tags": 5}},
                {"metadata": {"properties": {"a": 5}}},
                {"metadata": {"sensitive": 5}},
                {"ruleSet": {"domainRules": 5}},
                {"ruleSet": {"domainRules": [5]}},
                {"ruleSet": {"domainRules": [{"name": 5}]}},
                {"ruleSet": {"enableAt": 5}},
                {"schema": SURROGATE},
                {"id": 1 << 31},
                {"id": -1},
            )
        ),
        ({**SCHEMA_KEY, "subject": SURROGATE}, SCHEMA),
        ({**SCHEMA_KEY, "version": 0}, SCHEMA),
        ({**SCHEMA_KEY, "version": 1 << 70}, SCHEMA),
        ({"keytype": "CONTEXT", "context": SURROGATE}, {}),
        *(
            (CONFIG_KEY, odd)
            for odd in (
                {"compatibilityLevel": []},
                {"compatibilityLevel": {}},
                {"alias": 5},
                {"defaultMetadata": 5},
                {"defaultMetadata": {"properties": [1]}},
                {"defaultRuleSet": {"domainRules": 5}},
                {"overrideRuleSet": [1]},
            )
        ),
    ],
)
def test_odd_records_are_unreadable_and_change_nothing(key: object, value: object) -> None:
    registry = a_registry()
    before = answers(registry)
    with pytest.raises(UnreadableError):
        registry.state.replay(json.dumps(key).encode(), json.dumps(value).encode(), 1)
    assert answers(registry) == before


def test_fields_that_are_null_are_none() -> None:
    registry = a_registry()
    value = {"id": 7, "schema": '"int"', "metadata": {"tags": None}, "ruleSet": {"enableAt": None}}
    registry.state.replay(json.dumps(SCHEMA_KEY).encode(), json.dumps(value).encode(), 1)
    stored = registry.version("p", 1).schema
    assert (stored.metadata, stored.rule_set) == ({}, {})


def test_the_last_id_leaves_none() -> None:
    registry = a_registry()
    value = {"id": (1 << 31) - 1, "schema": '"int"'}
    registry.state.replay(json.dumps(SCHEMA_KEY).encode(), json.dumps(value).encode(), 1)
    with pytest.raises(RegistryError, match="no version or id is left"):
        registry.register("new", schema_request({"schema": '"double"'}))


_ODD = st.sampled_from(
    [None, True, 0, 1, -1, 5, 1 << 40, 1 << 70, 1.5, "", "a", "é", SURROGATE, "FULL", "AAAA"]
) | st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def _mutated(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with another one at one place of it."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(_ODD)
    place = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    changed: Any = value.copy()
    if draw(st.integers(0, 9)) == 0:
        del changed[place]
    else:
        changed[place] = draw(_mutated(value[place]))
    return changed


@st.composite
def _records(draw: st.DrawFn) -> tuple[bytes, bytes]:
    key, value = draw(st.sampled_from(VALID))
    if draw(st.booleans()):
        value = draw(_mutated(value))
    else:
        key = draw(_mutated(key))
    is_ascii = draw(st.booleans())
    made = [json.dumps(each, ensure_ascii=is_ascii) for each in (key, value)]
    return made[0].encode("utf-8", "surrogatepass"), made[1].encode("utf-8", "surrogatepass")


@given(st.lists(_records(), min_size=1, max_size=3))
def test_no_record_disables_the_registry(written: list[tuple[bytes, bytes]]) -> None:
    registry = a_registry()
    for key, value in written:
        before = answers(registry)
        try:
            registry.state.replay(key, value, 1)
        except UnreadableError:
            assert answers(registry) == before
        answers(registry)


def test_records_about_many_versions_take_a_step_for_each() -> None:
    registry = a_registry()
    for number in range(2, 11):
        made = registry.register(
            "s", schema_request({"schema": f'{{"type":"string","x":{number}}}'})
        )
        for record in made.records:
            registry.state.replay(record.key, record.value)
    steps: list[int] = []

    def replay(keytype: str) -> int:
        steps.clear()
        key = json.dumps({"keytype": keytype, "subject": "s", "magic": 0}).encode()
        registry.state.replay(key, b'{"version":9}', step=lambda: steps.append(1))
        return len(steps)

    versions = len(registry.versions("s"))
    assert replay("DELETE_SUBJECT") >= versions
    assert replay("CLEAR_SUBJECT") >= versions
    assert [version.version for version in registry.versions("s", deleted=True)] == [10]


def test_an_id_is_that_of_the_version_before_when_its_newest_is_deleted() -> None:
    registry = a_registry()
    for version in (3, 1, 2):
        key = {**SCHEMA_KEY, "version": version}
        registry.state.replay(json.dumps(key).encode(), json.dumps(SCHEMA).encode())
    for version in (3, 1):
        key = {**SCHEMA_KEY, "version": version}
        registry.state.replay(json.dumps(key).encode(), None)
        assert registry.schema(50, "p").version == 2
    assert registry.versions("p") == [registry.version("p", 2)]
