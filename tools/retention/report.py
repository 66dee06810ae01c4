"""Formats the output of `odradek why-not-deleted`, as text and as JSON."""

from collections.abc import Iterator, Sequence

from odradek.storage.retention_explanation import WhyNotDeleted
from odradek.tools.standard_streams import json_text

from .stored_retention import StoredLog


def lines(log: StoredLog, answers: Sequence[WhyNotDeleted], pin: str | None) -> Iterator[str]:
    """One line for the log, and one for each segment.

    `pin`: the transaction that keeps the cleaner from some of them, as a text.
    """
    config = log.facts.config
    yield (
        f"{log.topic}-{log.partition} ({log.directory}): "
        f"cleanup.policy={','.join(config.cleanup_policy)} retention.ms={config.retention_ms} "
        f"retention.bytes={config.retention_bytes} log start {log.facts.log_start_offset}"
    )
    if pin is not None:
        yield f"  not cleaned from offset {log.facts.last_stable_offset} on: {pin}"
    for answer in answers:
        segment = answer.segment
        active = ", active" if answer.is_active else ""
        yield (
            f"  {segment.base_offset:020d}  offsets to {segment.end_offset - 1}, "
            f"{segment.size_bytes} bytes{active}: {answer.text}"
        )


def json_lines(log: StoredLog, answers: Sequence[WhyNotDeleted], pin: str | None) -> Iterator[str]:
    """One JSON object for each segment. `pin`: see `lines`."""
    for answer in answers:
        segment = answer.segment
        fields = {
            "topic": log.topic,
            "partition": log.partition,
            "directory": str(log.directory),
            "baseOffset": segment.base_offset,
            "endOffset": segment.end_offset,
            "sizeBytes": segment.size_bytes,
            "newestTimestamp": segment.newest_ms,
            "isFileTime": segment.is_file_time,
            "isActive": answer.is_active,
            "deletedBy": answer.deleted_by.value if answer.deleted_by else None,
            "eligibleAt": answer.eligible_at_ms,
            "waitsFor": answer.waits_for,
            "why": answer.text,
            "notCleanedBecause": _pin(log, pin) if answer.is_uncleanable else None,
            "rules": [
                {
                    "rule": rule.rule.value,
                    "isMet": rule.is_met,
                    "why": rule.text,
                    "eligibleAt": rule.eligible_at_ms,
                    "missingBytes": rule.missing_bytes,
                    "missingOffsets": rule.missing_offsets,
                }
                for rule in answer.rules
            ],
        }
        yield json_text(fields)


def _pin(log: StoredLog, pin: str | None) -> dict[str, object]:
    assert log.oldest is not None
    return {
        "producerId": log.oldest.producer_id,
        "producerEpoch": log.oldest.producer_epoch,
        "firstOffset": log.oldest.first_offset,
        "firstTimestamp": log.oldest.first_timestamp_ms,
        "lastTimestamp": log.oldest.last_timestamp_ms,
        "why": pin,
    }
