"""A broker's registration in the metadata log.

A broker registers at every start, with a new incarnation id. The offset of its RegisterBrokerRecord
is its broker epoch. The file `.kafka_cleanshutdown` repeats the epoch, so that Apache Kafka finds
at its next start that the shutdown was clean. Kafka: ClusterControlManager.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.protocol.records.cluster_metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from odradek.protocol.schema import replace

from .features import SERVED

# Reserved directory ids (Kafka: DirectoryId). In the log: never renumber.
MIGRATING_DIRECTORY = bytes(16)
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
LOST_DIRECTORY = bytes(15) + b"\x02"


class Endpoint(NamedTuple):
    """An advertised listener; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


def registration_record(
    broker_id: int,
    broker_epoch: int,
    *,
    incarnation_id: bytes,
    endpoints: Sequence[Endpoint],
    directories: Sequence[bytes],
    cordoned: Sequence[bytes] = (),
    rack: str | None = None,
) -> RegisterBrokerRecord:
    """Return the record that registers an unfenced broker with the features that are served."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=incarnation_id,
        broker_epoch=broker_epoch,
        end_points=[BrokerEndpoint(**endpoint._asdict()) for endpoint in endpoints],
        features=[
            BrokerFeature(
                name=name,
                min_supported_version=feature.lowest,
                max_supported_version=feature.highest,
            )
            for name, feature in SERVED.items()
        ],
        rack=rack,
        fenced=False,
        log_dirs=list(directories),
        cordoned_log_dirs=list(cordoned),
    )


def has_online(registration: RegisterBrokerRecord, directory_id: bytes | None) -> bool:
    """Whether a replica in this directory can be used. None stands for an unknown directory.

    Kafka: DirectoryId.isOnline.
    """
    if directory_id == LOST_DIRECTORY:
        return False
    if directory_id in (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return not registration.log_dirs or directory_id in registration.log_dirs


def changed_registration(
    registration: RegisterBrokerRecord, change: BrokerRegistrationChangeRecord
) -> RegisterBrokerRecord:
    """Return the registration after a change; a zero, an empty list or null means no change."""
    changes: dict[str, object] = {}
    if change.fenced != 0:
        changes["fenced"] = change.fenced > 0
    if change.in_controlled_shutdown > 0:
        changes["in_controlled_shutdown"] = True
    if change.log_dirs:
        changes["log_dirs"] = change.log_dirs
    if change.cordoned_log_dirs is not None:
        changes["cordoned_log_dirs"] = change.cordoned_log_dirs
    return replace(registration, **changes)
