"""The decisions of the authorizer: against a model that reads all entries, and against Kafka's."""

import random
import re
from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.authorizer import AclAuthorizer
from odradek.broker.security.decision import Question
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import Principal
from odradek.config.keys_authorizer import AuthorizerSettings
from odradek.coordinator.metadata.acls import Entry, PatternType, Permission
from odradek.coordinator.metadata.host_patterns import java_host
from odradek.protocol.records.cluster_metadata import RemoveAccessControlEntryRecord
from tests.support.acl_sets import (
    NETWORKS,
    AclSet,
    acls_of,
    entry,
    random_question,
    random_set,
)
from tests.support.java_program import java_answers

ALICE = Principal("User", "alice")
IMPLIED = {
    AclOperation.DESCRIBE: {"READ", "WRITE", "DELETE", "ALTER"},
    AclOperation.DESCRIBE_CONFIGS: {"ALTER_CONFIGS"},
}


def model_allows(acl_set: AclSet, question: Question) -> bool:
    """The rules as the authorizer's module states them, by a look at every entry."""
    principal = str(question.principal)
    if principal in acl_set.settings.super_users:
        return True
    on_resource = [one for one in acl_set.entries if is_on(one, question)]
    of_client = [
        one
        for one in on_resource
        if one.principal in (principal, "User:*")
        and (
            one.host in ("*", java_host(question.client_host))
            or is_in_network(question.client_host, one.host)
        )
    ]
    names = {"ALL", question.operation.name}
    denied = [one for one in of_client if one.permission_type == Permission.DENY]
    if any(AclOperation(one.operation).name in names for one in denied):
        return False
    names |= IMPLIED.get(question.operation, set())
    allowed = [one for one in of_client if one.permission_type == Permission.ALLOW]
    if any(AclOperation(one.operation).name in names for one in allowed):
        return True
    return not on_resource and acl_set.settings.allows_by_default


def is_in_network(host: str, pattern: str) -> bool:
    if pattern not in NETWORKS:
        return False
    network = ip_network(re.sub(r"[+\[\]]", "", pattern).replace("010.", "10."), strict=False)
    return host != "0.0.0.0" and ip_address(host.removeprefix("::ffff:")) in network


def is_on(one: Entry, question: Question) -> bool:
    if one.resource_type != question.resource_type:
        return False
    if one.pattern_type == PatternType.PREFIXED:
        return question.name.startswith(one.resource_name)
    return one.resource_name == question.name or (
        one.resource_name == "*" and not question.name.startswith("*")
    )


@given(st.randoms(use_true_random=False))
def test_the_authorizer_decides_as_the_rules_say(chance: random.Random) -> None:
    acl_set = random_set(chance)
    authorizer = acl_set.authorizer()
    for _ in range(20):
        question = random_question(chance)
        for _ in range(2):  # the second decision is a cached one
            assert authorizer.allows(*question) == model_allows(acl_set, question), question


@given(st.randoms(use_true_random=False))
def test_a_change_of_the_entries_is_in_force_at_once(chance: random.Random) -> None:
    present = list(random_set(chance).entries)
    later = list(random_set(chance).entries)
    acls = acls_of(present)
    authorizer = AclAuthorizer(acls, AuthorizerSettings())
    questions = [random_question(chance) for _ in range(5)]
    while present or later:
        if later and (not present or chance.random() < 0.5):
            present.append(later.pop())
            acls.replay(present[-1])
        else:
            removed = present.pop(chance.randrange(len(present)))
            acls.replay_removal(RemoveAccessControlEntryRecord(id=removed.id))
        expected = AclSet(tuple(present), AuthorizerSettings())
        for question in questions:
            assert authorizer.allows(*question) == model_allows(expected, question), question
    assert not any(acls.applying_to(ResourceType.TOPIC, "abc"))


@pytest.mark.java
def test_kafkas_authorizer_decides_the_same() -> None:
    chance = random.Random(7)
    lines: list[str] = []
    found: list[str] = []
    for _ in range(2000):
        acl_set = random_set(chance)
        authorizer = acl_set.authorizer()
        lines += lines_of(acl_set)
        for _ in range(15):
            question = random_question(chance)
            principal, host, operation, resource_type, name = question
            client = f"{hexed(principal.name)} {hexed(host)} {int(operation)} {int(resource_type)}"
            lines.append(f"ask {client} {hexed(name)}")
            found.append("ALLOWED" if authorizer.allows(*question) else "DENIED")
            lines.append(f"any {client}")
            on_any = authorizer.allows_on_any(principal, host, operation, resource_type)
            found.append("ALLOWED" if on_any else "DENIED")
    expected = java_answers("AclDecisions.java", lines)
    asked = [line for line in lines if line.startswith(("ask", "any"))]
    different = [
        line for line, theirs, ours in zip(asked, expected, found, strict=True) if theirs != ours
    ]
    assert not different
    for start in (0, 1):  # both kinds of questions get both answers
        assert min(expected[start::2].count("ALLOWED"), expected[start::2].count("DENIED")) > 2000


def lines_of(acl_set: AclSet) -> Iterator[str]:
    settings = acl_set.settings
    yield f"new {hexed(';'.join(settings.super_users))} {str(settings.allows_by_default).lower()}"
    for one in acl_set.entries:
        yield (
            f"acl {one.resource_type} {hexed(one.resource_name)} {one.pattern_type}"
            f" {hexed(one.principal)} {hexed(one.host)} {one.operation} {one.permission_type}"
        )


def hexed(text: str) -> str:
    return "x" + text.encode().hex()


def test_names_that_clients_invent_do_not_fill_the_memory() -> None:
    authorizer = AclAuthorizer(acls_of([entry()]), AuthorizerSettings(), max_decisions=10)
    for index in range(25):
        name = "a" if index % 2 else f"invented-{index}"
        allowed = authorizer.allows(ALICE, "::1", AclOperation.READ, ResourceType.TOPIC, name)
        assert allowed == (name == "a")
        authorizer.allows(ALICE, "::1", AclOperation.READ, ResourceType.GROUP, name * 250)
    assert len(authorizer._decisions) <= 10
    assert max(len(key[-1]) for key in authorizer._decisions) < 250


def test_many_questions_can_be_decided_apart_from_those_of_clients() -> None:
    present = entry()
    acls = acls_of([present])
    authorizer = AclAuthorizer(acls, AuthorizerSettings())
    apart = authorizer.with_own_cache(100)
    question = ALICE, "::1", AclOperation.READ, ResourceType.TOPIC, "a"
    assert apart.allows(*question) is authorizer.allows(*question) is True
    for index in range(50):
        apart.allows(ALICE, "::1", AclOperation.READ, ResourceType.TOPIC, f"topic-{index}")
    assert len(authorizer._decisions) == 1
    acls.replay_removal(RemoveAccessControlEntryRecord(id=present.id))
    assert apart.allows(*question) is authorizer.allows(*question) is False


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a:0:b", "2001:db8:0:0:0:a:0:b"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("unknown", "unknown"),
    ],
)
def test_addresses_are_compared_as_java_writes_them(host: str, shown: str) -> None:
    assert java_host(host) == shown
