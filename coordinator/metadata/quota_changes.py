"""Computes the records that change client quotas.

An entity is changed whole or refused, and a refusal does not affect the other entities of the
request. A record is written for each key that changes. As in Kafka, the changes of an entity that
occurs twice are made once, and yet its result is an error.

Kafka: ClientQuotaControlManager; the keys and their types are in QuotaConfig.
"""

import math
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ClientQuotaRecord, EntityData

from .client_quotas import CLIENT_ID, IP, USER, Entity
from .cluster_metadata import ClusterMetadata
from .record_limit import limited_outcome

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_CLIENT_KEYS = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
# The type and the largest value of the keys whose values are whole numbers.
_WHOLE = {
    PRODUCER_BYTE_RATE: ("a LONG", 2**63 - 1),
    CONSUMER_BYTE_RATE: ("a LONG", 2**63 - 1),
    CONNECTION_CREATION_RATE: ("an INT", 2**31 - 1),
}
_WHOLE_TOLERANCE = 1e-6
# How a Java HashMap of these iterates.
_ORDER = {CLIENT_ID: 0, USER: 1, IP: 2}
# An entity with more parts has one of an unknown type.
MAX_PARTS = len(_ORDER)


class QuotaAlteration(Struct, frozen=True, kw_only=True):
    """Changes of one entity: pairs of a key and its value, which is None to remove the quota.

    An entity has few parts: one with more than MAX_PARTS is refused, whatever they are.
    """

    entity: Mapping[str, str | None]
    changes: tuple[tuple[str, float | None], ...]


def alter_client_quotas(
    metadata: ClusterMetadata,
    alterations: Iterable[QuotaAlteration],
    is_address: Callable[[str], bool],
    *,
    validate_only: bool = False,
    step: Step = no_step,
) -> Outcome[dict[Entity, ApiError | None]]:
    """Change quotas. The reply has None for each entity that is changed, and the error of others.

    `is_address` says whether a name is an address or a host name that has one. Raises
    POLICY_VIOLATION when the request is too large for one operation.
    """
    reply: dict[Entity, ApiError | None] = {}
    records: list[JournalRecord] = []
    for alteration in stepping(alterations, step):
        entity = frozenset(alteration.entity.items())
        changes = dict(stepping(iter(alteration.changes), step))
        if entity in reply or len(changes) < len(alteration.changes):
            named = f"ClientQuotaEntity(entries={_java_text(alteration.entity)})"
            reply[entity] = _invalid(f"Ignoring duplicate entity {named}")
            continue
        try:
            keys = _keys_of(alteration.entity, is_address)
            changed = _changed(metadata, entity, keys, stepping(iter(changes.items()), step))
        except ApiError as refusal:
            reply[entity] = refusal.with_traceback(None)
        else:
            reply[entity] = None
            records += [metadata.features.versioned(record) for record in changed]
    return limited_outcome(reply, records, validate_only)


def _changed(
    metadata: ClusterMetadata,
    entity: Entity,
    keys: tuple[str, ...],
    changes: Iterable[tuple[str, float | None]],
) -> list[ClientQuotaRecord]:
    """The records of the changes that make a difference. Raises INVALID_REQUEST."""
    current = metadata.quotas.values_of(entity)
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in sorted_entity(entity)]
    records = []
    for key, value in changes:
        if value is not None:
            _check_value(key, value, keys)
        if value != current.get(key):
            is_removed = value is None
            records.append(
                ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=is_removed)
            )
    return records


def sorted_entity(entity: Iterable[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """The parts of an entity in the order in which Kafka lists them."""
    return sorted(entity, key=lambda part: _ORDER.get(part[0], len(_ORDER)))


def _keys_of(
    entity: Mapping[str, str | None], is_address: Callable[[str], bool]
) -> tuple[str, ...]:
    """The quota keys that an entity may have. Raises INVALID_REQUEST for a bad entity."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in entity:
        return _CLIENT_KEYS
    if len(entity) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
    address = entity[IP]
    if address is not None and not is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return (CONNECTION_CREATION_RATE,)


def _check_value(key: str, value: float, keys: tuple[str, ...]) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if not math.isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if key not in _WHOLE:
        return
    type_name, largest = _WHOLE[key]
    if value > float(largest):
        raise _invalid(f"Proposed value for {key} is too large for {type_name}.")
    if value % 1.0 > _WHOLE_TOLERANCE:
        raise _invalid(f"{key} cannot be a fractional value.")


def _java_text(entity: Mapping[str, str | None]) -> str:
    parts = (
        f"{kind}={'null' if name is None else name}" for kind, name in sorted_entity(entity.items())
    )
    return f"{{{', '.join(parts)}}}"


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
