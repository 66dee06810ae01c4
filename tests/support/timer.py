"""A timer clock that stands still until a test moves it."""


class Timer:
    """Called, it returns `ms`: milliseconds of a clock that never goes back."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms
