"""Apache Kafka and odradek answer every request alike, whatever the client is granted.

The rows are the grants of tests/conformance/authorization/grants.py, the columns the requests of
probes.py. The whole matrix runs in a long run; otherwise it is a sample of rows.
"""

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.security.operations import AclOperation, ResourceType
from tests.conformance.authorization.acl_requests import acl_requests
from tests.conformance.authorization.brokers import SETTINGS, AuthorizingKafkaProcess
from tests.conformance.authorization.grants import Grant, Way, all_grants, entry
from tests.conformance.authorization.probes import (
    DATA,
    DOOMED,
    NAMES,
    OTHER,
    WITHOUT_CHECKS,
    all_probes,
)
from tests.conformance.authorization.side import Side
from tests.conformance.compared_conversations import kafkas_versions
from tests.conformance.conversation import Versions, advertised_versions
from tests.conformance.transcript import differences, is_accident
from tests.support.broker_process import BrokerProcess, running
from tests.support.kafka_answers import (
    ASKS_KAFKA,
    Given,
    as_kept,
    kafka_answers,
    when_asked,
)
from tests.support.lengths import LONG

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

ROWS_OF_A_SAMPLE = 12
PROBES = all_probes()


def rows() -> list[Grant | None]:
    every = list(all_grants())
    sample = random.Random(5).sample(every, ROWS_OF_A_SAMPLE)
    return [None, *sample, *([each for each in every if each not in sample] if LONG else [])]


@contextmanager
def side_of(broker: BrokerProcess, versions: Callable[[], Versions]) -> Iterator[Side]:
    """A broker, prepared for the probes."""
    with running(broker):
        side = Side(broker.port, versions())
        try:
            side.prepare()
            yield side
        finally:
            side.close()
        assert broker.crashes_in_log() == [], broker.log_text()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given[Side]]:
    """The reference's side, if it is asked."""
    process = AuthorizingKafkaProcess(tmp_path_factory.mktemp("kafka"), SETTINGS)
    with when_asked(lambda: side_of(process, lambda: advertised_versions(process.port))) as side:
        yield side


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory, kafka: Given[Side]) -> Iterator[Side]:
    process = BrokerProcess(tmp_path_factory.mktemp("odradek"), SETTINGS)
    theirs = functools.partial(kafkas_versions, lambda: kafka().versions, "authorization/versions")
    with side_of(process, theirs) as side:
        yield side


Rows = dict[str, list[tuple[str, Any, set[str]]]]


@pytest.fixture(scope="module")
def kafkas_rows(kafka: Given[Side]) -> Given[Rows]:
    """What the reference answers, if it is asked."""
    return functools.cache(lambda: answers_by_row(kafka()))


@pytest.fixture(scope="module")
def our_rows(odradek: Side) -> Rows:
    return answers_by_row(odradek)


def answers_by_row(side: Side) -> Rows:
    """The title of each probe, its answer and the messages of refusals, by row.

    All rows, because what a row is answered depends on what those before have changed.
    """
    found: Rows = {}
    for grant in rows():
        side.grant([] if grant is None else list(grant.entries(NAMES)))
        found[str(grant)] = [(probe.title, *side.try_probe(probe)) for probe in PROBES]
    return found


@pytest.mark.parametrize("row", [str(grant) for grant in rows()])
def test_every_request_is_answered_as_by_kafka(
    row: str, kafkas_rows: Given[Rows], our_rows: Rows
) -> None:
    name = f"authorization/{row}".replace(" ", "_")
    compare(kafka_answers(name, lambda: kafkas_rows()[row]), as_kept(our_rows[row]))


def compare(expected: Any, found: Any) -> None:
    """Fail where an answer differs, or lacks a message that Kafka's has."""
    lines = []
    for (title, answer, messages), (our_title, our_answer, our_messages) in zip(
        expected, found, strict=True
    ):
        assert title == our_title
        if is_accident(answer):
            continue
        problems = differences(answer, our_answer)
        problems += [f"Kafka says {text}" for text in messages if text not in our_messages]
        if problems:
            lines += [title, *(f"    {line}" for line in problems)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize(
    ("way", "topics"),
    [
        (Way.LITERAL, {DATA, DOOMED}),
        (Way.PREFIXED, {DATA, DOOMED}),
        (Way.WILDCARD, {DATA, DOOMED, OTHER}),
        (Way.DENIED, {OTHER}),
    ],
)
def test_an_expression_matches_only_topics_that_may_be_described(
    way: Way, topics: set[str], kafka: Given[Side], odradek: Side
) -> None:
    grant = Grant(AclOperation.DESCRIBE, ResourceType.TOPIC, way)
    read_groups = entry(ResourceType.GROUP, "*", AclOperation.READ)
    for side in (kafka(), odradek) if ASKS_KAFKA else (odradek,):
        side.grant([*grant.entries(NAMES), *([] if way is Way.DENIED else [read_groups])])
        assert side.assigned_by_regex("[mo].*") == topics


def test_requests_for_entries_are_answered_as_by_kafka(kafka: Given[Side], odradek: Side) -> None:
    expected = kafka_answers("authorization/entries", lambda: answers_about_entries(kafka()))
    compare(expected, as_kept(answers_about_entries(odradek)))


def answers_about_entries(side: Side) -> list[tuple[str, Any, set[str]]]:
    """Each request of the administrator, its answer and the messages of errors."""
    return [
        (repr(request)[:300], *side.administer(request, version))
        for request, version in acl_requests()
    ]


def test_every_api_is_in_the_matrix() -> None:
    assert {probe.key for probe in PROBES} == set(HANDLERS) - WITHOUT_CHECKS
