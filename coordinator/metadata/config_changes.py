"""Computes the records that change config overrides: of topics, brokers, groups, client metrics.

A resource is changed whole or refused, and a refusal does not affect the other resources of the
request. A record is written for each key that changes. For a broker's keys one is written even if
the value stays the same, because that makes a broker reload the files that some keys name
(KAFKA-14136). With eligible leader replicas (KIP-966) min.insync.replicas can only be set for the
cluster or a topic, and a change of it clears the eligible leader replicas. Log directories are
cordoned from metadata.version 4.3-IV0 on. Kafka: ConfigurationControlManager.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from odradek.config.java_text import split_list
from odradek.config.key import ConfigType, Key
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ClearElrRecord, ConfigRecord

from .cluster_metadata import ClusterMetadata
from .configs import ConfigResourceType
from .features import ELR_VERSION, FIRST_VERSION_WITH_CORDONED
from .min_insync_replicas import MIN_INSYNC_REPLICAS
from .record_limit import limited_outcome
from .topic_creation import MAX_CONFIG_VALUE_LENGTH

CORDONED_LOG_DIRS = "cordoned.log.dirs"
# APPEND and SUBTRACT work on lists of these only, as in Kafka.
WITH_LISTS = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)

Overrides = Mapping[str, str]


class AlterOperation(IntEnum):
    """How a key's override is changed. On the wire: never renumber."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A resource that has overrides: `kind` is a ConfigResourceType, or an unknown number."""

    kind: int
    name: str


class ConfigChange(NamedTuple):
    """A change of one key: `operation` is an AlterOperation, or an unknown number."""

    name: str
    operation: int
    value: str | None


class Alteration(Struct, frozen=True, kw_only=True):
    """Changes of one resource. If `replaces`, all overrides that they do not name are removed."""

    resource: ConfigResource
    changes: list[ConfigChange]
    replaces: bool = False


def free_alterations(step: Step, alterations: list[Alteration]) -> None:
    """Empty the list, and the changes in it, see `free`."""
    for alteration in stepping(alterations, step):
        free(step, alteration.changes)
    free(step, alterations)


class ConfigRules(Struct, frozen=True, kw_only=True):
    """The rules for overrides. `keys` returns the known keys of a resource type.

    `check` gets a resource and all its overrides after a change, and raises ApiError.
    """

    keys: Callable[[int], Mapping[str, Key]]
    check: Callable[[ConfigResource, Overrides], object]


def alter_configs(
    metadata: ClusterMetadata,
    alterations: Iterable[Alteration],
    rules: ConfigRules,
    *,
    validate_only: bool = False,
    step: Step = no_step,
) -> Outcome[dict[ConfigResource, ApiError | None]]:
    """Change resources. The reply has None for each that is changed, and the error of each other.

    A resource may occur only once in `alterations`. Raises POLICY_VIOLATION when the request is
    too large for one operation.
    """
    reply: dict[ConfigResource, ApiError | None] = {}
    records: list[ConfigRecord] = []
    for alteration in stepping(alterations, step):
        try:
            records += _decide(metadata, alteration, rules, step)
        except ApiError as refusal:
            reply[alteration.resource] = refusal.with_traceback(None)
        else:
            reply[alteration.resource] = None
    journaled = [metadata.features.versioned(record) for record in stepping(records, step)]
    journaled += _elr_removals(metadata, stepping(records, step))
    try:
        return limited_outcome(reply, journaled, validate_only)
    except ApiError:
        free(step, reply)
        raise
    finally:
        free(step, journaled, records)


def overrides_after(
    current: Overrides, alteration: Alteration, rules: ConfigRules, step: Step = no_step
) -> dict[str, str]:
    """Return a resource's overrides after an alteration.

    Raises INVALID_CONFIG, INVALID_REQUEST.
    """
    values = _new_values(current, alteration, rules, step)
    after = _after(current, alteration, values, step)
    free(step, values)
    return after


def _after(
    current: Overrides, alteration: Alteration, values: Mapping[str, str | None], step: Step
) -> dict[str, str]:
    after = {} if alteration.replaces else dict(current)
    for name, value in stepping(iter(values.items()), step):
        after.pop(name, None)
        if value is not None:
            after[name] = value
    return after


def _decide(
    metadata: ClusterMetadata, alteration: Alteration, rules: ConfigRules, step: Step
) -> list[ConfigRecord]:
    resource = alteration.resource
    kind = ConfigResourceType(resource.kind)
    current = metadata.configs.of(kind, resource.name)
    values = _new_values(current, alteration, rules, step)
    records: list[ConfigRecord] = []
    try:
        records += (
            _record(resource, name, value)
            for name, value in stepping(iter(values.items()), step)
            if value != current.get(name) or kind is ConfigResourceType.BROKER
        )
        if alteration.replaces:
            records += (
                _record(resource, name, None)
                for name in stepping(current, step)
                if name not in values
            )
        for record in stepping(records, step):
            _check_record(metadata, record)
        _check_values(resource, _after(current, alteration, values, step), records, rules, step)
        _check_existence(metadata, resource)
    except ApiError:
        free(step, records)
        raise
    finally:
        free(step, values)
    return records


def _check_values(
    resource: ConfigResource,
    after: dict[str, str],
    records: list[ConfigRecord],
    rules: ConfigRules,
    step: Step,
) -> None:
    """Check the overrides `after` the change by `records`. Empties `after`.

    Unknown overrides that are not part of the change, from another version of Kafka, stay
    unchecked.
    """
    keys = rules.keys(resource.kind)
    changed = dict.fromkeys(record.name for record in stepping(records, step))
    checked = {
        name: value
        for name, value in stepping(iter(after.items()), step)
        if name in changed or name in keys
    }
    try:
        rules.check(resource, checked)
    finally:
        free(step, after, changed, checked)


def _new_values(
    current: Overrides, alteration: Alteration, rules: ConfigRules, step: Step
) -> dict[str, str | None]:
    """Return the new values of the overrides that the alteration names; None removes one."""
    kind = alteration.resource.kind
    keys = rules.keys(kind) if kind in WITH_LISTS else {}
    return {
        change.name: _new_value(current.get(change.name), change, keys.get(change.name))
        for change in stepping(alteration.changes, step)
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
    """Append items to the override of a list, or remove them.

    If the key has no override, the items are added to (or removed from) Kafka's default of the key,
    as in Kafka. The broker's value, which the resource inherits, is not used.
    """
    if key is None or key.type is not ConfigType.LIST:
        operation = AlterOperation(change.operation).name
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation} to key {change.name} because its type is not LIST.",
        )
    text = key.render(key.default) if current is None else current
    items = [item for item in (text or "").split(",") if item]
    named = split_list(change.value or "")
    if change.operation == AlterOperation.SUBTRACT:
        return ",".join(_subtracted(items, named))
    known = set(items)
    return ",".join([*items, *(item for item in dict.fromkeys(named) if item not in known)])


def _subtracted(items: Iterable[str], named: Iterable[str]) -> Iterator[str]:
    """Yield the items without the named ones: each name removes the first that is left."""
    left = Counter(named)
    for item in items:
        if left[item]:
            left[item] -= 1
        else:
            yield item


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=resource.kind, resource_name=resource.name, name=name, value=value
    )


# -- the controller's checks -----------------------------------------------------------------------


def _check_record(metadata: ClusterMetadata, record: ConfigRecord) -> None:
    of_brokers = record.resource_type == ConfigResourceType.BROKER
    if of_brokers and record.name == MIN_INSYNC_REPLICAS and _has_eligible_leaders(metadata):
        if record.resource_name:
            raise _invalid(f"Broker-level {record.name} cannot be altered while ELR is enabled.")
        if record.value is None:
            raise _invalid(f"Cluster-level {record.name} cannot be removed while ELR is enabled.")
    is_too_old = metadata.features.metadata_version < FIRST_VERSION_WITH_CORDONED
    if of_brokers and record.name == CORDONED_LOG_DIRS and is_too_old:
        raise _invalid(
            f"The {record.name} configuration value cannot be set because it requires "
            "metadata.version >= 4.3-IV0"
        )
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


def _elr_removals(
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
