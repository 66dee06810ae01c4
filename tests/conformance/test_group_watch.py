"""The judge of the group tests notices what it is there for."""

import json
from pathlib import Path

import pytest

from tests.conformance.group_described import Described, GroupWatch
from tests.conformance.group_member import Member
from tests.conformance.group_verdict import assert_sound

AT = ("t", 0)


def assigned(at_ms: int = 0, *partitions: int) -> dict[str, object]:
    return {"name": "partitions_assigned", "timestamp": at_ms, "partitions": places(partitions)}


def revoked(at_ms: int, *partitions: int) -> dict[str, object]:
    return {"name": "partitions_revoked", "timestamp": at_ms, "partitions": places(partitions)}


def places(partitions: tuple[int, ...]) -> list[dict[str, object]]:
    return [{"topic": "t", "partition": partition} for partition in partitions or (0,)]


def consumed(first: int, last: int, count: int | None = None) -> dict[str, object]:
    count = last - first + 1 if count is None else count
    summary = {
        "topic": "t",
        "partition": 0,
        "count": count,
        "minOffset": first,
        "maxOffset": last,
    }
    return {"name": "records_consumed", "count": count, "partitions": [summary]}


def committed(offset: int, at_ms: int = 10, *, success: bool = True) -> dict[str, object]:
    offsets = [{"topic": "t", "partition": 0, "offset": offset}]
    return {
        "name": "offsets_committed",
        "timestamp": at_ms,
        "offsets": offsets,
        "success": success,
    }


def member_that_said(scratch: Path, *events: dict[str, object]) -> Member:
    file = scratch / f"said-{len(list(scratch.iterdir()))}"
    file.write_text("".join(json.dumps(event) + "\n" for event in events) + "a warning\n")
    member = Member(file.name, ["cat", str(file)])
    member.wait()
    return member


def test_what_nobody_committed_may_be_read_again(tmp_path: Path) -> None:
    died = member_that_said(tmp_path, assigned(), consumed(0, 4), committed(5), consumed(5, 9))
    died.killed_at_ms = 15
    heir = member_that_said(tmp_path, assigned(20), consumed(5, 12), committed(13, 30))
    assert_sound([died, heir], {AT: 13})
    assert died.noise == ["a warning\n"]


def test_a_refused_commit_settles_nothing(tmp_path: Path) -> None:
    late = member_that_said(
        tmp_path, assigned(), consumed(0, 4), committed(5, success=False), revoked(11)
    )
    heir = member_that_said(tmp_path, assigned(20), consumed(0, 4), committed(5, 30))
    assert_sound([late, heir], {AT: 5})
    assert late.partitions == set()


def test_what_was_committed_and_read_again_is_noticed(tmp_path: Path) -> None:
    first = member_that_said(tmp_path, assigned(), consumed(0, 4), committed(5))
    again = member_that_said(tmp_path, assigned(20), consumed(4, 9), committed(10, 30))
    with pytest.raises(AssertionError, match=r"committed, and read again: \[\('t', 0, 4\)\]"):
        assert_sound([first, again], {AT: 10})


def test_a_partition_that_is_kept_is_not_begun_anew(tmp_path: Path) -> None:
    keeps = member_that_said(
        tmp_path, assigned(), consumed(0, 4), assigned(5, 1), revoked(6, 1), committed(5)
    )
    again = member_that_said(tmp_path, assigned(20), consumed(0, 4), committed(5, 30))
    with pytest.raises(AssertionError, match="committed, and read again"):
        assert_sound([keeps, again], {AT: 5})


def test_a_record_that_nobody_read_is_noticed(tmp_path: Path) -> None:
    member = member_that_said(tmp_path, assigned(), consumed(0, 4), committed(5))
    with pytest.raises(AssertionError, match=r"never read: \[\('t', 0, 5\)\]"):
        assert_sound([member], {AT: 6})


def test_a_gap_within_a_poll_is_noticed(tmp_path: Path) -> None:
    member = member_that_said(tmp_path, assigned(), consumed(0, 4, count=4))
    with pytest.raises(AssertionError, match="a gap"):
        assert_sound([member], {AT: 5})


def test_a_gap_between_polls_is_noticed_though_another_read_it(tmp_path: Path) -> None:
    first = member_that_said(
        tmp_path, assigned(), consumed(0, 0), committed(1), consumed(1, 4), revoked(11)
    )
    leaps = member_that_said(tmp_path, assigned(20), consumed(1, 1), consumed(4, 5))
    with pytest.raises(AssertionError, match="2 is due"):
        assert_sound([first, leaps], {AT: 6})


def test_who_begins_where_nobody_has_been_is_noticed(tmp_path: Path) -> None:
    first = member_that_said(tmp_path, assigned(), consumed(0, 4), consumed(5, 9), revoked(11))
    leaps = member_that_said(tmp_path, assigned(20), consumed(3, 9))
    with pytest.raises(AssertionError, match="began where nobody was"):
        assert_sound([first, leaps], {AT: 10})


def test_who_begins_before_the_last_commit_is_noticed(tmp_path: Path) -> None:
    first = member_that_said(
        tmp_path, assigned(), consumed(0, 4), consumed(5, 9), committed(10), revoked(11)
    )
    late = member_that_said(tmp_path, assigned(20), consumed(5, 9))
    with pytest.raises(AssertionError, match="began before 10"):
        assert_sound([first, late], {AT: 10})


def test_a_commit_of_an_owner_that_has_an_heir_is_noticed(tmp_path: Path) -> None:
    zombie = member_that_said(tmp_path, assigned(), consumed(0, 4), committed(5, 25))
    heir = member_that_said(tmp_path, assigned(20), consumed(0, 4))
    with pytest.raises(AssertionError, match=r"could commit .* since 20"):
        assert_sound([zombie, heir], {AT: 5})


def test_a_description_with_two_owners_is_noticed() -> None:
    sound = Described("classic", "Stable", {"a": frozenset([AT]), "b": frozenset([("t", 1)])})
    assert sound.owned_twice() == []
    twice = sound._replace(shares={**sound.shares, "c": frozenset([AT])})
    assert twice.owned_twice() == [AT]
    watch = GroupWatch("127.0.0.1:9", "g")
    watch.looks = 1
    watch.assert_sound()
    watch.faults.append(twice)
    with pytest.raises(AssertionError):
        watch.assert_sound()
