"""How often to tell of a recovery that takes long: some 20 lines, however much there is to do."""

PROGRESS_LINES = 20


def is_worth_a_line(done: int, count: int) -> bool:
    """Whether to tell of this step: of each while they are few, else of every 20th part."""
    return done == 0 or done * PROGRESS_LINES // count != (done - 1) * PROGRESS_LINES // count
