"""Decisions that change config overrides of topics, brokers, groups and client metrics.

A resource is changed whole or not at all, and the refusal of one does not touch the others of the
request. A record is written for each key that changes; a broker's keys get one even if they stay
the same, for that makes a broker look at the files again that some of them name (KAFKA-14136).
With eligible leader replicas (KIP-966) min.insync.replicas is the cluster's affair alone, and a
change of it takes back who was eligible. Kafka: ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from odradek.config.key import ConfigType
from odradek.coordinator.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ClearElrRecord, ConfigRecord

from .configs import ConfigResourceType
from .features import ELR_VERSION
from .min_insync_replicas import MIN_INSYNC_REPLICAS
from .topic_creation import MAX_CONFIG_VALUE_LENGTH, bounded

if TYPE_CHECKING:
    from odradek.config.key import Key

    from .cluster_metadata import ClusterMetadata

# As in Kafka, the lists of other resources are only set whole.
WITH_LISTS = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)

Overrides = Mapping[str, str]


class AlterOperation(IntEnum):
    """What happens to a key's override. On the wire: never renumber."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """What has overrides: `kind` is a ConfigResourceType, or a number that nobody knows."""

    kind: int
    name: str


class ConfigChange(NamedTuple):
    """A wish for one key: `operation` is an AlterOperation, or a number that nobody knows."""

    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """Wishes for one resource. `replaces`: what they do not name is taken back."""

    resource: ConfigResource
    changes: Sequence[ConfigChange]
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRules:
    """What is legal. `keys`: of a resource type, those that are known.

    `check` gets a resource and all overrides that it is to have, and raises ApiError.
    """

    keys: Callable[[int], Mapping[str, Key]]
    check: Callable[[ConfigResource, Overrides], object]


def alter_configs(
    metadata: ClusterMetadata,
    alterations: Iterable[Alteration],
    rules: ConfigRules,
    *,
    validate_only: bool = False,
) -> Outcome[dict[ConfigResource, ApiError | None]]:
    """Change each resource, or say why not. No resource may occur twice.

    Raises POLICY_VIOLATION when the whole is too large for one operation.
    """
    reply: dict[ConfigResource, ApiError | None] = {}
    records: list[ConfigRecord] = []
    for alteration in alterations:
        try:
            records += _decide(metadata, alteration, rules)
        except ApiError as refusal:
            reply[alteration.resource] = refusal
        else:
            reply[alteration.resource] = None
    journaled = [metadata.features.versioned(record) for record in records]
    journaled += _eligible_leaders_taken_back(metadata, records)
    return bounded(reply, journaled, validate_only)


def overrides_after(
    current: Overrides, alteration: Alteration, rules: ConfigRules
) -> dict[str, str]:
    """All overrides of a resource after an alteration. Raises INVALID_CONFIG, INVALID_REQUEST."""
    after = {} if alteration.replaces else dict(current)
    for name, value in _new_values(current, alteration, rules).items():
        after.pop(name, None)
        if value is not None:
            after[name] = value
    return after


def _decide(
    metadata: ClusterMetadata, alteration: Alteration, rules: ConfigRules
) -> list[ConfigRecord]:
    resource = alteration.resource
    kind = ConfigResourceType(resource.kind)
    current = metadata.configs.of(kind, resource.name)
    records = [
        _record(resource, name, value)
        for name, value in _new_values(current, alteration, rules).items()
        if value != current.get(name) or kind is ConfigResourceType.BROKER
    ]
    if alteration.replaces:
        named = {change.name for change in alteration.changes}
        records += [_record(resource, name, None) for name in current if name not in named]
    for record in records:
        _check_record(metadata, record)
    after = overrides_after(current, alteration, rules)
    # What is there from another version of Kafka is in nobody's way, and nobody judges it.
    known = {record.name for record in records} | rules.keys(kind).keys()
    rules.check(resource, {name: value for name, value in after.items() if name in known})
    _check_existence(metadata, resource)
    return records


def _new_values(
    current: Overrides, alteration: Alteration, rules: ConfigRules
) -> dict[str, str | None]:
    """The overrides that are named, as they are to be; None: taken back."""
    kind = alteration.resource.kind
    keys = rules.keys(kind) if kind in WITH_LISTS else {}
    return {
        change.name: _new_value(current.get(change.name), change, keys.get(change.name))
        for change in alteration.changes
    }


def _new_value(current: str | None, change: ConfigChange, key: Key | None) -> str | None:
    match change.operation:
        case AlterOperation.SET:
            return change.value
        case AlterOperation.DELETE:
            return None
        case AlterOperation.APPEND | AlterOperation.SUBTRACT:
            return _with_items(current, change, key)
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")


def _with_items(current: str | None, change: ConfigChange, key: Key | None) -> str:
    """Items put to the end of a list, or taken out. An override that is not there is the default.

    The default is Kafka's: not the broker's, which the resource would otherwise inherit.
    """
    if key is None or key.type is not ConfigType.LIST:
        operation = AlterOperation(change.operation).name
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation} to key {change.name} because its type is not LIST.",
        )
    text = key.render(key.default) if current is None else current
    items = [item for item in (text or "").split(",") if item]
    for item in java_split(change.value or ""):
        if change.operation == AlterOperation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)


def java_split(text: str) -> list[str]:
    """As String.split(",") cuts: empty texts at the end do not count, but one alone does."""
    items = text.split(",")
    while len(items) > 1 and not items[-1]:
        items.pop()
    return items if items != [""] or not text else []


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=resource.kind, resource_name=resource.name, name=name, value=value
    )


# -- what a controller refuses ---------------------------------------------------------------------


def _check_record(metadata: ClusterMetadata, record: ConfigRecord) -> None:
    of_brokers = record.resource_type == ConfigResourceType.BROKER
    if of_brokers and record.name == MIN_INSYNC_REPLICAS and _has_eligible_leaders(metadata):
        if record.resource_name:
            raise _invalid(f"Broker-level {record.name} cannot be altered while ELR is enabled.")
        if record.value is None:
            raise _invalid(f"Cluster-level {record.name} cannot be removed while ELR is enabled.")
    if record.value is not None and len(record.value) > MAX_CONFIG_VALUE_LENGTH:
        raise _invalid(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_CONFIG_VALUE_LENGTH} bytes."
        )


def _check_existence(metadata: ClusterMetadata, resource: ConfigResource) -> None:
    if resource.kind == ConfigResourceType.TOPIC and resource.name not in metadata.topics:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
        )
    is_broker = resource.kind == ConfigResourceType.BROKER and resource.name
    if is_broker and int(resource.name) not in metadata.brokers:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {resource.name} found."
        )


def _has_eligible_leaders(metadata: ClusterMetadata) -> bool:
    return metadata.features.level(ELR_VERSION) > 0


def _eligible_leaders_taken_back(
    metadata: ClusterMetadata, records: Iterable[ConfigRecord]
) -> list[JournalRecord]:
    if not _has_eligible_leaders(metadata):
        return []
    of_topic = ConfigResourceType.TOPIC
    return [
        metadata.features.versioned(
            ClearElrRecord(
                topic_name=record.resource_name if record.resource_type == of_topic else ""
            )
        )
        for record in records
        if record.name == MIN_INSYNC_REPLICAS
    ]


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)
