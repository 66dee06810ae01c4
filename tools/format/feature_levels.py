"""The levels of features that a directory is formatted with.

`--release-version 4.3` chooses the metadata.version, and with it the other levels; `--feature
NAME=LEVEL` chooses one. Kafka: StorageTool, Formatter, MetadataVersion.fromVersionString.
"""

import re
from collections.abc import Sequence

from odradek.coordinator.metadata.feature_updates import FeatureUpdate, update_features
from odradek.coordinator.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    NEWEST_METADATA_VERSION,
    SERVED,
    Features,
    levels_at_format,
)
from odradek.protocol.errors import ApiError
from odradek.protocol.records.cluster_metadata import FeatureLevelRecord

# The metadata.versions by their names. The last one of a release is meant by the release alone.
_NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1"),
    *("4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2"),
)
_LEVELS = range(SERVED[METADATA_VERSION].lowest, NEWEST_METADATA_VERSION + 1)
_RELEASES = dict(zip(_NAMES, _LEVELS, strict=True))
_CHOICE = re.compile(r"([^=]+)=(-?[0-9]{1,5})")


class FeatureLevelError(ValueError):
    """A release or a level is not valid. The message is one line for the user."""


def chosen_levels(release: str | None, features: Sequence[str]) -> dict[str, int]:
    """Return the levels of a new directory. Raises FeatureLevelError."""
    chosen = dict(map(_parsed, features))
    if release is not None and METADATA_VERSION in chosen:
        raise FeatureLevelError(f"give --release-version or {METADATA_VERSION}, not both")
    level = chosen.get(METADATA_VERSION, NEWEST_METADATA_VERSION)
    metadata_version = level if release is None else level_of_release(release)
    levels = {**levels_at_format(metadata_version), **chosen}
    _check(levels)
    return levels


def level_of_release(text: str) -> int:
    """Return the metadata.version of a release, such as 4.3, 4.3.0 or 4.3-IV0."""
    release = ".".join(text.split(".")[:2])
    found = [
        level for name, level in _RELEASES.items() if release in (name, name.partition("-")[0])
    ]
    if not found:
        first, *_, last = _RELEASES
        raise FeatureLevelError(
            f"the release version '{text}' is not known: give a release, such as 4.3, or a "
            f"metadata.version from {first} to {last}"
        )
    return max(found)


def _parsed(text: str) -> tuple[str, int]:
    match = _CHOICE.fullmatch(text)
    if match is None:
        raise FeatureLevelError(f"'{text}' must be NAME=LEVEL, such as share.version=1")
    if match[1] not in SERVED or match[1] == KRAFT_VERSION:
        names = ", ".join(name for name in SERVED if name != KRAFT_VERSION)
        raise FeatureLevelError(f"the feature {match[1]} cannot be chosen, but these: {names}")
    return match[1], int(match[2])


def _check(levels: dict[str, int]) -> None:
    """Refuse what the controller would refuse later."""
    features = Features()
    lowest = SERVED[METADATA_VERSION].lowest
    features.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=lowest))
    updates = {name: FeatureUpdate(level) for name, level in levels.items()}
    try:
        update_features(features, SERVED[KRAFT_VERSION].highest, updates)
    except ApiError as error:
        raise FeatureLevelError(error.message) from None
