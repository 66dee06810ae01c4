"""Apache Kafka and odradek answer every request alike, whatever the client is granted.

The rows are the grants of tests/conformance/authorization/grants.py, the columns the requests of
probes.py. The whole matrix runs in a long run; otherwise it is a sample of rows.
"""

import os
import random
from collections.abc import Iterator

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
from tests.conformance.conversation import advertised_versions
from tests.conformance.transcript import differences, is_accident
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import why_no_java
from tests.support.lengths import only_long

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    only_long("the checks of handlers are in broker/security/test_authorization.py"),
]

IS_LONG = os.environ.get("ODRADEK_TEST_LENGTH") == "long"
ROWS_OF_A_SAMPLE = 12
PROBES = all_probes()


def rows() -> list[Grant | None]:
    every = list(all_grants())
    return [None, *(every if IS_LONG else random.Random(5).sample(every, ROWS_OF_A_SAMPLE))]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Kafka's and odradek's."""
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    kafka = AuthorizingKafkaProcess(tmp_path_factory.mktemp("kafka"), SETTINGS)
    ours = BrokerProcess(tmp_path_factory.mktemp("odradek"), SETTINGS)
    sides: list[Side] = []
    try:
        for broker in (kafka.start(), ours.start()):
            sides.append(Side(broker.port, advertised_versions(kafka.port)))
            sides[-1].prepare()
        yield sides[0], sides[1]
        assert ours.crashes_in_log() == [], ours.log_text()
    finally:
        for side in sides:
            side.close()
        kafka.stop()
        ours.stop()


@pytest.mark.parametrize("grant", rows(), ids=str)
def test_every_request_is_answered_as_by_kafka(
    grant: Grant | None, sides: tuple[Side, Side]
) -> None:
    for side in sides:
        side.grant([] if grant is None else list(grant.entries(NAMES)))
    lines = []
    for probe in PROBES:
        (expected, their_refusals), (found, our_refusals) = (
            side.try_probe(probe) for side in sides
        )
        if is_accident(expected):
            continue
        problems = differences(expected, found)
        problems += [f"Kafka says {text}" for text in sorted(their_refusals - our_refusals)]
        if problems:
            lines += [probe.title, *(f"    {line}" for line in problems)]
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
    way: Way, topics: set[str], sides: tuple[Side, Side]
) -> None:
    grant = Grant(AclOperation.DESCRIBE, ResourceType.TOPIC, way)
    read_groups = entry(ResourceType.GROUP, "*", AclOperation.READ)
    for side in sides:
        side.grant([*grant.entries(NAMES), *([] if way is Way.DENIED else [read_groups])])
        assert side.assigned_by_regex("[mo].*") == topics


def test_requests_for_entries_are_answered_as_by_kafka(sides: tuple[Side, Side]) -> None:
    lines = []
    for request, version in acl_requests():
        (expected, their_messages), (found, our_messages) = (
            side.administer(request, version) for side in sides
        )
        problems = differences(expected, found)
        problems += [f"Kafka says {text}" for text in sorted(their_messages - our_messages)]
        if problems:
            lines += [repr(request)[:300], *(f"    {line}" for line in problems)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_api_is_in_the_matrix() -> None:
    assert {probe.key for probe in PROBES} == set(HANDLERS) - WITHOUT_CHECKS
