"""The interface that a job reports its progress to."""


class Progress:
    """A job calls these methods while it runs. This class ignores the calls."""

    def total(self, description: str, parts: int) -> None:
        """Begin a phase with this many parts."""

    def done(self, parts: int) -> None:
        """Add parts that are done."""


NO_PROGRESS = Progress()
