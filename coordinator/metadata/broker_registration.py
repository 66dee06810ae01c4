"""A broker's registration in the metadata log.

A broker registers at every start, with a new incarnation id. The offset of its RegisterBrokerRecord
is its broker epoch. The file `.kafka_cleanshutdown` repeats the epoch, so that Apache Kafka finds
at its next start that the shutdown was clean. Kafka: ClusterControlManager.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from odradek.protocol.records.cluster_metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)

from .features import SERVED

SUPPORTED_FEATURES = tuple(
    (name, feature.lowest, feature.highest) for name, feature in SERVED.items()
)

# Reserved directory ids (Kafka: DirectoryId). In the log: never renumber.
MIGRATING_DIRECTORY = bytes(16)
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
LOST_DIRECTORY = bytes(15) + b"\x02"


class Endpoint(NamedTuple):
    """An advertised listener; `security_protocol` is Kafka's number (0: PLAINTEXT)."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """A registered broker. `features`: name, lowest and highest supported level."""

    broker_id: int
    incarnation_id: bytes
    broker_epoch: int
    endpoints: tuple[Endpoint, ...]
    log_dirs: tuple[bytes, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    features: tuple[tuple[str, int, int], ...] = SUPPORTED_FEATURES
    is_migrating_zk_broker: bool = False
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> "BrokerRegistration":
        """Make the registration of its record."""
        return cls(
            broker_id=record.broker_id,
            incarnation_id=record.incarnation_id,
            broker_epoch=record.broker_epoch,
            endpoints=tuple(
                Endpoint(point.name, point.host, point.port, point.security_protocol)
                for point in record.end_points
            ),
            log_dirs=tuple(record.log_dirs),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            features=tuple(
                (each.name, each.min_supported_version, each.max_supported_version)
                for each in record.features
            ),
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            cordoned_log_dirs=_ids(record.cordoned_log_dirs),
        )

    def to_record(self) -> RegisterBrokerRecord:
        """Return the record: the inverse of `from_record`."""
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.broker_epoch,
            end_points=[
                BrokerEndpoint(
                    name=point.name,
                    host=point.host,
                    port=point.port,
                    security_protocol=point.security_protocol,
                )
                for point in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in self.features
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs),
            is_migrating_zk_broker=self.is_migrating_zk_broker,
            cordoned_log_dirs=(
                None if self.cordoned_log_dirs is None else list(self.cordoned_log_dirs)
            ),
        )

    def has_online(self, directory_id: bytes | None) -> bool:
        """Whether a replica in this directory can be used. None stands for an unknown directory.

        Kafka: DirectoryId.isOnline.
        """
        if directory_id == LOST_DIRECTORY:
            return False
        unknown = directory_id in (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
        return unknown or not self.log_dirs or directory_id in self.log_dirs

    def changed_by(self, change: BrokerRegistrationChangeRecord) -> "BrokerRegistration":
        """Return the registration after a change; a zero or an empty list means no change."""
        return replace(
            self,
            fenced=self.fenced if change.fenced == 0 else change.fenced > 0,
            in_controlled_shutdown=(
                self.in_controlled_shutdown or change.in_controlled_shutdown > 0
            ),
            log_dirs=tuple(change.log_dirs) or self.log_dirs,
            cordoned_log_dirs=(
                self.cordoned_log_dirs
                if change.cordoned_log_dirs is None
                else _ids(change.cordoned_log_dirs)
            ),
        )


def _ids(listed: list[bytes] | None) -> tuple[bytes, ...] | None:
    return None if listed is None else tuple(listed)
