"""Whether a broker's answer has an error."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode

from .failure import CommandError, with_advice


def check_answer(what: str, error_code: int, message: str | None = None) -> None:
    """Raise CommandError, with advice where there is some, if a response has an error."""
    if not error_code:
        return
    try:
        name = ErrorCode(error_code).name
    except ValueError:
        name = f"error {error_code}"
    line = f"{what}: {message} ({name})" if message else f"{what}: {name}"
    raise CommandError(with_advice(line.replace("\n", " "), name))
