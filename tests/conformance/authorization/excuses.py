"""Answers of the matrix that differ, and why. A probe's title begins with the key."""

EXCUSES: dict[str, str] = {}


def excuse(title: str) -> str | None:
    """Why the answers to a probe may differ, or None."""
    return next((why for start, why in EXCUSES.items() if title.startswith(start)), None)
