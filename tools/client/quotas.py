"""`odradek quotas`: limits of users, client ids, both together, and addresses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import typer

from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntityData,
    AlterClientQuotasOpData,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
)
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from odradek.tools.tables import counted, print_json, show_table

from .answers import check_answer
from .cluster_commands import ClusterCommands
from .failure import CommandError
from .quota_keys import QuotaKey

EXACT, DEFAULT = 0, 1  # match_type
DEFAULT_NAME = "<default>"

Entity = Mapping[str, str | None]
"""Names by type: user, client-id, ip. None stands for the default of the type."""


def parse_quotas(texts: Sequence[str]) -> dict[str, float]:
    """Values by key. Raises CommandError."""
    found = {}
    for text in texts:
        key, _, number = text.partition("=")
        if key not in list(QuotaKey):
            raise CommandError(f"{text}: the key must be one of {', '.join(QuotaKey)}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise CommandError(f"{text}: write {key}=NUMBER, more than 0")
        found[key] = value
    return found


class QuotaCommands(ClusterCommands):
    """The commands. Each raises CommandError."""

    def show(self, entity: Entity, *, as_json: bool) -> None:
        """Print the quotas of the entities that have these names, or all."""
        found = self._described(entity, strict=False)
        if as_json:
            print_json([{"entity": entity, "quotas": values} for entity, values in found])
            return
        rows = sorted(
            (_text(entity), key, _number(value))
            for entity, values in found
            for key, value in values.items()
        )
        show_table(counted(len(rows), "quota"), ("entity", "quota", "value"), rows, texts=2)

    def alter(self, entity: Entity, quotas: Mapping[str, float]) -> None:
        """Set quotas of one entity, by key."""
        ops = [
            AlterClientQuotasOpData(key=key, value=value, remove=False)
            for key, value in quotas.items()
        ]
        self._alter(entity, ops)
        shown = ", ".join(f"{key}={_number(value)}" for key, value in quotas.items())
        typer.echo(f"{_text(entity)}: {shown}")

    def remove(self, entity: Entity, keys: Sequence[str]) -> None:
        """Remove quotas of one entity, by key, or all."""
        _check(entity)
        known = dict(
            value for _, values in self._described(entity, strict=True) for value in values.items()
        )
        missing = [key for key in keys if key not in known]
        if missing or not known:
            what = ", ".join(missing) or "quota"
            raise CommandError(f"{_text(entity)} has no {what}; `odradek quotas list` shows all")
        removed = keys or sorted(known)
        ops = [AlterClientQuotasOpData(key=key, value=0.0, remove=True) for key in removed]
        self._alter(entity, ops)
        typer.echo(f"{_text(entity)}: removed {', '.join(removed)}")

    def _described(
        self, entity: Entity, *, strict: bool
    ) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        """Entities and their quotas; if `strict`, only entities of exactly these types."""
        components = [
            DescribeClientQuotasComponentData(
                entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name
            )
            for kind, name in entity.items()
        ]
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        answer = self._cluster.bootstrap.ask(request, DescribeClientQuotasResponse)
        check_answer("quotas cannot be listed", answer.error_code, answer.error_message)
        return [
            (
                {each.entity_type: each.entity_name for each in entry.entity},
                {each.key: each.value for each in entry.values},
            )
            for entry in answer.entries or []
        ]

    def _alter(self, entity: Entity, ops: list[AlterClientQuotasOpData]) -> None:
        _check(entity)
        entry = AlterClientQuotasRequestEntryData(
            entity=[
                AlterClientQuotasEntityData(entity_type=kind, entity_name=name)
                for kind, name in entity.items()
            ],
            ops=ops,
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        for each in self._cluster.bootstrap.ask(request, AlterClientQuotasResponse).entries:
            check_answer(_text(entity), each.error_code, each.error_message)


def _check(entity: Entity) -> None:
    if not entity:
        raise CommandError("whose quota? give --user, --client-id, --ip, or --default-user, ...")


def _text(entity: Entity) -> str:
    return ", ".join(
        f"{kind} {DEFAULT_NAME if name is None else name}"
        for kind, name in sorted(entity.items(), reverse=True)
    )


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)
