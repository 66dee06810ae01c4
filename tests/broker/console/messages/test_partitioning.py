"""Long keys: what is hashed is that of a key in one piece, and others are served meanwhile."""

from odradek.broker.console.messages.partitioning import murmur2
from odradek.coordinator.runtime.steps import no_step


def test_a_long_key_is_hashed_in_steps() -> None:
    steps: list[None] = []
    key = bytes(range(251)) * 400
    assert murmur2(key, lambda: steps.append(None)) == murmur2(key, no_step)
    assert len(steps) > 20
