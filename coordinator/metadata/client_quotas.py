"""Quotas of users, clients and addresses, as the metadata log has them.

Kafka: ClientQuotasImage.
"""

from collections.abc import Iterable

from odradek.protocol.records.cluster_metadata import ClientQuotaRecord

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = frozenset[tuple[str, str | None]]
"""Pairs of entity type and name; the name None stands for the default of the type."""


class ClientQuotas:
    """The newest value of each entity and quota key. Only replay changes them."""

    def __init__(self) -> None:
        self.by_entity: dict[tuple[Entity, str], ClientQuotaRecord] = {}

    def records(self) -> Iterable[ClientQuotaRecord]:
        """The records of a snapshot."""
        return tuple(self.by_entity.values())

    def values_of(self, entity: Entity) -> dict[str, float]:
        """The quotas of one entity, by key."""
        return {key: record.value for (of, key), record in self.by_entity.items() if of == entity}

    def by_key(self, key: str) -> dict[Entity, float]:
        """The value of one quota key, by entity."""
        return {of: record.value for (of, name), record in self.by_entity.items() if name == key}

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota."""
        entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
        if record.remove:
            self.by_entity.pop((entity, record.key), None)
        else:
            self.by_entity[entity, record.key] = record
