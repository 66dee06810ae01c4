"""How often to report on a long recovery: about 20 lines, however long it is."""

PROGRESS_LINES = 20


def should_report(done: int, count: int) -> bool:
    """Whether to report this step: each step if there are few, otherwise every 20th part."""
    return done == 0 or done * PROGRESS_LINES // count != (done - 1) * PROGRESS_LINES // count
