"""Decisions on client quotas: what is written, and what is refused. Kafka's answers are the same:
see tests/conformance/conversations/quotas.py."""

import math

import pytest

from odradek.coordinator.metadata.client_quotas import Entity
from odradek.coordinator.metadata.quota_changes import QuotaAlteration, alter_client_quotas
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ClientQuotaRecord
from tests.support.metadata import Metadata

Names = dict[str, str | None]
ALICE: Names = {"user": "alice"}
ADDRESS: Names = {"ip": "192.0.2.1"}


class Quotas(Metadata):
    """Metadata in which every name is an address, except `nowhere`."""

    def alter(
        self, *wishes: tuple[Names, dict[str, float | None]], validate_only: bool = False
    ) -> dict[Entity, ApiError | None]:
        alterations = [
            QuotaAlteration(entity=names, changes=tuple(changes.items()))
            for names, changes in wishes
        ]
        return self.commit(
            alter_client_quotas(
                self.state,
                alterations,
                lambda name: name != "nowhere",
                validate_only=validate_only,
            )
        )

    def refusal(self, names: Names, **changes: float | None) -> str:
        """The message with which a change of one entity is refused; nothing is written then."""
        [error] = self.alter((names, dict(changes))).values()
        assert error is not None
        assert error.code is ErrorCode.INVALID_REQUEST
        assert self.last_records == ()
        return error.message

    def written(self) -> list[tuple[str, float | None]]:
        """Key and value of the last records; None: removed."""
        values = [record.value for record in self.last_records]
        assert all(isinstance(value, ClientQuotaRecord) for value in values)
        return [(value.key, None if value.remove else value.value) for value in values]


@pytest.fixture
def quotas() -> Quotas:
    return Quotas()


def test_only_what_changes_is_written(quotas: Quotas) -> None:
    quotas.alter((ALICE, {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0}))
    assert quotas.written() == [("producer_byte_rate", 5.0), ("consumer_byte_rate", 6.0)]
    quotas.alter((ALICE, {"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0}))
    assert quotas.written() == [("consumer_byte_rate", 7.0)]
    quotas.alter((ALICE, {"producer_byte_rate": None, "request_percentage": None}))
    assert quotas.written() == [("producer_byte_rate", None)]
    assert quotas.state.quotas.values_of(frozenset(ALICE.items())) == {"consumer_byte_rate": 7.0}


def test_an_entity_without_quotas_is_forgotten(quotas: Quotas) -> None:
    quotas.alter((ALICE, {"producer_byte_rate": 5.0}))
    quotas.alter((ALICE, {"producer_byte_rate": None}))
    assert not quotas.state.quotas.by_entity


def test_a_default_is_another_entity_than_a_name(quotas: Quotas) -> None:
    default: Names = {"user": None}
    quotas.alter((ALICE, {"producer_byte_rate": 5.0}), (default, {"producer_byte_rate": 6.0}))
    assert quotas.state.quotas.by_key("producer_byte_rate") == {
        frozenset(ALICE.items()): 5.0,
        frozenset(default.items()): 6.0,
    }


def test_a_refused_entity_does_not_affect_the_others(quotas: Quotas) -> None:
    bob: Names = {"user": "bob"}
    reply = quotas.alter((bob, {"no_such_rate": 1.0}), (ALICE, {"producer_byte_rate": 5.0}))
    assert [error is None for error in reply.values()] == [False, True]
    assert quotas.written() == [("producer_byte_rate", 5.0)]


def test_validation_writes_nothing(quotas: Quotas) -> None:
    assert list(
        quotas.alter((ALICE, {"producer_byte_rate": 5.0}), validate_only=True).values()
    ) == [None]
    assert quotas.last_records == ()


def test_an_entity_that_occurs_twice_is_changed_once_and_refused(quotas: Quotas) -> None:
    [error] = quotas.alter(
        (ALICE, {"producer_byte_rate": 5.0}), (ALICE, {"producer_byte_rate": 6.0})
    ).values()
    assert error is not None
    assert error.message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert quotas.written() == [("producer_byte_rate", 5.0)]


def test_a_large_alteration_of_one_entity_gives_way(quotas: Quotas) -> None:
    changes = tuple((f"rate-{number}", None) for number in range(1_000))
    steps: list[None] = []
    alter_client_quotas(
        quotas.state,
        [QuotaAlteration(entity=ALICE, changes=changes)],
        lambda _name: True,
        step=lambda: steps.append(None),
    )
    assert len(steps) >= 1_000


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"user": ""}, "Empty user not supported"),
        ({"group": "g"}, "Unhandled client quota entity type: group"),
        ({"ip": "192.0.2.1", "user": "alice"}, "IP entity should"),
        ({"ip": "nowhere"}, "nowhere is not a valid IP or resolvable host."),
    ],
)
def test_an_entity_that_is_refused(names: Names, words: str, quotas: Quotas) -> None:
    assert words in quotas.refusal(names, producer_byte_rate=1.0)


@pytest.mark.parametrize(
    ("names", "key", "value"),
    [
        (ALICE, "connection_creation_rate", 1.0),
        (ADDRESS, "producer_byte_rate", 1.0),
        (ALICE, "producer_byte_rate", 0.0),
        (ALICE, "producer_byte_rate", 1.5),
        (ALICE, "consumer_byte_rate", 1e19),
        (ALICE, "request_percentage", -1.0),
        (ADDRESS, "connection_creation_rate", 2.0**31),
        (ADDRESS, "connection_creation_rate", math.inf),
        (ALICE, "request_percentage", math.inf),
        (ALICE, "producer_byte_rate", -math.inf),
        (ALICE, "controller_mutation_rate", math.nan),
    ],
)
def test_a_value_that_is_refused(names: Names, key: str, value: float, quotas: Quotas) -> None:
    assert key in quotas.refusal(names, **{key: value})


def test_numbers_that_need_not_be_whole(quotas: Quotas) -> None:
    changes: dict[str, float | None] = {
        "request_percentage": 0.5,
        "controller_mutation_rate": 0.001,
        "producer_byte_rate": 2.0**63,
    }
    assert list(quotas.alter((ALICE, changes)).values()) == [None]
