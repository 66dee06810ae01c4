"""The options of `odradek why-not-deleted`, and what it prints.

Exit codes: 0 (whatever the answer), 1 for a configuration that cannot be, 2 usage.
"""

import json as json_format
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..config.loading import ConfigError, load_config
from ..storage.files import Files
from ..storage.retention_rules import WhyNotDeleted, duration, explain
from .broken_pipe import leave_quietly
from .stored_retention import StoredLog, StoredRetention

EXIT_BAD_CONFIG = 1


def why_not_deleted(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Only this one.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", help="Only this one.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The server.properties of the broker."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="KEY=VALUE", help="A property that wins over the file."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per segment.")] = False,
) -> None:
    """Say of each segment of a log what keeps it and until when, or what deletes it.

    Read from the files alone, nothing is changed; a broker may be running.
    """
    for path in directories:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is no directory", param_hint="DIR")
    try:
        written = load_config(config, override or []).config
    except ConfigError as error:
        typer.echo(f"odradek: {error}", err=True)
        raise typer.Exit(EXIT_BAD_CONFIG) from None

    def wanted(name: str, number: int) -> bool:
        return (not topic or name in topic) and (not partition or number in partition)

    stored = StoredRetention(Files(), [path.absolute() for path in directories], written)
    now_ms = time.time_ns() // 1_000_000
    told: list[str] = []
    try:
        for log in stored.logs(wanted):
            _tell(told, stored.warnings)
            answers = explain(log.facts, now_ms)
            for line in _json_lines(log, answers) if json else _lines(log, answers):
                typer.echo(line)
        _tell(told, stored.warnings)
        if not json:
            interval = duration(stored.check_interval_ms)
            typer.echo(
                f"A running broker looks every {interval} (log.retention.check.interval.ms)."
            )
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(leave_quietly()) from None


def _tell(told: list[str], warnings: Sequence[str]) -> None:
    """What has not been said yet, beside the output."""
    for warning in warnings[len(told) :]:
        typer.echo(f"odradek: {warning}", err=True)
        told.append(warning)


def _lines(log: StoredLog, answers: Sequence[WhyNotDeleted]) -> Iterator[str]:
    config = log.facts.config
    yield (
        f"{log.topic}-{log.partition} ({log.directory}): "
        f"cleanup.policy={','.join(config.cleanup_policy)} retention.ms={config.retention_ms} "
        f"retention.bytes={config.retention_bytes} log start {log.facts.log_start_offset}"
    )
    for answer in answers:
        segment = answer.segment
        active = ", active" if answer.is_active else ""
        yield (
            f"  {segment.base_offset:020d}  offsets to {segment.end_offset - 1}, "
            f"{segment.size_bytes} bytes{active}: {answer.text}"
        )


def _json_lines(log: StoredLog, answers: Sequence[WhyNotDeleted]) -> Iterator[str]:
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
        yield json_format.dumps(fields, ensure_ascii=False)
