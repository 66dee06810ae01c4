"""Copies of replayed state: long decisions replay their records into a copy.

The copy takes the place of the state when the records are written (ARCHITECTURE.md, invariant 1).
"""

from typing import Self


class Copyable:
    """State whose collections hold immutable objects. Others have a `copy` of their own."""

    def copy(self) -> Self:
        """Return an object with the same state. To change its collections does not change this."""
        copied = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(copied, name, value.copy() if hasattr(value, "copy") else value)
        return copied
