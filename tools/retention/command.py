"""`odradek why-not-deleted`: tells of each segment what keeps it, or what deletes it.

Exit codes: 0 (whatever the answer), 1 for a configuration that cannot be, 2 usage.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import typer

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.loading import load_config
from odradek.storage.files import Files
from odradek.storage.retention_rules import duration, explain
from odradek.tools.broken_pipe import leave_quietly

from .answers import json_lines, lines
from .stored_retention import StoredRetention, Wanted

EXIT_OK = 0
EXIT_BAD_CONFIG = 1


def run(
    directories: Sequence[Path],
    wanted: Wanted,
    *,
    file: Path | None,
    overrides: Sequence[str],
    as_json: bool,
) -> int:
    """Look at the wanted logs in the directories; returns the exit code."""
    try:
        written = load_config(file, overrides).config
    except ConfigError as error:
        typer.echo(f"odradek: {error}", err=True)
        return EXIT_BAD_CONFIG
    try:
        _explain(directories, wanted, written, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        return leave_quietly()
    return EXIT_OK


def _explain(
    directories: Sequence[Path], wanted: Wanted, written: BrokerConfig, *, as_json: bool
) -> None:
    stored = StoredRetention(Files(), [path.absolute() for path in directories], written)
    now_ms = time.time_ns() // 1_000_000
    told: list[str] = []
    for log in stored.logs(wanted):
        _tell(told, stored.warnings)
        answers = explain(log.facts, now_ms)
        for line in json_lines(log, answers) if as_json else lines(log, answers):
            typer.echo(line)
    _tell(told, stored.warnings)
    if not as_json:
        interval = duration(stored.check_interval_ms)
        typer.echo(f"A running broker looks every {interval} (log.retention.check.interval.ms).")


def _tell(told: list[str], warnings: Sequence[str]) -> None:
    """What has not been said yet, beside the output."""
    for warning in warnings[len(told) :]:
        typer.echo(f"odradek: {warning}", err=True)
        told.append(warning)
