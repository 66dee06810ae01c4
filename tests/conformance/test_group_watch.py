"""The judge of the group tests notices what it is there for."""

import json
from pathlib import Path

import pytest

from tests.conformance.group_watch import Group, Member

ASSIGNED = {"name": "partitions_assigned", "partitions": [{"topic": "t", "partition": 0}]}
REVOKED = {"name": "partitions_revoked", "partitions": [{"topic": "t", "partition": 0}]}


def consumed(first: int, last: int, count: int | None = None) -> dict[str, object]:
    count = last - first + 1 if count is None else count
    summary = {"partition": 0, "count": count, "minOffset": first, "maxOffset": last}
    return {"name": "records_consumed", "count": count, "partitions": [summary]}


def committed(offset: int, *, success: bool = True) -> dict[str, object]:
    place = {"topic": "t", "partition": 0, "offset": offset}
    return {"name": "offsets_committed", "offsets": [place], "success": success}


def member_that_said(scratch: Path, *events: dict[str, object]) -> Member:
    file = scratch / f"said-{len(list(scratch.iterdir()))}"
    file.write_text("".join(json.dumps(event) + "\n" for event in events) + "a warning\n")
    member = Member(file.name, ["cat", str(file)])
    member.wait()
    return member


def group_of(scratch: Path, *members: Member) -> Group:
    group = Group("kafka-python", "nowhere", "t", "g", scratch)
    group.members += members
    return group


def test_what_nobody_committed_may_be_read_again(tmp_path: Path) -> None:
    died = member_that_said(tmp_path, ASSIGNED, consumed(0, 4), committed(5), consumed(5, 9))
    heir = member_that_said(tmp_path, ASSIGNED, consumed(5, 12), committed(13))
    group_of(tmp_path, died, heir).assert_sound({0: 13})
    assert died.noise == ["a warning\n"]


def test_a_refused_commit_settles_nothing(tmp_path: Path) -> None:
    late = member_that_said(
        tmp_path, ASSIGNED, consumed(0, 4), committed(5, success=False), REVOKED
    )
    heir = member_that_said(tmp_path, ASSIGNED, consumed(0, 4), committed(5))
    group_of(tmp_path, late, heir).assert_sound({0: 5})
    assert late.partitions == set()


def test_what_was_committed_and_read_again_is_noticed(tmp_path: Path) -> None:
    first = member_that_said(tmp_path, ASSIGNED, consumed(0, 4), committed(5))
    again = member_that_said(tmp_path, ASSIGNED, consumed(4, 9), committed(10))
    with pytest.raises(AssertionError, match=r"committed, and read again: \[\(0, 4\)\]"):
        group_of(tmp_path, first, again).assert_sound({0: 10})


def test_a_record_that_nobody_read_is_noticed(tmp_path: Path) -> None:
    member = member_that_said(tmp_path, ASSIGNED, consumed(0, 4), committed(5))
    with pytest.raises(AssertionError):
        group_of(tmp_path, member).assert_sound({0: 6})


def test_a_gap_within_a_poll_is_noticed(tmp_path: Path) -> None:
    member = member_that_said(tmp_path, ASSIGNED, consumed(0, 4, count=4))
    with pytest.raises(AssertionError, match="a gap"):
        group_of(tmp_path, member).assert_sound({0: 5})
