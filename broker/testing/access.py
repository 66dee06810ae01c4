"""Adds users to the broker of a test, and removes users, ACLs and delegation tokens."""

from __future__ import annotations

import secrets

from odradek.broker.broker import Broker
from odradek.coordinator.metadata.acls import ANY, AclFilter, PatternType
from odradek.coordinator.metadata.scram_changes import ScramDeletion, ScramUpsertion
from odradek.coordinator.metadata.scram_mechanisms import MIN_ITERATIONS, ScramMechanism, salted

EVERY_ACL = AclFilter(ANY, None, PatternType.ANY, None, None, ANY, ANY)


def add_user(broker: Broker, name: str, password: str) -> None:
    """Let a user log in by SCRAM. Raises ApiError."""
    for mechanism in ScramMechanism:
        salt = secrets.token_bytes(16)
        wanted = ScramUpsertion(
            name,
            mechanism,
            MIN_ITERATIONS,
            salt,
            salted(mechanism, password, salt, MIN_ITERATIONS),
        )
        results = broker.controller.alter_scram_credentials([], [wanted], broker.clock.now_ms())
        for error in results.values():
            if error is not None:
                raise error


def remove_access(broker: Broker, *, kept_user: str) -> None:
    """Remove all ACLs, delegation tokens, and users except one."""
    controller, metadata, now_ms = broker.controller, broker.metadata, broker.clock.now_ms()
    for mechanism in ScramMechanism:
        users = [name for number, name in metadata.scram_credentials.by_user if number == mechanism]
        deletions = [ScramDeletion(name, mechanism) for name in users if name != kept_user]
        controller.alter_scram_credentials(deletions, [], now_ms)
    controller.delete_acls([EVERY_ACL], now_ms)
    hmacs = broker.security.token_rules.hmacs
    for token in [*metadata.delegation_tokens.by_id.values()] if hmacs else []:
        assert hmacs is not None
        controller.expire_token(
            hmacs.of(token.token_id), -1, token.owner, broker.security.token_rules, now_ms
        )
