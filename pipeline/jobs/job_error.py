"""What keeps a job from being done, said to the one who started it."""


class JobError(Exception):
    """A job cannot be begun or finished; the message says why, and what to do."""
