"""Random quotas and traffic: limits, sharing and throttle times equal those of Kafka's classes."""

import random
from collections.abc import Iterator

import pytest

from odradek.broker.quotas.client_quotas import Client, MutationQuota, RateQuota, ThrottledError
from odradek.broker.quotas.precedence import QuotaTable
from odradek.broker.quotas.rates import Window
from odradek.coordinator.metadata.client_quotas import CLIENT_ID, USER, Entity
from tests.support.java_program import JavaProgram

pytestmark = pytest.mark.java

WINDOW = Window(11, 1000)
STARTED_MS = 1_700_000_000_000
USERS, CLIENT_IDS = ("alice", "bob b", "<default>"), ("one", "two", "<default>", "")
UNLIMITED = float(2**63 - 1)


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaProgram]:
    with JavaProgram("KafkaQuotas.java", "11", "1", str(STARTED_MS)) as program:
        yield program


def word(name: str | None) -> str:
    return "-" if name is None else f"={name}".replace(" ", "\N{NO-BREAK SPACE}")


def entity_words(entity: Entity) -> str:
    names = dict(entity)
    return " ".join(word(names[kind]) if kind in names else "." for kind in (USER, CLIENT_ID))


def random_entity(chance: random.Random) -> Entity:
    parts = []
    kinds = chance.choice([(USER,), (CLIENT_ID,), (USER, CLIENT_ID)])
    for kind in kinds:
        names = USERS if kind == USER else CLIENT_IDS[:-1]
        parts.append((kind, chance.choice([None, *names])))
    return frozenset(parts)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_quota_applies_and_is_shared_by_the_same_clients(
    kafka: JavaProgram, seed: int
) -> None:
    chance = random.Random(seed)
    values: dict[Entity, float] = {}
    for _ in range(150):
        entity = random_entity(chance)
        if entity in values and chance.random() < 0.7:
            del values[entity]
            kafka.ask(f"quota PRODUCE {entity_words(entity)} x")
        else:
            values[entity] = float(chance.randrange(1, 10**6))
            kafka.ask(f"quota PRODUCE {entity_words(entity)} {values[entity]}")
        table = QuotaTable(values)
        if not table:
            continue
        for user in USERS:
            for client_id in CLIENT_IDS:
                shared, limit = table.find(user, client_id)
                expected = kafka.ask(f"limit PRODUCE {word(user)} {word(client_id)}")
                expected_limit, *expected_shared = expected.split(" ")
                assert float(expected_limit) == (UNLIMITED if limit is None else limit), values
                if limit is not None:
                    assert expected_shared == [word(shared.user), word(shared.client_id)], values
    for entity in values:
        kafka.ask(f"quota PRODUCE {entity_words(entity)} x")


@pytest.mark.parametrize("kind", ["FETCH", "REQUEST"])
def test_a_rate_is_throttled_for_the_same_time(kafka: JavaProgram, kind: str) -> None:
    chance = random.Random(kind)
    quota = RateQuota(WINDOW, WINDOW.sample_ms) if kind == "REQUEST" else RateQuota(WINDOW)
    now_ms = STARTED_MS
    throttled = 0
    for limit in (10.0, 1000.0, 12_345.678):
        values = {frozenset({(USER, "alice")}): limit}
        quota.table = QuotaTable(values)
        kafka.ask(f"quota {kind} =alice . {limit}")
        for _ in range(400):
            now_ms += chance.choice([0, 1, 7, 90, 500, 999, 1000, 1001, 5000, 10_999, 40_000])
            amount = limit * chance.choice([0, 0.01, 0.5, 1, 3, 20, -1])
            ours = quota.charge(Client("alice", "x"), amount, now_ms)
            assert ours == int(kafka.ask(f"charge {kind} =alice =x {amount!r} {now_ms}"))
            throttled += ours > 0
    assert throttled > 100


@pytest.mark.parametrize("kind", ["CONTROLLER_MUTATION", "PERMISSIVE"])
def test_changes_of_the_metadata_are_throttled_for_the_same_time(
    kafka: JavaProgram, kind: str
) -> None:
    chance = random.Random(kind)
    quota = MutationQuota(WINDOW)
    now_ms = STARTED_MS
    refused = 0
    name = f"client-of-{kind}"
    for limit in (0.5, 3.0, 100.0):
        quota.table = QuotaTable({frozenset({(CLIENT_ID, name)}): limit})
        kafka.ask(f"quota {kind} . ={name} {limit}")
        for _ in range(400):
            now_ms += chance.choice([0, 1, 90, 500, 1000, 5000])
            count = chance.choice([0, 1, 2, 10, 500])
            try:
                throttle_ms = quota.take(
                    Client("bob", name), count, now_ms, strict=kind != "PERMISSIVE"
                )
                ours = str(throttle_ms)
            except ThrottledError as error:
                ours = f"refused {error.throttle_ms}"
            refused += ours != "0"
            assert ours == kafka.ask(f"charge {kind} =bob ={name} {count} {now_ms}")
    assert refused > 100
    kafka.ask(f"quota {kind} . ={name} x")
