"""Adding and removing access control entries, and the filters that select them."""

import random
from typing import Any

import pytest

from odradek.coordinator.metadata.acl_changes import MAX_RESULTS, create_acls, delete_acls
from odradek.coordinator.metadata.acls import (
    ANY,
    AclFilter,
    Acls,
    AclSelection,
    Entry,
    PatternType,
    Permission,
    fields_of,
)
from odradek.coordinator.metadata.record_limit import MAX_RECORDS
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import RemoveAccessControlEntryRecord
from odradek.protocol.schema import replace
from tests.support.acl_sets import ENTRY_HOSTS, NAMES, PRINCIPALS, acls_of, entry
from tests.support.metadata import Metadata

EVERYTHING = AclFilter(ANY, None, PatternType.ANY, None, None, ANY, ANY)
READ, WRITE = 3, 4
LEVEL = 33
TOPIC, GROUP = 2, 3


@pytest.fixture
def metadata() -> Metadata:
    return Metadata()


def create(metadata: Metadata, *entries: Entry) -> list[ErrorCode | None]:
    reply = metadata.commit(create_acls(metadata.state.acls, entries, LEVEL))
    return [None if error is None else error.code for error in reply]


def changed(**changes: Any) -> Entry:
    return replace(entry(), **changes)


def test_an_entry_that_is_there_is_not_added_again(metadata: Metadata) -> None:
    first, again, repeated, other = entry(), entry(), entry(name="b"), entry(name="b")
    assert create(metadata, first) == [None]
    assert create(metadata, again, repeated, other) == [None, None, None]
    assert list(metadata.state.acls.by_id) == [first.id, repeated.id]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"pattern_type": 2}, "Invalid patternType MATCH"),
        ({"pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": 16}, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        ({"principal": "alice"}, r"Could not parse principal from `alice`"),
        ({"host": ""}, "Host pattern cannot be null or empty"),
        ({"host": "10.0.0.0/33"}, "'10.0.0.0/33': Value [33] not in range [0,32]"),
        ({"host": "10.0.0.999/8"}, "Value [999] not in range [0,255]"),
        ({"host": "a/8"}, "Invalid CIDR notation 'a/8': Could not parse [a/8]"),
        ({"host": "::1/x"}, "Could not parse [::1/x] - invalid prefix length"),
        ({"host": "::1/129"}, "prefix length must be between 0 and 128"),
        ({"host": "::ffff:10.0.0.1/8"}, "[::ffff:10.0.0.1] - not an IPv6 address"),
        ({"host": "x:y/8"}, "Could not parse [x:y]"),
    ],
)
def test_an_entry_that_is_not_valid_is_refused_and_the_others_are_added(
    metadata: Metadata, changes: dict[str, Any], message: str
) -> None:
    good = entry(name="good")
    outcome = create_acls(metadata.state.acls, [changed(**changes), good], LEVEL)
    [refusal, none] = metadata.commit(outcome)
    assert none is None
    assert refusal is not None
    assert refusal.code is ErrorCode.INVALID_REQUEST
    assert message in refusal.message
    assert list(metadata.state.acls.by_id) == [good.id]


@pytest.mark.parametrize(("level", "code"), [(31, ErrorCode.UNSUPPORTED_VERSION), (32, None)])
def test_networks_are_added_once_the_metadata_version_has_them(
    metadata: Metadata, level: int, code: ErrorCode | None
) -> None:
    entries = [changed(host="10.0.0.0/8"), changed(host="2001:db8::/32")]
    reply = metadata.commit(create_acls(metadata.state.acls, entries, level))
    assert [error and error.code for error in reply] == [code, code]


def test_one_request_adds_and_removes_no_more_than_one_operation_may(metadata: Metadata) -> None:
    entries = [entry(name=f"t{index}") for index in range(MAX_RECORDS + 1)]
    with pytest.raises(ApiError) as caught:
        create_acls(metadata.state.acls, entries, LEVEL)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    create(metadata, *entries[:-1])
    create(metadata, entries[-1])
    with pytest.raises(ApiError) as caught:
        delete_acls(metadata.state.acls, [EVERYTHING])
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    some = EVERYTHING._replace(name="t1", pattern_type=PatternType.LITERAL)
    assert metadata.commit(delete_acls(metadata.state.acls, [some])) == [[entries[1]]]
    assert len(metadata.state.acls.by_id) == MAX_RECORDS


def test_each_filter_of_a_request_gets_its_own_matches(metadata: Metadata) -> None:
    read, write, other = entry(), entry(operation=WRITE), entry(name="b")  # type: ignore[arg-type]
    create(metadata, read, write, other)
    of_a = EVERYTHING._replace(name="a")
    reply = metadata.commit(
        delete_acls(
            metadata.state.acls,
            [of_a, of_a._replace(operation=READ), of_a._replace(resource_type=99)],
        )
    )
    assert reply[:2] == [[read, write], [read]]
    assert isinstance(reply[2], ApiError)
    assert reply[2].code is ErrorCode.INVALID_REQUEST
    assert list(metadata.state.acls.by_id) == [other.id]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, "a ab* * g"),
        ({"resource_type": TOPIC}, "a ab* *"),
        ({"resource_type": GROUP}, "g"),
        ({"name": "abc"}, ""),
        ({"name": "ab"}, "ab*"),
        ({"name": "abc", "pattern_type": PatternType.MATCH}, "ab* *"),
        ({"name": "a", "pattern_type": PatternType.MATCH}, "a *"),
        ({"name": "a", "pattern_type": PatternType.LITERAL}, "a"),
        ({"name": "a", "pattern_type": PatternType.PREFIXED}, ""),
        ({"pattern_type": PatternType.LITERAL}, "a * g"),
        ({"pattern_type": PatternType.PREFIXED}, "ab*"),
        ({"principal": "User:bob"}, "g"),
        ({"host": "10.0.0.1"}, "ab*"),
        ({"operation": WRITE}, "*"),
        ({"permission": Permission.DENY}, "a"),
        ({"permission": 99}, ""),
    ],
)
def test_a_filter_selects_as_kafkas(
    metadata: Metadata, changes: dict[str, Any], names: str
) -> None:
    entries = {
        "a": entry(permission=Permission.DENY),
        "ab*": changed(resource_name="ab", pattern_type=4, host="10.0.0.1"),
        "*": changed(resource_name="*", operation=WRITE),
        "g": changed(resource_name="g", resource_type=GROUP, principal="User:bob"),
    }
    create(metadata, *entries.values())
    selected = {
        fields_of(one) for one in metadata.state.acls.select(EVERYTHING._replace(**changes))
    }
    assert selected == {fields_of(entries[name]) for name in names.split()}


def test_many_filters_select_what_each_of_them_selects_alone() -> None:
    choose = random.Random(36)
    permissions = tuple(Permission)
    for _ in range(20):
        acls = acls_of(
            changed(
                id=choose.randbytes(16),
                resource_type=choose.choice((TOPIC, GROUP)),
                resource_name=choose.choice(NAMES),
                pattern_type=choose.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                principal=choose.choice(PRINCIPALS),
                host=choose.choice(ENTRY_HOSTS),
                operation=choose.choice((READ, WRITE)),
                permission_type=choose.choice(permissions),
            )
            for _ in range(30)
        )
        selection = AclSelection(acls)
        for _ in range(200):
            wanted = AclFilter(
                choose.choice((ANY, TOPIC, GROUP)),
                choose.choice((None, *NAMES, "abcd")),
                choose.choice(tuple(PatternType)),
                choose.choice((None, *PRINCIPALS)),
                choose.choice((None, *ENTRY_HOSTS)),
                choose.choice((ANY, READ, WRITE)),
                choose.choice((ANY, *permissions)),
            )
            found = [one.id for one in selection.matches(wanted)]
            assert sorted(found) == sorted(one.id for one in acls.select(wanted))


def test_entries_may_change_while_they_are_selected() -> None:
    entries = [changed(resource_name=f"t{at}", id=at.to_bytes(16)) for at in range(20)]
    acls = acls_of(entries)
    coming = iter(range(20, 40))

    def step() -> None:
        at = next(coming, None)
        if at is not None:
            acls.replay(changed(resource_name=f"t{at}", id=at.to_bytes(16)))
            acls.replay_removal(RemoveAccessControlEntryRecord(id=(at - 1).to_bytes(16)))

    selected = list(acls.select(EVERYTHING, step))
    assert selected == entries[:19]  # those that were there all the time


def test_entries_that_are_added_and_removed_together_are_found_as_one_by_one() -> None:
    """Also while those that were removed are still in the index."""
    choose = random.Random(36)
    together, one_by_one = Acls(), Acls()
    lives: dict[bytes, Entry] = {}
    for _ in range(60):
        old = [entry_id for entry_id in lives if choose.random() < 0.4]
        together.replay_removals(old)
        for entry_id in old:
            one_by_one.replay_removal(RemoveAccessControlEntryRecord(id=entry_id))
            del lives[entry_id]
        for _ in range(choose.randrange(3)):
            assert found_in(together) == found_in(one_by_one)
            together.clean_index()
        new = {each.id: each for each in (any_entry(choose) for _ in range(8))}
        lives |= new
        together.replay_added(acls_of(new.values()))
        for each in new.values():
            one_by_one.replay(each)
        assert found_in(together) == found_in(one_by_one)
    together.replay_removals(list(lives))
    assert not any(found_in(together))
    together.clean_index()
    assert not any(together.prefix_lengths(resource_type) for resource_type in (TOPIC, GROUP))
    assert not together.records()


def any_entry(choose: random.Random) -> Entry:
    return changed(
        id=bytes([choose.randrange(40)]) * 16,
        resource_type=choose.choice((TOPIC, GROUP)),
        resource_name=choose.choice(NAMES),
        pattern_type=choose.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        principal=choose.choice(PRINCIPALS),
        operation=choose.choice((READ, WRITE)),
    )


def found_in(acls: Acls) -> list[object]:
    """What each kind of look-up finds. Of equal entries that differ in their ids, one is enough."""
    found: list[object] = []
    for resource_type in (TOPIC, GROUP):
        for name in NAMES:
            patterns = acls.applying_to(resource_type, name)
            found += [sorted(one) for by in patterns for one in by.values()]
        for principal in PRINCIPALS:
            found += sorted(one.id for one in acls.of_principal(resource_type, principal))
    found += sorted(one.id for one in acls.select(EVERYTHING))
    found += [fields_of(one) for one in acls.by_id.values() if one not in acls]
    return found


def test_the_results_of_one_request_are_limited(metadata: Metadata) -> None:
    create(metadata, *(entry(name=f"t{number}") for number in range(100)))
    at_most = delete_acls(metadata.state.acls, [EVERYTHING] * (MAX_RESULTS // 100))
    assert len(at_most.reply) == MAX_RESULTS // 100
    assert len(at_most.records) == 100
    with pytest.raises(ApiError) as caught:
        delete_acls(metadata.state.acls, [EVERYTHING] * (MAX_RESULTS // 100 + 1))
    assert caught.value.code is ErrorCode.INVALID_REQUEST
