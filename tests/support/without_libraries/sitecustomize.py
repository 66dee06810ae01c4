"""Hides modules from odradek, and from nothing else, in each process that has this in its path.

ODRADEK_HIDDEN_MODULES has their names, with commas. Tests and other clients may use them.
"""

import builtins
import os
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = frozenset(filter(None, os.environ.get("ODRADEK_HIDDEN_MODULES", "").split(",")))
_import = builtins.__import__


def _import_if_not_hidden(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002 # as in `__import__`
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    importer = str((globals or {}).get("__name__", ""))
    if not level and name.partition(".")[0] in HIDDEN and importer.startswith("odradek."):
        raise ModuleNotFoundError(f"{name} is hidden from {importer}", name=name)
    return _import(name, globals, locals, fromlist or (), level)


if HIDDEN:
    builtins.__import__ = _import_if_not_hidden
