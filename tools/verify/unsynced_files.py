"""Reports damage to the small files that are written without a sync: a power cut may leave zeros.

Apache Kafka syncs them, and does not use a log directory with a damaged one.
"""

from odradek.storage.checkpoints import CheckpointError
from odradek.storage.files import Files

from .findings import Findings, Kind


def report_damage(
    files: Files, error: CheckpointError, findings: Findings, in_odradek: str, kind: Kind
) -> None:
    """Report a file that cannot be parsed; zeros are a note. Raises OSError."""
    at_start = f"odradek: {in_odradek}. Apache Kafka: the log directory goes offline"
    if any(files.read(error.path)):
        findings.problem(error.path, str(error), at_start, kind)
    else:
        findings.note(error.path, "it is zeros, as a power cut may leave it", at_start, kind)
