"""Formats empty data directories, as `kafka-storage format` does."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from odradek.broker.startup.preflight import Preflight, RefusedToStartError
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.loading import load_config
from odradek.coordinator.metadata.features import METADATA_VERSION
from odradek.coordinator.metadata.metadata_format import (
    controller_endpoint,
    format_metadata,
    has_first_records,
)
from odradek.coordinator.metadata.quorum import QuorumMember
from odradek.coordinator.metadata.scram_changes import FIRST_METADATA_VERSION
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.storage.checkpoints import MetaProperties
from odradek.storage.data_directory import DirectoryError
from odradek.storage.filenames import META_PROPERTIES
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager

from .feature_levels import FeatureLevelError, chosen_levels
from .scram_credential import CredentialError, parse_credential


class AlreadyFormattedError(Exception):
    """A directory is formatted already."""


def run(
    file: Path | None,
    overrides: Sequence[str],
    *,
    cluster_id: str | None = None,
    credentials: Sequence[str],
    release_version: str | None = None,
    features: Sequence[str] = (),
    ignore_formatted: bool,
    explain: Callable[[str], str] = str,
) -> int:
    """Format the directories that the configuration names. Returns the exit code.

    `explain` is applied to error messages.
    """
    if cluster_id is not None:
        overrides = [*overrides, f"odradek.cluster.id={cluster_id}"]
    try:
        users = [JournalRecord(parse_credential(text)) for text in credentials]
        levels = chosen_levels(release_version, features)
        if users and levels[METADATA_VERSION] < FIRST_METADATA_VERSION:
            raise FeatureLevelError("SCRAM users need metadata.version 3.5-IV2 or later")
        _format(file, overrides, users, levels, ignore_formatted=ignore_formatted)
    except AlreadyFormattedError as error:
        sys.stderr.write(f"odradek: {error}\n")
        return 0 if ignore_formatted else 1
    except (
        ConfigError,
        CredentialError,
        FeatureLevelError,
        DirectoryError,
        RefusedToStartError,
        OSError,
    ) as error:
        sys.stderr.write(f"odradek: {explain(str(error))}\n")
        return 1
    return 0


def is_formatted(config: BrokerConfig) -> bool:
    """Whether one of the data directories is in use. Raises OSError.

    They are not after a format, or a first start, that was interrupted: see `_format`.
    """
    metadata = config.metadata_directory
    if (metadata / META_PROPERTIES).exists():
        return has_first_records(Files(), metadata)
    return any((each / META_PROPERTIES).exists() for each in config.data_directories)


def _format(
    file: Path | None,
    overrides: Sequence[str],
    users: Sequence[JournalRecord],
    levels: Mapping[str, int],
    *,
    ignore_formatted: bool,
) -> None:
    """Format the directories that are not formatted.

    The metadata is written after meta.properties. Where only that is there, a format or a first
    start was interrupted, and this completes it.
    """
    formatted: set[Path] = set()

    def inspect(directories: Mapping[Path, MetaProperties | None]) -> None:
        if directories.get(metadata) is None or has_first_records(files, metadata):
            formatted.update(path for path, found in directories.items() if found is not None)
        if formatted and not (ignore_formatted and formatted < directories.keys()):
            raise AlreadyFormattedError(f"{min(formatted)} is already formatted")
        # No metadata log is made beside partitions that it does not know: a start refuses that.
        Preflight(config, files).check(directories)

    config = load_config(file, overrides).config
    metadata = config.metadata_directory.absolute()
    files = Files()
    manager = LogManager.open(
        config,
        files=files,
        timer_ms=lambda: time.monotonic_ns() // 1_000_000,
        inspect=inspect,
    )
    try:
        if metadata in manager.offline:
            raise DirectoryError(f"{metadata}: {manager.offline[metadata]}")
        (metadata_directory,) = (
            directory for directory in manager.directories if directory.path == metadata
        )
        member = QuorumMember(
            node_id=config.node_id,
            directory_id=metadata_directory.directory_id,
            endpoint=controller_endpoint(config),
        )
        if metadata not in formatted:
            format_metadata(files, metadata, member, time.time_ns() // 1_000_000, users, levels)
    finally:
        for directory in manager.directories:
            directory.restore_mark()
            directory.unlock()
    for directory in manager.directories:
        if directory.path not in formatted:
            sys.stdout.write(f"Formatted {directory.path} for the cluster {manager.cluster_id}\n")
