"""Runs `odradek why-not-deleted`.

Exit codes: 0 after printing the explanation, 1 for an invalid configuration, 2 for wrong usage.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import typer

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.loading import load_config
from odradek.storage.files import Files
from odradek.storage.retention_explanation import explain
from odradek.storage.time_text import duration
from odradek.storage.topic_partition import TopicPartition
from odradek.tools.transactions.ownership import described

from .report import json_lines, lines
from .stored_retention import PartitionFilter, StoredRetention

CHECK_INTERVAL = "log.retention.check.interval.ms"
EXIT_OK = 0
EXIT_BAD_CONFIG = 1


def run(
    directories: Sequence[Path],
    is_included: PartitionFilter,
    *,
    file: Path | None,
    overrides: Sequence[str],
    as_json: bool,
) -> int:
    """Print the explanation for the included partitions' logs; returns the exit code."""
    try:
        file_config = load_config(file, overrides).config
    except ConfigError as error:
        typer.echo(f"odradek: {error}", err=True)
        return EXIT_BAD_CONFIG
    _explain(directories, is_included, file_config, file, as_json=as_json)
    return EXIT_OK


def _explain(
    directories: Sequence[Path],
    is_included: PartitionFilter,
    file_config: BrokerConfig,
    file: Path | None,
    *,
    as_json: bool,
) -> None:
    stored = StoredRetention(Files(), [path.absolute() for path in directories], file_config)
    printed: list[str] = []
    for log in stored.logs(is_included):
        _print_new_warnings(printed, stored.warnings)
        now_ms = time.time_ns() // 1_000_000  # after the log was read: a broker may be writing
        answers = explain(log.facts, now_ms)
        pin = None
        if log.oldest is not None and any(answer.is_uncleanable for answer in answers):
            ending = stored.what_ends(log.oldest, TopicPartition(log.topic, log.partition))
            pin = f"{described(log.oldest, now_ms)}; {ending}"
        for line in (json_lines if as_json else lines)(log, answers, pin):
            typer.echo(line)
    _print_new_warnings(printed, stored.warnings)
    if not as_json:
        interval = duration(stored.check_interval_ms)
        typer.echo(f"A running broker checks every {interval} ({_source(file_config, file)}).")
        if file is None:
            typer.echo(
                "The broker's file is not known without --config: settings that neither the topic"
                " nor the metadata log has are shown with their defaults."
            )


def _source(config: BrokerConfig, file: Path | None) -> str:
    """Where the interval of the checks comes from. It cannot be changed while a broker runs."""
    if CHECK_INTERVAL in config.texts:
        return CHECK_INTERVAL
    unset = "" if file is None else f", which {file} does not set"
    return f"the default of {CHECK_INTERVAL}{unset}"


def _print_new_warnings(printed: list[str], warnings: Sequence[str]) -> None:
    """Print to stderr the warnings that are not in `printed` yet, and add them to it."""
    for warning in warnings[len(printed) :]:
        typer.echo(f"odradek: {warning}", err=True)
        printed.append(warning)
