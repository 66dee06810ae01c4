"""The log lines of denied requests."""

import logging

import pytest

from odradek.broker.security.authorizer import AclAuthorizer
from odradek.broker.security.decision import Question
from odradek.broker.security.denials import MAX_LINES, WINDOW_MS
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import Principal
from odradek.config.keys_authorizer import AuthorizerSettings
from odradek.coordinator.metadata.acls import Permission
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import replace
from tests.support.acl_sets import acls_of, entry

DENY = entry(name="secret", permission=Permission.DENY)


@pytest.fixture
def authorizer(caplog: pytest.LogCaptureFixture) -> AclAuthorizer:
    caplog.set_level(logging.INFO, "odradek.authorizer")
    return AclAuthorizer(acls_of([DENY]), AuthorizerSettings())


def question(name: str) -> Question:
    client = Principal("User", "alice"), "127.0.0.1"
    return Question(*client, AclOperation.READ, ResourceType.TOPIC, name)


def test_a_denial_is_logged_in_the_words_of_kafkas_authorizer(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    authorizer.log_denial(question("t"), ApiKey.FETCH, 0)
    authorizer.log_denial(question("secret"), ApiKey.ADD_PARTITIONS_TO_TXN, 0)
    start = "Principal = User:alice is Denied operation = READ from host = 127.0.0.1 on resource ="
    assert caplog.messages == [
        f"{start} Topic:LITERAL:t for request = Fetch with resourceRefCount = 1"
        " based on rule DefaultDeny",
        f"{start} Topic:LITERAL:secret for request = AddPartitionsToTxn with resourceRefCount = 1"
        " based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=secret,"
        " patternType=LITERAL, principal=User:alice, host=*, operation=READ,"
        " permissionType=DENY])",
    ]


def test_codes_that_a_newer_kafka_may_write_are_denials_without_a_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "odradek.authorizer")
    later = replace(DENY, permission_type=9)
    patterned = replace(DENY, id=bytes(16), pattern_type=9)
    authorizer = AclAuthorizer(acls_of([later, patterned]), AuthorizerSettings())
    assert not authorizer.allows(*question("secret"))
    assert not authorizer.allows_on_any(*question("secret")[:4])
    authorizer.log_denial(question("secret"), ApiKey.FETCH, 0)
    assert "permissionType=UNKNOWN" in caplog.messages[0]


def test_repeated_denials_are_counted_and_not_logged(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    for now_ms in range(5):
        authorizer.log_denial(question("t"), ApiKey.FETCH, now_ms)
    assert len(caplog.messages) == 1
    authorizer.log_denial(question("t"), ApiKey.FETCH, WINDOW_MS + 4)
    assert len(caplog.messages) == 3
    assert caplog.messages[1] == "4 more denials were not logged"


def test_a_client_that_invents_names_does_not_fill_the_log(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    for index in range(10 * MAX_LINES):
        authorizer.log_denial(question(f"t{index}"), ApiKey.FETCH, 0)
    assert len(caplog.messages) == MAX_LINES


def test_a_denial_is_one_line_whatever_its_names_are(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    authorizer.log_denial(question("a\nPrincipal = User:root" + "x" * 9999), ApiKey.FETCH, 0)
    [line] = caplog.messages
    assert "\n" not in line
    assert r"Topic:LITERAL:a\nPrincipal" in line
    assert len(line) < 2000
