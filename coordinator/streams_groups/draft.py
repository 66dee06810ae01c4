"""A draft of a decision about a streams group."""

from odradek.coordinator.modern_groups.draft import Draft
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now

from .group import StreamsGroup
from .records import epoch_record
from .status import Status, StatusCode
from .task_offsets import TaskOffsets


class StreamsDraft(Draft[StreamsGroup]):
    """The decision so far about one streams group, at one point in time.

    `then` may change the soft state of `group` itself. If the group does not exist yet, that
    changes the empty group, which is dropped: in Kafka too, a new group starts without soft state.
    """

    __slots__ = (
        "assignment_configs",
        "is_new",
        "statuses",
        "task_offsets",
        "validated_topology_epoch",
    )

    def __init__(
        self, group: StreamsGroup, now: Now, step: Step = no_step, *, is_new: bool = False
    ) -> None:
        super().__init__(group, now, self._make_epoch_record, step)
        self.is_new = is_new
        """Whether the group does not exist yet."""
        self.validated_topology_epoch = group.validated_topology_epoch
        self.assignment_configs = group.assignment_configs
        self.task_offsets: dict[str, TaskOffsets] = {}
        """What the member has just reported, by member id."""
        self.statuses: list[Status] = []
        """What the response says about the group."""

    def _make_epoch_record(self, group_id: str, epoch: int, metadata_hash: int) -> JournalRecord:
        return epoch_record(
            group_id,
            epoch,
            metadata_hash,
            self.validated_topology_epoch,
            self.assignment_configs,
            stored_description_epoch=self.group.stored_description_epoch,
            failed_description_epoch=self.group.failed_description_epoch,
        )

    def add_status(self, code: StatusCode, detail: str) -> None:
        """Add a status to the response."""
        self.statuses.append(Status(code, detail))
