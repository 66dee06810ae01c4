"""Metadata records that are not served yet, kept so that snapshots contain them.

Controllers, client quotas, ACLs, SCRAM users, delegation tokens: the newest record of each is kept
under its identity until it is removed. So a snapshot that odradek writes has all that the log
before it had, and Apache Kafka can use it. Records of unknown types and versions have no known
identity: all of them are kept as they are stored. Kafka: ClusterImage, ClientQuotasImage,
AclsImage, ScramImage, DelegationTokenImage.
"""

from collections.abc import Iterator

from odradek.coordinator.outcome import JournalRecord
from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

QuotaId = tuple[frozenset[tuple[str, str | None]], str]


class KeptRecords:
    """The newest record of each thing, by its identity. Only replay changes them."""

    def __init__(self) -> None:
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.quotas: dict[QuotaId, ClientQuotaRecord] = {}
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.scram_users: dict[tuple[int, str], UserScramCredentialRecord] = {}
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.unread: list[bytes] = []

    def after_configs(self) -> Iterator[JournalRecord]:
        """Iterate over the records that a snapshot has between configs and producer ids."""
        for quota in self.quotas.values():
            yield JournalRecord(quota)

    def after_producer_ids(self) -> Iterator[JournalRecord]:
        """Iterate over the records that a snapshot has after the producer ids."""
        kept = (*self.acls.values(), *self.scram_users.values(), *self.tokens.values())
        for record in kept:
            yield JournalRecord(record)
        for value in self.unread:
            yield JournalRecord(None, unread=value)

    def copy(self) -> "KeptRecords":
        """Return a copy that later changes do not affect."""
        copied = KeptRecords()
        copied.controllers = self.controllers.copy()
        copied.quotas = self.quotas.copy()
        copied.acls = self.acls.copy()
        copied.scram_users = self.scram_users.copy()
        copied.tokens = self.tokens.copy()
        copied.unread = self.unread.copy()
        return copied

    # -- replay ---------------------------------------------------------------------------------

    def replay_controller(self, record: RegisterControllerRecord) -> None:
        """Apply the registration of a controller, which it writes at each start."""
        self.controllers[record.controller_id] = record

    def replay_quota(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota of users or clients."""
        entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
        if record.remove:
            self.quotas.pop((entity, record.key), None)
        else:
            self.quotas[entity, record.key] = record

    def replay_acl(self, record: AccessControlEntryRecord) -> None:
        """Add an ACL."""
        self.acls[record.id] = record

    def replay_acl_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """Remove an ACL."""
        self.acls.pop(record.id, None)

    def replay_scram_user(self, record: UserScramCredentialRecord) -> None:
        """Set a user's credential for one mechanism."""
        self.scram_users[record.mechanism, record.name] = record

    def replay_scram_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove a user's credential for one mechanism."""
        self.scram_users.pop((record.mechanism, record.name), None)

    def replay_token(self, record: DelegationTokenRecord) -> None:
        """Add or renew a delegation token."""
        self.tokens[record.token_id] = record

    def replay_token_removal(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a delegation token."""
        self.tokens.pop(record.token_id, None)
