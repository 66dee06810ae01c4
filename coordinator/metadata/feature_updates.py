"""Computes the records that change finalised feature levels. Kafka: FeatureControlManager.

A request is accepted whole or refused. An upgrade raises a level and a downgrade lowers it, within
the levels that this version of odradek serves (features.SERVED). An unknown feature is refused at
every level. `metadata.version` can be lowered only if no version in between changed
a record, because records that the older version cannot read stay in the log. `kraft.version` rises
from static to dynamic voters and never falls; the controller writes it as a control record. When
eligible leader replicas are enabled, the controller also sets min.insync.replicas
(min_insync_replicas.py).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import FeatureLevelRecord

from .features import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, SERVED, Features, ServedFeature

# metadata.versions that changed a record or brought a new one: 3.3-IV3, 3.4-IV0, 3.5-IV2, 3.6-IV1,
# 3.6-IV2, 3.7-IV0, 3.7-IV2, 4.0-IV1, 4.3-IV0, 4.4-IV1, 4.4-IV2. Kafka: MetadataVersion.
_RECORDS_CHANGED = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
# The first metadata.version whose records have eligible leader replicas: 4.0-IV1.
_FIRST_VERSION_WITH_ELR = 23
# As in Kafka, level 0 of an unknown feature is refused later, with another message.
_NOT_SERVED = ServedFeature(lowest=0, highest=0)


class UpgradeType(IntEnum):
    """On the wire: never renumber."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A requested level; `upgrade_type` is the number in the request, which may be unknown."""

    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def update_features(
    features: Features, kraft_version: int, updates: Mapping[str, FeatureUpdate]
) -> Outcome[int]:
    """Finalise levels. The reply is the new kraft.version.

    Raises INVALID_UPDATE_VERSION: then nothing is finalised.
    """
    records = []
    for name, update in updates.items():
        if name == KRAFT_VERSION:
            _check(name, update, kraft_version)
            _check_kraft(update, kraft_version)
            kraft_version = update.level
        else:
            _check(name, update, features.level(name))
            _check_downgrade(name, update, features)
            _check_dependency(name, update, features, updates)
            records.append(JournalRecord(FeatureLevelRecord(name=name, feature_level=update.level)))
    return Outcome(reply=kraft_version, records=tuple(records))


def _check(name: str, update: FeatureUpdate, current: int) -> None:
    """Check the rules that all features share."""
    level, is_upgrade = update.level, update.upgrade_type == UpgradeType.UPGRADE
    if update.upgrade_type not in list(UpgradeType):
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    served = SERVED.get(name, _NOT_SERVED)
    if not served.lowest <= level <= served.highest:
        text = f"This broker only supports versions {served.lowest}-{served.highest}"
        unserved = "This broker does not support this feature."
        raise _invalid(name, level, text if served.highest else unserved)
    if name not in SERVED:
        raise _invalid(name, level, f"Feature {name} not found.")
    if level < current and is_upgrade:
        text = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
        raise _invalid(name, level, text)
    if level > current and not is_upgrade:
        raise _invalid(name, level, "Can't downgrade to a newer version.")


def _check_kraft(update: FeatureUpdate, current: int) -> None:
    if update.level < current:
        text = "Can't downgrade the version of this feature."
        raise _invalid(KRAFT_VERSION, update.level, text)


def _check_downgrade(name: str, update: FeatureUpdate, features: Features) -> None:
    if name != METADATA_VERSION:
        return
    current = features.metadata_version
    if _RECORDS_CHANGED.isdisjoint(range(update.level + 1, current + 1)):
        return  # also for an upgrade, whose range is empty
    reason = "it might delete metadata information"
    if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "unsafe metadata downgrade is not supported in this version"
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {update.level}. "
        f"Refusing to perform it because {reason}.",
    )


def _check_dependency(
    name: str, update: FeatureUpdate, features: Features, updates: Mapping[str, FeatureUpdate]
) -> None:
    if name != ELR_VERSION or not update.level:
        return
    wanted = updates.get(METADATA_VERSION)
    if (wanted.level if wanted else features.metadata_version) < _FIRST_VERSION_WITH_ELR:
        text = f"It needs {METADATA_VERSION} {_FIRST_VERSION_WITH_ELR}."
        raise _invalid(name, update.level, text)


def _invalid(name: str, level: int, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {name}. {reason}",
    )
