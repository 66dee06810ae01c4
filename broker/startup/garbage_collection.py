"""Sets Python's garbage collector up for a process that serves."""

import gc

# The objects of a request contain no reference cycles, so they are freed without the collector.
# Objects that stay (group members, for example) are no garbage, and a full collection scans all of
# them, which takes tens of milliseconds. So the youngest generation is collected about a third as
# often as by default, and a full collection runs about a seventh as often.
THRESHOLDS = (2000, 5, 50)


def spare_startup_objects() -> None:
    """Let the collector skip what startup has made, which stays until the process ends."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
