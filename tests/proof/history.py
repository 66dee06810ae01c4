"""What many clients did, and what they were told: operations, as their processes write them down.

A process writes a JSON line when it begins an operation, and another when it knows the outcome.
Lines with the same `id` belong together; a later one adds fields or replaces them:

    {"id": 7, "at": 1200, "is": "invoke", "kind": "work", "sends": [["t", 0, "a-7", null]]}
    {"id": 7, "at": 1900, "is": "ok", "sends": [["t", 0, "a-7", 41]]}

`at` is the machine's monotonic clock in nanoseconds, which all processes share. `is` may also be
"commit": the commit of this transaction is about to be asked for. An operation without an outcome
is unknown: its process was killed, or still waits.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

NEVER_NS = (1 << 63) - 1
FINAL = "final"  # the process that reads everything from the beginning, when all others have ended


class Key(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Sent(NamedTuple):
    """A record that was sent; each value only once. The offset is known if it was acknowledged."""

    key: Key
    value: str
    offset: int | None = None


class Polled(NamedTuple):
    """A record that a reader of committed records got."""

    key: Key
    offset: int
    value: str


class Kind(StrEnum):
    """What an operation is, and which fields it has."""

    WORK = "work"  # sends and polls: one of them, or a transaction
    ASSIGN = "assign"  # it reads `new` from elsewhere, and then has `keys`
    COMMIT = "commit"  # of `offsets`, outside a transaction
    COMMITTED = "committed"  # the broker says that these are the group's `offsets`
    RESET = "reset"  # an administrator sets `offsets`
    OWNERS = "owners"  # the broker says which member has which partitions
    DELIVERED = "delivered"  # `records` of a share group
    SETTLED = "settled"  # the broker has confirmed that `records` are accepted or rejected
    CREATE = "create"  # a topic
    DELETE = "delete"


class Outcome(StrEnum):
    """What is known of the end."""

    OK = "ok"
    FAIL = "fail"  # it has certainly not happened
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a process. A process has one life: it is another one after a restart."""

    process: str
    kind: Kind = Kind.WORK
    invoked_ns: int
    completed_ns: int = NEVER_NS
    outcome: Outcome = Outcome.OK
    # work
    sends: tuple[Sent, ...] = ()
    polls: tuple[Polled, ...] = ()
    is_transaction: bool = False
    commit_ns: int | None = None  # when the commit of a transaction was asked for
    # groups
    group: str = ""
    member: str = ""
    generation: int | None = None
    keys: tuple[Key, ...] = ()
    new: tuple[Key, ...] = ()
    from_beginning: bool = False  # `new` are read from their first records
    offsets: Mapping[Key, int] = field(default_factory=dict)
    owners: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)
    records: tuple[tuple[Key, int], ...] = ()  # partitions and offsets
    topic: str = ""

    @property
    def is_written(self) -> bool:
        """Whether what it sends must be found."""
        return self.outcome is Outcome.OK

    @property
    def is_undone(self) -> bool:
        """Whether nobody may ever read what it sends."""
        return self.outcome is Outcome.FAIL or (self.is_transaction and self.commit_ns is None)


# -- from JSON lines -------------------------------------------------------------------------------


def read_history(files: Iterable[Path]) -> list[Operation]:
    """What processes have written; the name of a file is that of its process."""
    return [each for path in files for each in operations(path.stem, path.read_text().splitlines())]


def operations(process: str, lines: Iterable[str]) -> Iterator[Operation]:
    """The operations of one process in the order of their beginning."""
    entries: dict[int, dict[str, Any]] = {}
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # it was killed while it wrote this
        known = entries.setdefault(entry["id"], {"invoked_ns": entry["at"]})
        step = entry.pop("is")
        if step == "commit":
            known["commit_ns"] = entry["at"]
        elif step != "invoke":
            known["completed_ns"] = entry["at"]
            known["outcome"] = step
        known |= entry
    for entry in entries.values():
        yield _operation(process, entry)


def _operation(process: str, entry: Mapping[str, Any]) -> Operation:
    return Operation(
        process=process,
        kind=Kind(entry["kind"]),
        invoked_ns=entry["invoked_ns"],
        completed_ns=entry.get("completed_ns", NEVER_NS),
        outcome=Outcome(entry.get("outcome", Outcome.UNKNOWN)),
        sends=tuple(Sent(Key(*each[:2]), *each[2:]) for each in entry.get("sends", ())),
        polls=tuple(Polled(Key(*each[:2]), *each[2:]) for each in entry.get("polls", ())),
        is_transaction=entry.get("is_transaction", False),
        commit_ns=entry.get("commit_ns"),
        group=entry.get("group", ""),
        member=entry.get("member", ""),
        generation=entry.get("generation"),
        keys=_keys(entry.get("keys", ())),
        new=_keys(entry.get("new", ())),
        from_beginning=entry.get("from_beginning", False),
        offsets={Key(*each[:2]): each[2] for each in entry.get("offsets", ())},
        owners={member: _keys(each) for member, each in entry.get("owners", {}).items()},
        records=tuple((Key(*each[:2]), each[2]) for each in entry.get("records", ())),
        topic=entry.get("topic", ""),
    )


def _keys(found: Iterable[Sequence[Any]]) -> tuple[Key, ...]:
    return tuple(Key(*each) for each in found)


# -- topics that are deleted and created again -----------------------------------------------------


class Renewal(NamedTuple):
    """The last time at which a topic was deleted and created again."""

    delete_ns: int  # then it was asked to be deleted, and that was confirmed
    created_ns: int  # from then on it was there and was not asked to be deleted


def renewals(history: Iterable[Operation]) -> dict[str, Renewal]:
    """Of the topics that were deleted and created again while others used them."""
    found: dict[str, Renewal] = {}
    changes = [each for each in history if each.kind in (Kind.CREATE, Kind.DELETE)]
    for each in sorted(changes, key=lambda each: each.invoked_ns):
        if each.kind is Kind.DELETE:
            before = found.get(each.topic, Renewal(-1, NEVER_NS)).delete_ns
            is_sure = each.outcome is Outcome.OK
            found[each.topic] = Renewal(each.invoked_ns if is_sure else before, NEVER_NS)
        elif each.topic in found and each.outcome is Outcome.OK:
            found[each.topic] = found[each.topic]._replace(created_ns=each.completed_ns)
    return found
