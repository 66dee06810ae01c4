"""When Apache Kafka and odradek may say different things: all of it is here, and why.

From there on each goes its own way, so the conversation ends.
"""

from typing import Any

from odradek.protocol.errors import ErrorCode
from tests.conformance.random_groups.admin_steps import Commit, TopicStep
from tests.conformance.random_groups.classic_steps import ClassicBeat, Join, Sync
from tests.conformance.random_groups.side import Side
from tests.conformance.random_groups.steps import JOINING, Beat, Step
from tests.conformance.transcript import is_accident

UNKNOWN_MEMBER = ErrorCode.UNKNOWN_MEMBER_ID
UNIFORM = "uniform"
AMID_REBALANCE = ("PreparingRebalance", "CompletingRebalance")

# An error that Kafka did not foresee: of it nothing is learned.
ACCIDENT = "an accident inside Kafka: what it leaves behind is half done"
# Kafka completes the parked requests of a group that it is going to convert, and may then find
# that the new member does not fit. Here nobody hears of what was not written.
REFUSED_CONVERSION = "Kafka lets those who wait go before it refuses to convert their group"
# A commit whose offsets are all refused (metadata too long) makes an empty group in Kafka, which no
# record tells of: it is not there after a restart.
COMMIT_OF_NOTHING = "Kafka has made a group for a commit that it refused"
# Kafka drops an empty consumer group for a classic member; and the tombstones too if it does not
# know the member: the group is gone, and its records stay in the log, beside those of a new one.
DROPPED_GROUP = "Kafka has dropped an empty consumer group for a member that it refused"
# Who leaves while its SyncGroup is parked (another may say so, by its instance id) gets an answer
# here; Kafka answers its JoinGroup only, and of this it never hears again.
FORGOTTEN_SYNC = "Kafka forgets the SyncGroup of a member that is removed"
# ARCHITECTURE.md, a group that changes its protocol: the epoch rises, so that partitions are not
# left with nobody. Kafka raises it where the newcomer changes what is subscribed to.
CONVERTED_AMID_REBALANCE = "a group converted amid a rebalance gets new targets, not so in Kafka"
# A hash table is asked for the first of the members that are left, by ids that are drawn.
LEADER_BY_CHANCE = "of several members, who leads is by chance"
# The range assignor goes by member ids, and of dynamic classic members it is the broker that draws
# them; both brokers give them out in the same order, but they are sorted differently.
ORDER_OF_IDS = "ids that brokers draw come in another order"
# Kafka asks the group as it was whether all members subscribe alike, when a member with an
# expression that is not resolved yet comes while targets are due: it is taken for one like the
# others, and then nobody, or it too, is given the others' topics. Here the newcomer counts.
TAKEN_FOR_ALIKE = "Kafka takes a member whose expression is not resolved for one like the others"
# The uniform assignor takes members and partitions in the order of hash tables: how many each gets
# is determined but for one that is left over, which ones is not. (What is determined of it is
# compared in tests/coordinator/assignors.)
UNIFORM_TIES = "the uniform assignor gives as many partitions, but others"
# With Kafka a consumer group in which all speak the classic protocol does not hear that its topics
# have changed; here the next Heartbeat is told to join again.
TOPICS_ARE_NEWS = "classic members of a consumer group hear of new partitions"


class TieError(Exception):
    """There is a reason for the two to go different ways; the message says which."""


class Excuses:
    """Of one conversation."""

    def __init__(self, kafka: Side, ours: Side) -> None:
        self._sides = kafka, ours
        self._is_amid_rebalance = False
        self._is_empty = False
        self._taken_for_alike: set[str] = set()
        self._topics_changed = False
        self._is_uniform = False

    def look_before(self, step: Step) -> None:
        """What the groups are like before a step that may bring them apart."""
        self._is_amid_rebalance = self._is_empty = False
        kafka, _ = self._sides
        if isinstance(step, Join):
            self._is_empty = kafka.participants.full(step.group) in kafka.groups(
                ("Empty",), ("consumer",)
            )
        if isinstance(step, TopicStep):
            self._topics_changed = True
        if isinstance(step, Beat) and step.assignor == UNIFORM:
            self._is_uniform = True
        if isinstance(step, Beat) and step.epoch == JOINING:
            name = kafka.participants.full(step.group)
            self._is_amid_rebalance = name in kafka.groups(AMID_REBALANCE)
        if isinstance(step, Beat) and step.regex:
            epoch, assigned = kafka.epochs(step.group)
            if epoch > assigned:
                self._taken_for_alike.add(step.group)

    def look_behind(self, step: Step, kafka: Any) -> None:
        """Raises TieError where both say the same, and what they are like is not the same."""
        if is_accident(kafka):
            raise TieError(ACCIDENT)
        if self._is_amid_rebalance and isinstance(step, Beat) and kafka["error_code"]:
            raise TieError(REFUSED_CONVERSION)
        if self._is_empty and isinstance(step, Join) and kafka["error_code"] == UNKNOWN_MEMBER:
            raise TieError(DROPPED_GROUP)
        if isinstance(step, Commit) and is_all_refused(kafka):
            _, ours = self._sides
            if ours.participants.full(step.group) not in ours.groups():
                raise TieError(COMMIT_OF_NOTHING)

    def excuse(self, step: Step, kafka: Any, ours: Any) -> None:
        """Raises TieError if there is a reason for different answers."""
        codes = kafka.get("error_code"), ours.get("error_code")
        if isinstance(step, Join) and not any(codes) and kafka["leader"] != ours["leader"]:
            raise TieError(LEADER_BY_CHANCE)
        if self._is_amid_rebalance:
            raise TieError(CONVERTED_AMID_REBALANCE)
        if (
            isinstance(step, ClassicBeat)
            and self._topics_changed
            and codes == (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
        ):
            raise TieError(TOPICS_ARE_NEWS)
        self.excuse_assignment(count_alike=_count_alike(kafka, ours))

    def excuse_silence(self, step: Step, kafka: Any, ours: Any) -> None:
        """Raises TieError if there is a reason why Kafka does not answer; answers are raw."""
        if kafka is None and isinstance(step, Sync) and ours.error_code == UNKNOWN_MEMBER:
            raise TieError(FORGOTTEN_SYNC)

    def excuse_assignment(self, *, count_alike: bool = True) -> None:
        """Raises TieError if assignors may have come to another result."""
        if self._taken_for_alike:
            raise TieError(TAKEN_FOR_ALIKE)
        kafka, ours = (
            [_order(given) for given in side.participants.given_ids.values()]
            for side in self._sides
        )
        if kafka != ours:
            raise TieError(ORDER_OF_IDS)
        if self._is_uniform and count_alike:
            raise TieError(UNIFORM_TIES)


def _order(drawn_ids: list[str]) -> tuple[int, ...]:
    """Their numbers, in the order of ids."""
    return tuple(sorted(range(len(drawn_ids)), key=drawn_ids.__getitem__))


def _count_alike(kafka: Any, ours: Any) -> bool:
    """Whether assignments are of as many partitions, or news to one of the two only.

    Epochs may differ then: of a member that must give up something, and of one that need not.
    """
    if kafka.get("error_code") != ours.get("error_code"):
        return False
    theirs, mine = (answer.get("assignment") for answer in (kafka, ours))
    return not theirs or not mine or abs(_count(theirs) - _count(mine)) <= 1


def _count(assignment: Any) -> int:
    topics = assignment.get("topic_partitions") or assignment.get("assigned_partitions") or ()
    return sum(len(topic["partitions"]) for topic in topics)


def is_all_refused(answer: Any) -> bool:
    codes = [one["error_code"] for topic in answer["topics"] for one in topic["partitions"]]
    return ErrorCode.OFFSET_METADATA_TOO_LARGE in codes and ErrorCode.NONE not in codes


def forget_leader(kafka: Any, ours: Any) -> None:
    """Of the group records of both: LEADER_BY_CHANCE."""
    if "leader" in kafka and len(kafka["members"]) > 1 and kafka["leader"] and ours["leader"]:
        del kafka["leader"], ours["leader"]
