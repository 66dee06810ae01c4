"""Which quota applies to a user and client id, and with whom they share it.

The first of these that has a quota decides:

    1  user, client id             both counted together
    2  user, any client id
    3  user                        all client ids of the user together
    4  any user, client id
    5  any user, any client id
    6  any user                    each user apart, all client ids together
    7  client id                   all users of the client id together
    8  any client id               each client id apart, all users together

Clients with the same ShareKey share one rate.

Kafka: ClientQuotaManager, DefaultQuotaCallback.
"""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.coordinator.metadata.client_quotas import CLIENT_ID, USER, Entity
from odradek.coordinator.runtime.steps import Step, no_step, stepping

ABSENT = ""  # stands in both fields for "of all"; no entity has this name


class ShareKey(NamedTuple):
    """The user and client id whose traffic is counted together; ABSENT: of all."""

    user: str
    client_id: str


class QuotaTable:
    """The values of one quota key, by user and client id. The name None is the default entity."""

    def __init__(self, values: Mapping[Entity, float], step: Step = no_step) -> None:
        """Entities of other types are ignored."""
        self._limits: dict[tuple[str | None, str | None], float] = {}
        for entity, value in stepping(values.items(), step):
            names = dict(entity)
            if names.keys() <= {USER, CLIENT_ID}:
                self._limits[names.get(USER, ABSENT), names.get(CLIENT_ID, ABSENT)] = value
        # Whether entities name users, and client ids: with one kind of entity, as usual, no search.
        self._levels = {
            (user is not ABSENT, client_id is not ABSENT)
            for user, client_id in stepping(self._limits, step)
        }

    def __bool__(self) -> bool:
        """Whether there is any quota."""
        return bool(self._limits)

    def find(self, user: str, client_id: str) -> tuple[ShareKey, float | None]:
        """The key of the shared rate and its limit; None if there is no limit."""
        shared = self._share_key(user, client_id)
        return shared, self._limit(*shared)

    def _share_key(self, user: str, client_id: str) -> ShareKey:
        if len(self._levels) == 1:
            [(has_user, has_client_id)] = self._levels
            return ShareKey(user if has_user else ABSENT, client_id if has_client_id else ABSENT)
        limits = self._limits
        for of_user in (user, None):
            if (client_id and (of_user, client_id) in limits) or (of_user, None) in limits:
                return ShareKey(user, client_id)
            if (of_user, ABSENT) in limits:
                return ShareKey(user, ABSENT)
        return ShareKey(ABSENT, client_id)

    def _limit(self, user: str, client_id: str) -> float | None:
        users = (user, None) if user else (ABSENT,)
        client_ids = (client_id, None) if client_id else (ABSENT,)
        for of_user in users:
            for of_client_id in client_ids:
                limit = self._limits.get((of_user, of_client_id))
                if limit is not None:
                    return limit
        return None
