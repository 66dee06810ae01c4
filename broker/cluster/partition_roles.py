"""Which nodes have a replica of a partition, which are in sync, and which of them leads.

All functions are decisions without effects. Kafka: PartitionChangeBuilder, StripedReplicaPlacer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.metadata.topics import NO_LEADER


class Roles(Struct, frozen=True):
    """The nodes of one partition: the preferred leader is the first of `replicas`.

    `adding` and `removing` are the replicas of a reassignment in progress. `eligible` are replicas
    that left the in-sync set when it was smaller than min.insync.replicas (KIP-966). `last_known`
    is the last leader while no replica is in sync.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()

    @property
    def preferred(self) -> int:
        """The node that leads if it can."""
        return self.replicas[0]


def spread(
    topic: str,
    index: int,
    replication_factor: int,
    racks: Mapping[int, str | None],
    live: Collection[int],
) -> tuple[int, ...]:
    """The replicas of a new partition: live leaders take turns, and racks do, too.

    `racks` has the rack of each node. Nodes that are not live come last. The same topic is always
    placed in the same way on the same nodes. (Kafka begins with a node at random.)
    """
    nodes = _by_turns(racks)
    leaders = [node for node in nodes if node in live] or nodes
    leader = leaders[(crc32(topic.encode()) + index) % len(leaders)]
    first = nodes.index(leader) + 1
    # In the second round of leaders the followers are others than in the first.
    shift = (index // len(leaders)) % max(1, len(nodes) - 1)
    followers = [nodes[(first + number) % len(nodes)] for number in range(len(nodes) - 1)]
    followers = followers[shift:] + followers[:shift]
    followers.sort(key=lambda node: node not in live)
    return (leader, *followers)[:replication_factor]


def _by_turns(racks: Mapping[int, str | None]) -> list[int]:
    """The nodes, so that neighbours are in different racks if possible."""
    of_rack: dict[str | None, list[int]] = {}
    for node, rack in racks.items():
        of_rack.setdefault(rack, []).append(node)
    rounds = chain.from_iterable(zip_longest(*of_rack.values()))
    return [node for node in rounds if node is not None]


def new_roles(replicas: Sequence[int], live: Collection[int]) -> Roles:
    """The roles of a new partition: the live replicas are in sync, and the first of them leads."""
    isr = tuple(node for node in replicas if node in live)
    return Roles(tuple(replicas), isr or tuple(replicas), isr[0] if isr else NO_LEADER)


def without_node(
    roles: Roles, node: int, live: Collection[int], min_isr: int, *, unclean: bool = False
) -> Roles:
    """The roles after a node has left. `live` are the nodes that are left."""
    isr = tuple(each for each in roles.isr if each != node)
    eligible, last_known = roles.eligible, roles.last_known
    if node in roles.isr and len(isr) < min_isr and node not in eligible:
        eligible = (*eligible, node)
    if roles.isr and not isr:
        last_known = (roles.leader,)
    left = replace(roles, isr=isr, eligible=eligible, last_known=last_known)
    return elected(left, live, unclean=unclean)


def with_node(roles: Roles, node: int, live: Collection[int], min_isr: int) -> Roles:
    """The roles after a node has come back and has caught up with the leader.

    If there was no leader, and is one now, all live replicas catch up with it.
    """
    if node not in roles.replicas:
        return roles
    led = elected(roles, live)
    if led.leader == NO_LEADER:
        return led
    caught_up = live if roles.leader == NO_LEADER else (node,)
    if set(caught_up) <= set(led.isr):
        return led
    isr = _grown(led.isr, (each for each in led.replicas if each in caught_up))
    eligible = () if len(isr) >= min_isr else tuple(n for n in led.eligible if n not in isr)
    return replace(led, isr=isr, eligible=eligible)


def not_eligible(roles: Roles, node: int) -> Roles:
    """The roles after a node has ended without a clean shutdown (KIP-966)."""
    return replace(roles, eligible=tuple(each for each in roles.eligible if each != node))


def _grown(isr: Iterable[int], added: Iterable[int]) -> tuple[int, ...]:
    """An in-sync set with more nodes: leaders write them in the order of their ids."""
    return tuple(sorted({*isr, *added}))


def elected(roles: Roles, live: Collection[int], *, unclean: bool = False) -> Roles:
    """The roles with a leader, if one may lead: the one before, or the first replica in sync.

    If none is in sync, an eligible one leads; if there is none, the last leader. `unclean` lets any
    live replica lead; what only others had is lost.
    """
    if roles.leader in live and roles.leader in roles.isr:
        return roles
    may_lead = roles.isr or roles.eligible or roles.last_known
    for node in roles.replicas:
        if node in live and node in may_lead:
            return _led_by(roles, node)
    if unclean:
        for node in roles.replicas:
            if node in live:
                return replace(_led_by(roles, node), isr=(node,), eligible=())
    return replace(roles, leader=NO_LEADER)


def _led_by(roles: Roles, node: int) -> Roles:
    isr = roles.isr or (node,)
    eligible = tuple(each for each in roles.eligible if each != node)
    return replace(roles, leader=node, isr=isr, eligible=eligible, last_known=())


def moved(roles: Roles, to: int, live: Collection[int]) -> Roles | None:
    """The roles when `to` leads; None if it may not: it is not live, or not in sync."""
    if to not in live or to not in roles.isr:
        return None
    return replace(roles, leader=to)


def shrunk(roles: Roles, isr: Collection[int]) -> Roles:
    """The roles when only these nodes, and the leader, are in sync."""
    kept = tuple(node for node in roles.isr if node in isr or node == roles.leader)
    return replace(roles, isr=kept)


def reassigned(roles: Roles, replicas: Sequence[int]) -> Roles:
    """The roles while a reassignment to `replicas` is in progress."""
    target = tuple(replicas)
    all_replicas = target + tuple(node for node in roles.replicas if node not in target)
    added = tuple(node for node in target if node not in roles.replicas)
    removed = tuple(node for node in roles.replicas if node not in target)
    return replace(roles, replicas=all_replicas, adding=added, removing=removed)


def completed(roles: Roles, live: Collection[int]) -> Roles:
    """The roles after a reassignment: the added replicas are in sync, the removed ones are gone."""
    target = tuple(node for node in roles.replicas if node not in roles.removing)
    kept = tuple(node for node in roles.isr if node in target)
    added = tuple(node for node in roles.adding if node in live)
    isr = _grown(kept, added) if added else kept
    done = replace(roles, replicas=target, isr=isr, adding=(), removing=())
    return elected(done, live)


def cancelled(roles: Roles, live: Collection[int]) -> Roles:
    """The roles after a reassignment was cancelled: as before it."""
    before = tuple(node for node in roles.replicas if node not in roles.adding)
    isr = tuple(node for node in roles.isr if node not in roles.adding)
    return elected(replace(roles, replicas=before, isr=isr, adding=(), removing=()), live)
