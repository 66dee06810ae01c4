"""Feature levels: which metadata records and protocols the cluster may use.

A level is finalised by a FeatureLevelRecord (`kraft.version`, which belongs to the quorum, by a
control record). odradek advertises and finalises only the levels that it serves: the table
`SERVED`. A directory that Apache Kafka wrote may have higher levels; those records stay in its log,
and clients get the lower of both levels.

`metadata.version` also decides in which version a metadata record is written. Kafka:
MetadataVersion.
"""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.protocol.declaration import fields_of
from odradek.protocol.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from odradek.protocol.schema import Message, replace

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"

# The first metadata.versions with log directories (3.7-IV2) and cordoned ones (4.3-IV0).
FIRST_VERSION_WITH_DIRECTORIES = 17
FIRST_VERSION_WITH_CORDONED = 30
FIRST_VERSION_WITH_CONTROLLER_REMOVAL = 33  # 4.4-IV2
# The first share.version with dead-letter queues.
FIRST_SHARE_VERSION_WITH_QUEUES = 2


class ServedFeature(Struct, frozen=True, kw_only=True):
    """The levels of a feature that odradek serves.

    `at_format`: pairs of a metadata.version and the level that a directory is formatted with from
    there on, highest first.
    """

    lowest: int
    highest: int
    at_format: tuple[tuple[int, int], ...] = ()

    def level_at(self, metadata_version: int) -> int:
        """The level of a directory that is formatted with a metadata.version."""
        levels = (level for since, level in self.at_format if metadata_version >= since)
        return next(levels, 0)


SERVED = {
    # 7 is 3.3-IV3, the first level for production KRaft clusters; 30 is 4.3-IV0, 33 is 4.4-IV2.
    METADATA_VERSION: ServedFeature(lowest=7, highest=33),
    # Written as a control record, see kraft_log.py.
    KRAFT_VERSION: ServedFeature(lowest=0, highest=1),
    # 1: the eligible leader replicas of a partition without a leader are recorded (KIP-966).
    ELR_VERSION: ServedFeature(lowest=0, highest=1, at_format=((26, 1),)),
    # 1: the consumer protocol (KIP-848).
    GROUP_VERSION: ServedFeature(lowest=0, highest=1, at_format=((22, 1),)),
    # 1: share groups (KIP-932); 2: their dead-letter queues (KIP-1191).
    SHARE_VERSION: ServedFeature(lowest=0, highest=2, at_format=((31, 2), (28, 1))),
    # 1: streams groups (KIP-1071).
    STREAMS_VERSION: ServedFeature(lowest=0, highest=1, at_format=((29, 1),)),
    # 1: more fields in `__transaction_state`; 2: an epoch for each transaction (KIP-890).
    TRANSACTION_VERSION: ServedFeature(lowest=0, highest=2, at_format=((24, 2),)),
}
NEWEST_METADATA_VERSION = SERVED[METADATA_VERSION].highest

# By message: pairs of the first metadata.version and the record version written from it on,
# highest first. Version 0 is written before the last of them.
_RECORD_VERSIONS: dict[type[Message], tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (7, 1)),
    PartitionRecord: ((23, 2), (17, 1)),
    PartitionChangeRecord: ((23, 2), (17, 1)),
    # Kafka writes the lowest version that has the fields in use. A decision that sets fields other
    # than `fenced` chooses the version itself.
    BrokerRegistrationChangeRecord: (),
}


def levels_at_format(metadata_version: int = NEWEST_METADATA_VERSION) -> dict[str, int]:
    """Return the levels of a directory that is formatted with a metadata.version.

    Without `kraft.version`. Kafka: Feature.defaultLevel.
    """
    others = (METADATA_VERSION, KRAFT_VERSION)
    levels = {
        name: feature.level_at(metadata_version)
        for name, feature in SERVED.items()
        if name not in others
    }
    return {METADATA_VERSION: metadata_version, **levels}


def bootstrap_records(levels: Mapping[str, int] | None = None) -> tuple[JournalRecord, ...]:
    """Return the records of the levels of a new metadata log; a level of 0 has none."""
    return tuple(
        JournalRecord(FeatureLevelRecord(name=name, feature_level=level))
        for name, level in (levels or levels_at_format()).items()
        if level
    )


@cache
def _absent_fields(message: type[Message], version: int) -> dict[str, object]:
    """Return the fields that a version does not have, with their defaults."""
    return {
        field.name: field.default for field in fields_of(message) if version not in field.versions
    }


class Features:
    """The finalised levels. Only replay changes them."""

    def __init__(self) -> None:
        self.in_log: dict[str, int] = {}

    def replay(self, record: FeatureLevelRecord) -> None:
        """Finalise a level; 0 removes the feature.

        As in Kafka, kraft.version is skipped: it was once written by mistake (KAFKA-18979).
        """
        if record.name == KRAFT_VERSION:
            return
        if record.feature_level:
            self.in_log[record.name] = record.feature_level
        else:
            self.in_log.pop(record.name, None)

    @property
    def finalized(self) -> dict[str, int]:
        """The levels for clients: those in the log, at most the highest served, without zeros."""
        levels = {
            name: min(level, SERVED[name].highest)
            for name, level in self.in_log.items()
            if name in SERVED
        }
        return {name: level for name, level in levels.items() if level}

    @property
    def supported(self) -> dict[str, tuple[int, int]]:
        """The lowest and highest level of each served feature."""
        return {name: (feature.lowest, feature.highest) for name, feature in SERVED.items()}

    def level(self, name: str) -> int:
        """Return the level in the log, served or not; 0 if there is none."""
        return self.metadata_version if name == METADATA_VERSION else self.in_log.get(name, 0)

    @property
    def metadata_version(self) -> int:
        """The finalised metadata.version; that of a new directory if there is none yet."""
        return self.in_log.get(METADATA_VERSION, NEWEST_METADATA_VERSION)

    def versioned(self, message: Message) -> JournalRecord:
        """Make a record of a message, in the version that this metadata.version writes.

        Fields that an older version does not have are left out, as in Kafka.
        """
        level = self.metadata_version
        versions = _RECORD_VERSIONS.get(type(message), ())
        version = next((version for since, version in versions if level >= since), 0)
        absent = _absent_fields(type(message), version)
        kept = replace(message, **absent) if absent else message
        return JournalRecord(kept, version)
