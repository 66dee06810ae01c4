"""What the doctor has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How good it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check; `advice` says what to do about a warning or a problem."""

    health: Health
    text: str
    advice: str = ""


def ok(text: str) -> Finding:
    return Finding(health=Health.OK, text=text)


def warning(text: str, advice: str) -> Finding:
    return Finding(health=Health.WARNING, text=text, advice=advice)


def problem(text: str, advice: str) -> Finding:
    return Finding(health=Health.PROBLEM, text=text, advice=advice)
