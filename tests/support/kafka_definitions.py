"""Kafka's own definitions of its messages: the JSON files inside its jars."""

import json
import re
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.protocol.schema import VersionRange

from .kafka_jars import (
    BROKER_VERSION,
    clients_39_jar,
    kafka_jars,
    why_no_jars,
)

# What lies in two jars is taken from the first.
_JARS = (
    "kafka-clients",
    "kafka-metadata",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-share-coordinator",
    "kafka-raft",
)


class FieldDefinition(NamedTuple):
    """One field of a definition, its words read but not yet judged."""

    name: str
    type: str
    versions: VersionRange
    nullable: VersionRange
    tagged: VersionRange
    tag: int | None
    is_ignorable: bool
    default: object  # None: none given
    fields: "tuple[FieldDefinition, ...] | None"  # of a struct

    @property
    def item_type(self) -> str:
        return self.type.removeprefix("[]")


class Definition(NamedTuple):
    """One message. `jar` is the module that defines it, `type` what Kafka takes it for."""

    name: str
    jar: str
    type: str
    key: int | None
    versions: VersionRange
    flexible: VersionRange
    is_newest_unstable: bool
    fields: tuple[FieldDefinition, ...]


@cache
def definitions() -> dict[str, Definition]:
    """All messages that have versions, by name. Skips the test where there are no jars."""
    folder = kafka_jars()
    if folder is None:
        pytest.skip(why_no_jars())
    return _defined_in(folder / f"{name}-{BROKER_VERSION}.jar" for name in _JARS)


@cache
def definitions_of_39() -> dict[str, Definition]:
    """The clients' messages as Kafka 3.9 had them, the last with the versions of 0.8 to 0.10."""
    clients = clients_39_jar()
    if clients is None:
        pytest.skip(why_no_jars())
    return _defined_in([clients])


def _defined_in(jars: Iterable[Path]) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for jar in jars:
        for raw in _read(jar):
            if raw["validVersions"] != "none":
                made = _definition(raw, jar.name.rpartition("-")[0])
                found.setdefault(made.name, made)
    return found


def _read(jar: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(jar) as archive:
        texts = [
            archive.read(name).decode()
            for name in archive.namelist()
            if re.fullmatch(r"common/\w+/\w+\.json", name)
        ]
    return [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]


def _definition(raw: dict[str, Any], jar: str) -> Definition:
    structs = {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", [])}
    for field in raw["fields"]:
        _collect(field, structs)
    return Definition(
        name=raw["name"],
        jar=jar,
        type=raw["type"],
        key=raw.get("apiKey"),
        versions=VersionRange.parse(raw["validVersions"]),
        flexible=VersionRange.parse(raw["flexibleVersions"]),
        is_newest_unstable=raw.get("latestVersionUnstable", False) is True,
        fields=tuple(_field(field, structs) for field in raw["fields"]),
    )


def _collect(field: dict[str, Any], structs: dict[str, list[dict[str, Any]]]) -> None:
    if "fields" in field:
        structs[field["type"].removeprefix("[]")] = field["fields"]
        for inner in field["fields"]:
            _collect(inner, structs)


def _field(raw: dict[str, Any], structs: dict[str, list[dict[str, Any]]]) -> FieldDefinition:
    tagged = VersionRange.parse(raw.get("taggedVersions", "none"))
    inner = structs.get(raw["type"].removeprefix("[]"))
    return FieldDefinition(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", raw["name"]).lower(),
        type=raw["type"],
        versions=VersionRange.parse(raw["versions"]) if "versions" in raw else tagged,
        nullable=VersionRange.parse(raw.get("nullableVersions", "none")),
        tagged=tagged,
        tag=raw.get("tag"),
        is_ignorable=raw.get("ignorable") in (True, "true"),
        default=raw.get("default"),
        fields=tuple(_field(field, structs) for field in inner) if inner is not None else None,
    )
