"""Finds the schema of each topic's values: one that the user gave for all, or the registry's."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.pipeline.jobs import JobError
from odradek.pipeline.registry.formats import RegistryFormat

from .value_columns import ValueColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryChoice:
    """Values are of the latest schema of a subject: `subject`, or TOPIC-value.

    `client` are the settings of the registry's client, at least `url`.
    """

    format: RegistryFormat
    client: Mapping[str, str] = field(repr=False)
    subject: str = ""


class TopicSchemas:
    """The schemas of topics, each asked for once. `given` is that of all topics."""

    def __init__(
        self, given: ValueColumns | None, registry: RegistryChoice | None, *, keep_value: bool
    ) -> None:
        self.given = given
        self._registry = registry
        self._keep_value = keep_value
        self.known: dict[str, ValueColumns] = {}

    def of(self, topic: str) -> ValueColumns | None:
        """Return the schema of a topic's values; None if they stay bytes. Raises JobError."""
        if topic not in self.known:
            found = self.given if self._registry is None else self._ask(topic, self._registry)
            if found is None:
                return None
            self.known[topic] = found
        return self.known[topic]

    def _ask(self, topic: str, registry: RegistryChoice) -> ValueColumns:
        from odradek.pipeline.registry.values import RegistryError, find_schema  # extra `registry`

        try:
            found = find_schema(
                registry.format, registry.subject or f"{topic}-value", registry.client
            )
            return ValueColumns(found.type, self._keep_value, found)
        except RegistryError as error:
            raise JobError(str(error)) from error
