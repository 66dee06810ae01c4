"""Changes client quotas in the metadata log, and puts them in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.broker.disk.log_sync import LogSync
from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.quotas import Quotas
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.client_quotas import IP, Entity
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.quota_changes import QuotaAlteration
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError

from .operations import Operations


class QuotaAdmin:
    """Changes client quotas."""

    def __init__(
        self,
        *,
        operations: Operations,
        controller: Controller,
        metadata_sync: LogSync,
        quotas: Quotas,
        addresses: HostAddresses,
        now_ms: Callable[[], int],
    ) -> None:
        """`now_ms` is the wall clock."""
        self._operations = operations
        self._controller = controller
        self._sync = metadata_sync
        self._quotas = quotas
        self._addresses = addresses
        self._now_ms = now_ms

    async def alter(
        self,
        alterations: Sequence[QuotaAlteration],
        *,
        validate_only: bool,
        step: Step = no_step,
    ) -> dict[Entity, ApiError | None]:
        """Change quotas, or only check the changes. Returns an error or None by entity.

        Raises POLICY_VIOLATION for a request that is too large as a whole.
        """
        hosts = {
            name
            for each in stepping(alterations, step)
            if (name := each.entity.get(IP)) is not None
        }
        await self._addresses.look_up(hosts, step)
        results = await self._operations.run(
            lambda slices: self._alter(slices, alterations, validate_only)
        )
        if not validate_only:
            await self._sync.sync()
        return results

    async def _alter(
        self, slices: Slices, alterations: Sequence[QuotaAlteration], validate_only: bool
    ) -> dict[Entity, ApiError | None]:
        async with self._operations.decision_lock:
            results = self._controller.alter_client_quotas(
                alterations,
                self._addresses.is_known,
                self._now_ms(),
                validate_only=validate_only,
                step=slices.step,
            )
            if not validate_only:
                self._quotas.refresh(slices.step)
        return results
