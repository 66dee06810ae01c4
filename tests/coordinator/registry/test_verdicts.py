"""Texts and verdicts of all pairs of schema_families, compared with those of Confluent's registry.

tests/golden/registry/verdicts.json was made with Confluent's own classes, compiled from its public
source (schema-registry, commit 794611bd86d; Avro 1.12.1, everit-json-schema 1.14.6, json-sKema
0.32.0, Wire 6.4.5): AvroSchema, JsonSchema and ProtobufSchema were asked for `canonicalString`,
`normalize().canonicalString`, and `isBackwardCompatible`. A pair that is not in the file is
compatible. `%s` stands for the names of the two schemas. A schema whose texts are null is refused.
Schemas with references have a third text, that of the format `resolved`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.registry import formats
from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.formats import Parsed

from .schema_families import FAMILIES, REFERRING

GOLDEN = Path(__file__).parents[2] / "golden" / "registry" / "verdicts.json"
CASES = [(kind, family) for kind, families in FAMILIES.items() for family in families]


@pytest.fixture(scope="module")
def golden() -> Any:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_texts_are_confluents(kind: str, family: str, golden: Any) -> None:
    for text in FAMILIES[kind][family]:
        expected = golden["texts"][kind][text]
        if expected is None:
            with pytest.raises(InvalidSchemaError):
                formats.parse(kind, text, {}, is_new=True)
            continue
        parsed = formats.parse(kind, text, {}, is_new=True)
        assert [parsed.canonical(), parsed.normalized().canonical()] == expected


def test_texts_of_schemas_with_references_are_confluents(golden: Any) -> None:
    for (text, references), kept in zip(REFERRING, golden["referring"], strict=True):
        assert [text, references] == [kept["text"], kept["references"]]
        if kept["texts"] is None:
            with pytest.raises(InvalidSchemaError):
                formats.parse("AVRO", text, references, is_new=True)
            continue
        parsed = formats.parse("AVRO", text, references, is_new=True)
        resolved = formats.formatted("AVRO", parsed, "resolved")
        found = [parsed.canonical(), parsed.normalized().canonical(), resolved]
        assert found == kept["texts"], text


@pytest.mark.parametrize(("kind", "family"), [case for case in CASES if case[1] != "wrong"])
def test_verdicts_are_confluents(kind: str, family: str, golden: Any) -> None:
    parsed = {text: _parsed(kind, text) for text in FAMILIES[kind][family]}
    for new, reader in parsed.items():
        for old, writer in parsed.items():
            expected = golden["reasons"][kind].get(new, {}).get(old, [])
            reasons = formats.compatibility(kind, reader, writer)
            assert sorted(reasons) == sorted(expected), (old, new)


def _parsed(kind: str, text: str) -> Parsed:
    return formats.parse(kind, text, {}, is_new=True)
