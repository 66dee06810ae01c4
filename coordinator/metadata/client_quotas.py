"""Quotas of users, clients and addresses, as the metadata log has them.

Kafka: ClientQuotasImage.
"""

from collections.abc import Iterable

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.records.cluster_metadata import ClientQuotaRecord

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = frozenset[tuple[str, str | None]]
"""Pairs of entity type and name; the name None stands for the default of the type."""


class ClientQuotas:
    """The newest value of each entity and quota key. Only replay changes them."""

    def __init__(self) -> None:
        self.by_entity: dict[Entity, dict[str, ClientQuotaRecord]] = {}

    def records(self) -> Iterable[ClientQuotaRecord]:
        """The records of a snapshot."""
        return [record for of_entity in self.by_entity.values() for record in of_entity.values()]

    def values_of(self, entity: Entity) -> dict[str, float]:
        """The quotas of one entity, by key."""
        return {key: record.value for key, record in self.by_entity.get(entity, {}).items()}

    def by_key(self, key: str, step: Step = no_step) -> dict[Entity, float]:
        """The value of one quota key, by entity."""
        return {
            entity: of_entity[key].value
            for entity, of_entity in stepping(self.by_entity.items(), step)
            if key in of_entity
        }

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota."""
        entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
        if not record.remove:
            self.by_entity.setdefault(entity, {})[record.key] = record
            return
        of_entity = self.by_entity.get(entity, {})
        of_entity.pop(record.key, None)
        if not of_entity:
            self.by_entity.pop(entity, None)
