"""Changes configuration overrides: checks them, writes them to the metadata log, applies them.

The steps are those of topics (topic_admin.py): decide and commit, apply, wait for the fsync,
answer. The controller checks what is stored. Two checks need the broker and are made here: its own
settings, and its loggers, whose levels are not stored. Kafka: ConfigAdminManager.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from odradek.broker.admin import log_levels
from odradek.broker.common.effective_config import EffectiveConfig
from odradek.broker.disk.log_sync import LogSync
from odradek.broker.turns.slices import Slices
from odradek.config.dynamic_settings import usable_settings
from odradek.config.errors import ConfigError
from odradek.config.java_text import parse_integer
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigResource,
    overrides_after,
)
from odradek.coordinator.metadata.config_settings import config_rules
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode

from .applied_config import AppliedConfig
from .operations import Operations

logger = logging.getLogger("odradek.config")

STORED = frozenset(ConfigResourceType) - {
    ConfigResourceType.UNKNOWN,
    ConfigResourceType.BROKER_LOGGER,
}


class ConfigAdmin:
    """Changes overrides and applies them."""

    def __init__(
        self,
        *,
        applied_config: AppliedConfig,
        effective_config: EffectiveConfig,
        operations: Operations,
        controller: Controller,
        metadata_sync: LogSync,
        node_ids: Sequence[int],
        now_ms: Callable[[], int],
    ) -> None:
        """`node_ids`: this node, and the others of a played cluster, which have its settings."""
        self._node_ids = node_ids
        self._applied_config = applied_config
        self._effective_config = effective_config
        self._operations = operations
        self._controller = controller
        self._configs = controller.metadata.configs
        self._sync = metadata_sync
        self._now_ms = now_ms

    async def alter(
        self,
        alterations: Sequence[Alteration],
        *,
        check_authorized: Callable[[int, str], object],
        validate_only: bool,
        step: Step = no_step,
    ) -> list[ApiError | None]:
        """Change resources, or only check the changes. Returns an error or None for each.

        `check_authorized` gets the type and name of a resource, and raises ApiError if the client
        may not alter it.
        """
        counts = Counter(alteration.resource for alteration in stepping(alterations, step))
        stored: list[Alteration] = []
        results: dict[ConfigResource, ApiError | None] = {}
        for alteration in stepping(alterations, step):
            try:
                if counts[alteration.resource] > 1:
                    raise _invalid("Each resource must appear at most once.")
                _check_changes(alteration, step)
                kind = alteration.resource.kind
                if kind == ConfigResourceType.BROKER_LOGGER and not alteration.replaces:
                    check_authorized(*alteration.resource)
                    self._alter_levels(alteration, validate_only)
                else:
                    self._check_stored(alteration.resource)
                    check_authorized(*alteration.resource)
                    stored.append(alteration)
            except ApiError as error:
                results[alteration.resource] = error.with_traceback(None)
        if stored:
            committed = await self._operations.run(
                lambda slices: self._commit(slices, stored, validate_only)
            )
            results.update(stepping(iter(committed.items()), step))
            free(step, committed)
            if not validate_only:
                await self._sync.sync()
        # A logger that was altered has no result, because its level is not stored.
        answers = [results.get(alteration.resource) for alteration in stepping(alterations, step)]
        free(step, counts, stored, results)
        return answers

    async def _commit(
        self, slices: Slices, alterations: Sequence[Alteration], validate_only: bool
    ) -> dict[ConfigResource, ApiError | None]:
        # Held until the settings are applied: the next ones are checked against them.
        async with self._operations.decision_lock:
            refused = self._refused_settings(alterations, slices.step)
            accepted = [each for each in slices.of(alterations) if each.resource not in refused]
            try:
                results = self._controller.alter_configs(
                    accepted,
                    config_rules(self._effective_config.current),
                    self._now_ms(),
                    validate_only=validate_only,
                    step=slices.step,
                )
            except ApiError as error:
                refusal = error.with_traceback(None)
                return {each.resource: refusal for each in slices.of(accepted)} | refused
            if not validate_only:
                changed = [
                    resource
                    for resource, error in slices.of(iter(results.items()))
                    if error is None
                ]
                self._applied_config.apply(changed, slices.step)
                free(slices.step, changed)
        results.update(refused)
        free(slices.step, accepted)
        return results

    def _refused_settings(
        self, alterations: Sequence[Alteration], step: Step
    ) -> dict[ConfigResource, ApiError | None]:
        """Check the settings of brokers: each with those before it. Returns the errors."""
        rules = config_rules(self._effective_config.current)
        layers = self._effective_config.layers
        refused: dict[ConfigResource, ApiError | None] = {}
        for alteration in stepping(alterations, step):
            kind, name = alteration.resource
            if kind != ConfigResourceType.BROKER:
                continue
            usable, _ = usable_settings(
                self._configs.of(ConfigResourceType.BROKER, name),
                of_all_brokers=not name,
                iterate=partial(stepping, step=step),
            )
            try:
                after = overrides_after(usable, alteration, rules, step)
                layers = self._effective_config.check(name, after, layers, step)
            except ConfigError as error:
                refused[alteration.resource] = _invalid(str(error))
            except ApiError as error:
                refused[alteration.resource] = error.with_traceback(None)
        return refused

    # -- checks that need the broker --------------------------------------------------------------

    def _alter_levels(self, alteration: Alteration, validate_only: bool) -> None:
        """Check and set the levels of loggers, which are not stored. Raises ApiError."""
        if node_id_of(alteration.resource.name) not in self._node_ids:
            self._check_node(alteration.resource.name, "node")  # raises
        log_levels.check_levels(alteration.changes)
        if not validate_only:
            log_levels.change_levels(alteration.changes)

    def _check_stored(self, resource: ConfigResource) -> None:
        """Raise INVALID_REQUEST unless overrides of the resource are stored here."""
        kind, name = resource
        if kind not in STORED:
            raise _invalid(f"Unknown resource type {kind}")
        if kind == ConfigResourceType.BROKER and name:
            self._check_node(name, "broker")

    def _check_node(self, name: str, what: str) -> None:
        ours, node_id = self._controller.node_id, node_id_of(name)
        if node_id == ours:
            return
        if node_id in self._node_ids:
            text = f"node {name} has the settings of node {ours}: they are changed there"
            raise _invalid(text)
        raise _invalid(f"Unexpected {what} id, expected {ours}, but received {name}")


def node_id_of(name: str) -> int:
    """The node id in a resource's name, parsed as in Java. Raises INVALID_REQUEST."""
    try:
        return parse_integer(name, 32)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None


def _check_changes(alteration: Alteration, step: Step) -> None:
    names: dict[str, None] = {}
    nulls: list[str] = []
    for change in stepping(alteration.changes, step):
        names[change.name] = None
        if change.value is None and change.operation != AlterOperation.DELETE:
            nulls.append(change.name)
    error = None
    if len(names) < len(alteration.changes):
        error = _invalid("Error due to duplicate config keys")
    elif nulls:
        error = _invalid(f"Null value not supported for : {', '.join(nulls)}")
    free(step, names, nulls)
    if error is not None:
        raise error


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
