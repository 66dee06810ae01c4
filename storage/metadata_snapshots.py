"""Finds the snapshots in the directory of the metadata log."""

from pathlib import Path

from .filenames import MetadataSnapshotName, parse_metadata_snapshot_file
from .files import Files


def snapshots_in(files: Files, directory: Path) -> list[MetadataSnapshotName]:
    """List the finished snapshots in the metadata log's directory, ordered by end offset."""
    names = (parse_metadata_snapshot_file(name) for name in files.list_directory(directory))
    return sorted(name for name in names if name is not None)
