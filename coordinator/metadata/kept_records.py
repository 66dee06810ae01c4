"""What the metadata log says and nothing here serves yet, kept for Apache Kafka and later work.

Controllers, client quotas, ACLs, SCRAM users, delegation tokens: of each the newest record, under
what identifies it, until it is removed. So a snapshot of ours says all that the log before it said.
A record of a type or version that we do not know has no identity that we could know of: all of them
are kept, as they came. Kafka: ClusterImage, ClientQuotasImage, AclsImage, ScramImage,
DelegationTokenImage.
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
    """The newest record of each thing, assigned by replay."""

    def __init__(self) -> None:
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.quotas: dict[QuotaId, ClientQuotaRecord] = {}
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.scram_users: dict[tuple[int, str], UserScramCredentialRecord] = {}
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.unread: list[bytes] = []

    def behind_the_configs(self) -> Iterator[JournalRecord]:
        """What a snapshot holds between the configs and the producer ids."""
        for quota in self.quotas.values():
            yield JournalRecord(quota)

    def at_the_end(self) -> Iterator[JournalRecord]:
        """What a snapshot holds behind the producer ids."""
        for one in (self.acls, self.scram_users, self.tokens):
            for record in one.values():
                yield JournalRecord(record)
        for value in self.unread:
            yield JournalRecord(None, unread=value)

    def copy(self) -> "KeptRecords":
        """What is kept now; later changes do not reach it."""
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
        """A controller registers at each of its starts."""
        self.controllers[record.controller_id] = record

    def replay_quota(self, record: ClientQuotaRecord) -> None:
        """A limit of some users or clients is set, or taken back."""
        entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
        if record.remove:
            self.quotas.pop((entity, record.key), None)
        else:
            self.quotas[entity, record.key] = record

    def replay_acl(self, record: AccessControlEntryRecord) -> None:
        """An ACL is made."""
        self.acls[record.id] = record

    def replay_acl_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """An ACL is gone."""
        self.acls.pop(record.id, None)

    def replay_scram_user(self, record: UserScramCredentialRecord) -> None:
        """A user's password is set, for one mechanism."""
        self.scram_users[record.mechanism, record.name] = record

    def replay_scram_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """A user's password is gone."""
        self.scram_users.pop((record.mechanism, record.name), None)

    def replay_token(self, record: DelegationTokenRecord) -> None:
        """A delegation token is made or renewed."""
        self.tokens[record.token_id] = record

    def replay_token_removal(self, record: RemoveDelegationTokenRecord) -> None:
        """A delegation token is gone."""
        self.tokens.pop(record.token_id, None)
