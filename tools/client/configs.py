"""`odradek configs`: the settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from odradek.tools.tables import show_rows

from .admin import connect, result
from .broker_defaults import BrokerDefaults
from .failure import CommandError

SOURCES = {source.value: source.name.lower().removesuffix("_config") for source in ConfigSource}
DEFAULT = ConfigSource.DEFAULT_CONFIG.value
OF_ALL = SOURCES[ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value]
BROKER = "broker"


class ConfigCommands:
    """The commands, on one connection. Each raises CommandError.

    A resource is of a kind, `topic`, `broker` or `group`, and has a name: of brokers, an empty one
    means all.
    """

    def __init__(self, bootstrap: str | None, file: Path | None) -> None:
        self._where = bootstrap, file
        self._admin = connect(bootstrap, file)

    def describe(self, kind: str, name: str, *, everything: bool, as_json: bool) -> None:
        """Print the settings that differ from Kafka's defaults, or all, and where they are set."""
        if kind == BROKER and not name:
            with BrokerDefaults(*self._where) as brokers:
                rows = [(each, value, OF_ALL) for each, value in sorted(brokers.settings().items())]
            _show("all brokers", rows, as_json=as_json)
            return
        resource = _resource(kind, name)
        futures = self._admin.describe_configs([resource])
        entries = result(f"settings of {kind} {name}", futures[resource])
        rows = [
            (entry.name, "" if entry.value is None else entry.value, SOURCES[entry.source])
            for _, entry in sorted(entries.items())
            if everything or entry.source != DEFAULT
        ]
        _show(f"{kind} {name}", rows, as_json=as_json)

    def alter(
        self, kind: str, name: str, configs: Mapping[str, str], removed: Sequence[str]
    ) -> None:
        """Change settings."""
        if kind == BROKER and not name:
            with BrokerDefaults(*self._where) as brokers:
                brokers.alter(configs, removed)
            typer.echo("altered all brokers")
            return
        changes = [
            *(_change(key, value, AlterConfigOpType.SET) for key, value in configs.items()),
            *(_change(key, None, AlterConfigOpType.DELETE) for key in removed),
        ]
        resource = _resource(kind, name, changes)
        futures = self._admin.incremental_alter_configs([resource])
        result(f"alter {kind} {name}", futures[resource])
        typer.echo(f"altered {kind} {name}")


def _show(title: str, rows: Sequence[tuple[str, str, str]], *, as_json: bool) -> None:
    show_rows(title, ("setting", "value", "source"), rows, as_json=as_json, texts=3)


def _resource(kind: str, name: str, changes: list[ConfigEntry] | None = None) -> ConfigResource:
    if not name:
        raise CommandError(f"name one {kind}")
    return ConfigResource(ConfigResource.Type[kind.upper()], name, incremental_configs=changes)


def _change(name: str, value: str | None, operation: AlterConfigOpType) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=operation)
