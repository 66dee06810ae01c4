"""Client quotas altered and described."""

from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntityData,
    AlterClientQuotasOpData,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
)
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasComponentData,
    DescribeClientQuotasRequest,
)
from tests.conformance.conversation import Conversation, patiently

Parts = tuple[tuple[str, str | None], ...]
ALICE: Parts = (("user", "alice"),)
ALICES_CLIENT: Parts = (("user", "alice"), ("client-id", "one"))
ALICES_CLIENTS: Parts = (("user", "alice"), ("client-id", None))
ADDRESS: Parts = (("ip", "192.0.2.1"),)
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def quotas_are_altered(talk: Conversation) -> None:
    for version in talk.versions_of(AlterClientQuotasRequest):
        for entity in (ALICE, ALICES_CLIENT, ALICES_CLIENTS):
            _alter(talk, (entity, {"producer_byte_rate": 1000.0}), version=version)
            _alter(talk, (entity, {"request_percentage": 0.5}), version=version)
        _alter(talk, (ALICE, {"consumer_byte_rate": 1e18, "producer_byte_rate": None}))
        _alter(talk, (ALICE, {"controller_mutation_rate": 1.5}), version=version)
        _alter(talk, (ADDRESS, {"connection_creation_rate": 7.0}), version=version)
        _described(talk)
        _alter(talk, (ALICE, {"producer_byte_rate": 2.0}), validate_only=True, version=version)
        _described(talk)
        _remove_all(talk)
        _described(talk)


def bad_quotas_are_refused(talk: Conversation) -> None:
    for version in talk.versions_of(AlterClientQuotasRequest):
        for value in (0.0, -1.0, 0.5, 1.0000001, 1.5, 1e18, 9.3e18, 1e300, float("inf")):
            for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage"):
                _alter(talk, (ALICE, {key: value}), version=version)
            _alter(talk, (ADDRESS, {"connection_creation_rate": value}), version=version)
        _alter(talk, (ADDRESS, {"connection_creation_rate": 2147483648.0}), version=version)
        _alter(talk, (ADDRESS, {"producer_byte_rate": 1.0}), version=version)
        _alter(talk, (ALICE, {"connection_creation_rate": 1.0}), version=version)
        _alter(talk, (ALICE, {"no_such_rate": 1.0}), version=version)
        _alter(talk, (ALICE, {"no_such_rate": None}), version=version)
        _alter(talk, (ALICE, {"producer_byte_rate": 5.0, "no_such_rate": 1.0}), version=version)
        for entity in (
            (),
            (("user", ""),),
            (("client-id", ""),),
            (("group", "x"),),
            (("ip", "192.0.2.1"), ("user", "alice")),
            (("ip", None), ("client-id", "one")),
            (("ip", "no.such.host.invalid"),),
            (("user", "alice"), ("user", "bob")),
            (("user", "alice"), ("user", None)),
        ):
            _alter(talk, (entity, {"producer_byte_rate": 1.0}), version=version)
        _alter(talk, (ALICE, {}), version=version)
        _alter(talk, version=version)
        # The same entity, and the same key, twice.
        _alter(
            talk,
            (ALICE, {"producer_byte_rate": 3.0}),
            (ALICE, {"consumer_byte_rate": 4.0}),
            version=version,
        )
        twice = [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)]
        talk.ask(_request([_entry(ALICES_CLIENT, twice)]), version)
        _described(talk)
        _remove_all(talk)


def quotas_are_described(talk: Conversation) -> None:
    entities = (ALICE, ALICES_CLIENT, ALICES_CLIENTS, ADDRESS, (("client-id", "one"),))
    for entity in entities:
        key = "connection_creation_rate" if entity is ADDRESS else "consumer_byte_rate"
        talk.silently(_request([_entry(entity, [(key, 1e9)])]), 1)
    _wait_for(talk, len(entities))
    for strict in (False, True):
        _described(talk, strict=strict)
        for kind in ("user", "client-id", "ip"):
            for match, name in (
                (EXACT, "alice"),
                (EXACT, "one"),
                (EXACT, "192.0.2.1"),
                (DEFAULT, None),
                (SPECIFIED, None),
            ):
                _described(talk, (kind, match, name), strict=strict)
        for name in ("alice", "bob"):
            for match, client_id in ((EXACT, "one"), (DEFAULT, None), (SPECIFIED, None)):
                parts = (("user", EXACT, name), ("client-id", match, client_id))
                _described(talk, *parts, strict=strict)
    _remove_all(talk)


def _entry(entity: Parts, ops: list[tuple[str, float | None]]) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasEntityData(entity_type=kind, entity_name=name) for kind, name in entity
        ],
        ops=[
            AlterClientQuotasOpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in ops
        ],
    )


def _request(
    entries: list[AlterClientQuotasRequestEntryData], *, validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)


def _alter(
    talk: Conversation,
    *entries: tuple[Parts, dict[str, float | None]],
    validate_only: bool = False,
    version: int = 1,
) -> None:
    made = [_entry(entity, list(ops.items())) for entity, ops in entries]
    talk.ask(_request(made, validate_only=validate_only), version)


def _described(
    talk: Conversation, *components: tuple[str, int, str | None], strict: bool = False
) -> None:
    """Kafka's broker learns later than its controller; what it knows is awaited by `_settle`."""
    _settle(talk)
    talk.ask(_describe(*components, strict=strict), 1)


def _describe(
    *components: tuple[str, int, str | None], strict: bool = False
) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            DescribeClientQuotasComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )


def _settle(talk: Conversation) -> None:
    """Alter a quota of another entity, and wait until it is described: then the rest is, too."""
    last: Parts = (("user", "the last one"),)
    component = ("user", EXACT, "the last one")
    for value, count in ((1.0, 1), (None, 0)):
        talk.silently(_request([_entry(last, [("producer_byte_rate", value)])]), 1)
        patiently(
            lambda count=count: len(talk.silently(_describe(component), 1).entries) == count or None
        )


def _wait_for(talk: Conversation, count: int) -> None:
    patiently(lambda: len(talk.silently(_describe(), 1).entries) == count or None)


def _remove_all(talk: Conversation) -> None:
    _settle(talk)
    entries = [
        _entry(
            tuple((part.entity_type, part.entity_name) for part in entry.entity),
            [(value.key, None) for value in entry.values],
        )
        for entry in talk.silently(_describe(), 1).entries
    ]
    talk.silently(_request(entries), 1)
    _wait_for(talk, 0)
