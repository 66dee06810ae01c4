"""What must hold of a broker, by what its clients know: simulation.py lists it."""

from collections.abc import Iterator, Mapping

from .claims import Found, Shared, committed_offset, settled, shared_of, state_of
from .life import Place as PlaceOfLife
from .world import COMPACTED, Known, Place, World

AllFound = dict[Place, Found]


async def check(world: World) -> None:
    """Compare what the broker has with what its clients know. Nothing is in flight."""
    await settled(world.broker)
    state = state_of(world.broker)
    found = {Place(place.topic, place.partition): each for place, each in state.items()}
    known = world.known
    for what in [
        *_record_faults(known, found),
        *_read_faults(known, found),
        *_transaction_faults(known, found),
        *_offset_faults(known, await committed_offset(world.broker)),
        *_topic_faults(known, {place.topic for place in found}),
        *_timer_faults(world, found),
        *_share_faults(known, shared_of(world.broker, state)),
    ]:
        world.fault(what)


def _record_faults(known: Known, found: AllFound) -> Iterator[str]:
    for place, offsets in known.acknowledged.items():
        records = found[place].records
        for offset, value in offsets.items():
            there = records.get(offset)
            if there is None and place.topic == COMPACTED:
                key = known.sent[value].key
                if any(at > offset and each[0] == key for at, each in records.items()):
                    continue
            if there is None or there[1] != value:
                yield f"{place}: {value!r} was acknowledged at {offset}, which has {there}"
    for place, each in found.items():
        last: dict[str, int] = {}
        for offset, (_, record) in sorted(each.records.items()):
            sent = known.sent.get(record or b"")
            if sent is None or sent.place != place:
                yield f"{place}: {record!r} at {offset} was not sent there"
                continue
            if sent.number <= last.get(sent.producer, -1):
                yield f"{place}: {record!r} at {offset} is there twice, or too late"
            last[sent.producer] = sent.number


def _read_faults(known: Known, found: AllFound) -> Iterator[str]:
    for place, values in known.read.items():
        each = found[place]
        for offset, value in values.items():
            if offset not in each.visible or each.records[offset][1] != value:
                there = each.records.get(offset)
                yield f"{place}: {value!r} was read at {offset}, which has {there}"


def _transaction_faults(known: Known, found: AllFound) -> Iterator[str]:
    visible = {each.records[offset][1] for each in found.values() for offset in each.visible}
    for transaction in known.transactions:
        values = sorted(transaction.values)
        read = {value in visible for value in values}
        shown = f"{values}, of which are read {[value for value in values if value in visible]}"
        if len(read) > 1:
            yield f"a part of a transaction is read: {shown}"
        elif transaction.end is not True and read == {True}:
            yield f"never committed, and read: {shown}"
        elif transaction.is_told and read != {transaction.end}:
            yield f"was said to be {'committed' if transaction.end else 'aborted'}: {shown}"


def _offset_faults(known: Known, offset: int | None) -> Iterator[str]:
    if known.offset_told > (-1 if offset is None else offset):
        yield f"the group has offset {offset}, and {known.offset_told} was acknowledged"
    if offset is not None and offset not in known.offsets_sent:
        yield f"the group has offset {offset}, which nobody has sent"


def _topic_faults(known: Known, there: set[str]) -> Iterator[str]:
    for name, is_there in known.topics.items():
        if is_there is not None and is_there != (name in there):
            yield f"{name} was {'created' if is_there else 'deleted'}, and that is lost"


def _timer_faults(world: World, found: AllFound) -> Iterator[str]:
    """All clients have been silent for longer than their timeouts."""
    for place, each in found.items():
        if each.last_stable_offset != each.end_offset:
            yield f"{place}: a transaction is open from {each.last_stable_offset} on"
    for shard in world.broker.coordinators.groups.shards.serving():
        for group_id, group in shard.state.groups.items():
            if not group.is_empty:
                yield f"group {group_id} still has members"


def _share_faults(known: Known, shared: Mapping[PlaceOfLife, Shared]) -> Iterator[str]:
    for place, each in shared.items():
        accepted = known.accepted[Place(place.topic, place.partition)]
        if again := [offset for offset in sorted(accepted) if not each.is_settled(offset)]:
            yield f"{place}: {again} were accepted, and would be delivered again"
