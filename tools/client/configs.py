"""`odradek configs`: the settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from odradek.tools.tables import print_json, show_table

from .admin import connect, result
from .failure import CommandError

SOURCES = {source.value: source.name.lower().removesuffix("_config") for source in ConfigSource}
DEFAULT = ConfigSource.DEFAULT_CONFIG.value


class ConfigCommands:
    """The commands, on one connection. Each raises CommandError.

    A resource is of a kind, `topic`, `broker` or `group`, and has a name.
    """

    def __init__(self, bootstrap: str | None, file: Path | None) -> None:
        self._admin = connect(bootstrap, file)

    def describe(self, kind: str, name: str, *, everything: bool, as_json: bool) -> None:
        """Print the settings that differ from Kafka's defaults, or all, and where they are set."""
        resource = _resource(kind, name)
        futures = self._admin.describe_configs([resource])
        entries = result(f"settings of {kind} {name}", futures[resource])
        rows = [
            (entry.name, "" if entry.value is None else entry.value, SOURCES[entry.source])
            for _, entry in sorted(entries.items())
            if everything or entry.source != DEFAULT
        ]
        header = ("setting", "value", "source")
        if as_json:
            print_json([dict(zip(header, row, strict=True)) for row in rows])
        else:
            show_table(f"{kind} {name}".strip(), header, rows, texts=3)

    def alter(
        self, kind: str, name: str, configs: Mapping[str, str], removed: Sequence[str]
    ) -> None:
        """Change settings."""
        changes = [
            *(_change(key, value, AlterConfigOpType.SET) for key, value in configs.items()),
            *(_change(key, None, AlterConfigOpType.DELETE) for key in removed),
        ]
        resource = _resource(kind, name, changes)
        futures = self._admin.incremental_alter_configs([resource])
        result(f"alter {kind} {name}", futures[resource])
        typer.echo(f"altered {kind} {name}".rstrip())


def _resource(kind: str, name: str, changes: list[ConfigEntry] | None = None) -> ConfigResource:
    if not name:
        raise CommandError(f"the name is empty: name one {kind} (librdkafka cannot mean all)")
    return ConfigResource(ConfigResource.Type[kind.upper()], name, incremental_configs=changes)


def _change(name: str, value: str | None, operation: AlterConfigOpType) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=operation)
