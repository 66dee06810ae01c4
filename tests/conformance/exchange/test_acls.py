"""Access control entries in a directory that Kafka and odradek serve in turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from tests.conformance.authorization.brokers import SETTINGS, AuthorizingKafkaProcess
from tests.conformance.authorization.grants import Grant, Way
from tests.conformance.authorization.probes import NAMES, all_probes
from tests.conformance.authorization.side import Side
from tests.conformance.conversation import advertised_versions, patiently
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import why_no_java
from tests.support.lengths import only_long

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("entries are exchanged in test_exchange.py"),
]

# Their answers depend on nothing but the directory and its entries.
ASKED = (ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_ACLS)
PROBES = [each for each in all_probes() if each.key in ASKED and each.topic is None]
OF_KAFKA = Grant(AclOperation.READ, ResourceType.TOPIC, Way.PREFIXED)
OF_ODRADEK = Grant(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, Way.DENIED)


@contextmanager
def served(broker: BrokerProcess) -> Iterator[Side]:
    side = Side(broker.start().port, advertised_versions(broker.port))
    try:
        yield side
        assert broker.terminate() in broker.clean_exit_codes, broker.log_text()
    finally:
        side.close()
        broker.stop()


def answers(side: Side) -> list[object]:
    return [without_epochs(side.try_probe(probe)) for probe in PROBES]


def without_epochs(value: object) -> object:
    """Each start raises the leader epochs."""
    if isinstance(value, dict):
        return {name: without_epochs(one) for name, one in value.items() if name != "leader_epoch"}
    return [without_epochs(one) for one in value] if isinstance(value, list | tuple) else value


def test_entries_are_enforced_whoever_wrote_them(tmp_path: Path) -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    with served(AuthorizingKafkaProcess(tmp_path, SETTINGS)) as kafka:
        kafka.prepare()
        kafka.grant(list(OF_KAFKA.entries(NAMES)))
        entries, expected = kafka.entries(), answers(kafka)
    with served(BrokerProcess(tmp_path, SETTINGS)) as ours:
        assert ours.entries() == entries
        assert answers(ours) == expected
        ours.grant(list(OF_ODRADEK.entries(NAMES)))
        entries, expected = ours.entries(), answers(ours)
    with served(AuthorizingKafkaProcess(tmp_path, SETTINGS)) as kafka:
        patiently(lambda: kafka.entries() == entries or None)
        assert patiently(lambda: (found := answers(kafka)) == expected and found) == expected
