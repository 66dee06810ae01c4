"""What a client must be allowed to do in order to write exactly once."""

from collections.abc import Iterator

import pytest

pytest.importorskip("pyarrow")

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_writing import write_rows
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from tests.support.committed import committed_values
from tests.support.running_clients import running_clients
from tests.support.secured_broker import SecuredBroker, secured_broker
from tests.support.task_attempts import rows
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

PREFIXED, LITERAL = ResourcePatternType.PREFIXED, ResourcePatternType.LITERAL
# What docs/guides/spark-writing.md says.
NEEDED = (
    (ResourceType.TOPIC, "orders", LITERAL, AclOperation.WRITE),
    (ResourceType.TOPIC, "orders", LITERAL, AclOperation.READ),
    (ResourceType.TRANSACTIONAL_ID, "odradek", PREFIXED, AclOperation.WRITE),
    (ResourceType.GROUP, "odradek", PREFIXED, AclOperation.READ),
)
AT_LEAST_ONCE = NEEDED[:1]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker("odradek", tmp_path_factory.mktemp("secured"), tls=False) as broker:
        create_topic(broker.plain_servers, "orders")
        yield broker


@pytest.fixture
def admin(secured: SecuredBroker) -> Iterator[AdminClient]:
    client = AdminClient({"bootstrap.servers": secured.plain_servers})
    yield client
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    for answer in client.delete_acls([every]).values():
        answer.result(10)


def allow(
    admin: AdminClient,
    rights: tuple[tuple[ResourceType, str, ResourcePatternType, AclOperation], ...],
) -> None:
    wanted = [
        AclBinding(kind, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)
        for kind, name, pattern, operation in rights
    ]
    for answer in admin.create_acls(wanted).values():
        answer.result(10)


def as_alice(secured: SecuredBroker, **more: str) -> WriteOptions:
    login = {
        "kafka.bootstrap.servers": secured.sasl_servers,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": "alice-secret",
    }
    return write_options({**login, "topic": "orders", **more})


def test_the_documented_rights_are_enough(
    secured: SecuredBroker, admin: AdminClient, topic: str
) -> None:
    allow(admin, NEEDED)
    for _ in range(2):
        assert (
            write_rows(as_alice(secured), TaskName(f"odradek-{topic}", 0, 0), [rows(topic)]).rows
            == 1
        )
    assert committed_values(secured.plain_servers, "orders", 1).count(topic.encode()) == 1


@pytest.mark.parametrize("missing", range(len(NEEDED)))
def test_a_missing_right_is_an_error_that_names_them_all(
    secured: SecuredBroker, admin: AdminClient, topic: str, missing: int
) -> None:
    allow(admin, NEEDED[:missing] + NEEDED[missing + 1 :])
    before = running_clients()
    with pytest.raises(WriteError, match=r"AUTHORIZATION_FAILED.* needs these rights: WRITE and"):
        write_rows(as_alice(secured), TaskName(f"odradek-{topic}", 0, 0), [rows(topic)])
    assert running_clients() <= before
    assert topic.encode() not in committed_values(secured.plain_servers, "orders", 1)


def test_at_least_once_needs_only_the_right_to_write(
    secured: SecuredBroker, admin: AdminClient, topic: str
) -> None:
    allow(admin, AT_LEAST_ONCE)
    to = as_alice(secured, delivery="at-least-once")
    assert write_rows(to, TaskName(f"odradek-{topic}", 0, 0), [rows(topic)]).rows == 1
    assert topic.encode() in committed_values(secured.plain_servers, "orders", 1)
