"""Compare a living coordinator with one that a restart would make of its logs."""

from odradek.coordinator.group_shards import GroupShards
from tests.support.group_snapshot import classic_group_snapshot, is_at_rest, state_snapshot
from tests.support.groups import Groups


def assert_log_agrees(groups: Groups) -> None:
    """Read the logs into another state, and compare all groups and offsets with the living ones."""
    shards = GroupShards(groups.settings)
    shards.prepare(len(groups.logs))
    for log in groups.logs:
        shards.load(log)  # type: ignore[arg-type] # a MemoryLog serves a journal
    for living, read in zip(groups.coordinator.shards.serving(), shards.serving(), strict=True):
        assert state_snapshot(living.state) == state_snapshot(read.state)
        for name, group in living.state.groups.items():
            if is_at_rest(group):
                again = read.state.groups[name]
                assert classic_group_snapshot(group) == classic_group_snapshot(again)
