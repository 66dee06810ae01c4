"""The base of the calls that a test makes to its broker's process."""

from msgspec import Struct


class Call(Struct, tag=True, frozen=True):
    """Something that the process does for the test."""
