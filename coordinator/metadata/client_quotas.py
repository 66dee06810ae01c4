"""Quotas of users, clients and addresses, as the metadata log has them.

Kafka: ClientQuotasImage.
"""

from collections.abc import Iterable

from odradek.protocol.records.cluster_metadata import ClientQuotaRecord

Entity = frozenset[tuple[str, str | None]]
"""Pairs of entity type and name; the name None stands for the default of the type."""


class ClientQuotas:
    """The newest value of each entity and quota key. Only replay changes them."""

    def __init__(self) -> None:
        self.by_entity: dict[tuple[Entity, str], ClientQuotaRecord] = {}

    def records(self) -> Iterable[ClientQuotaRecord]:
        """The records of a snapshot."""
        return tuple(self.by_entity.values())

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota."""
        entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
        if record.remove:
            self.by_entity.pop((entity, record.key), None)
        else:
            self.by_entity[entity, record.key] = record
