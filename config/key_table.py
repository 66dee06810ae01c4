"""Parses a compact text form of keys, for keys that are not fields of a KeyModel (key.py).

A key takes two lines instead of the eight of a declaration:

    group.share.max.size INT 200 1..1000
        Maximum number of members of one share group.

The first line has the name, the type and the default (`null` for none, `""` for an empty text or
list). Then follow, in any order: a range (both ends are optional), the choices as `a|b`, and the
words any-case, not-empty and internal. The indented line is the help.
"""

import re

from .key import ConfigType, Key

_RANGE = re.compile(r"(-?[0-9.]*?)\.\.(-?[0-9.]*)")


def read_table(table: str) -> dict[str, Key]:
    """The keys of a table, by name."""
    lines = table.splitlines()
    keys = (_read(head, doc) for head, doc in zip(lines[::2], lines[1::2], strict=True))
    return {key.name: key for key in keys}


def _read(head: str, doc: str) -> Key:
    name, type_name, default, *rules = head.split()
    key = Key(name, ConfigType[type_name], None, doc.strip())
    for rule in rules:
        key = _with_rule(key, rule)
    if default == "null":
        return key
    return key._replace(default=key.parse("" if default == '""' else default))


def _with_rule(key: Key, rule: str) -> Key:
    if span := _RANGE.fullmatch(rule):
        low, high = (
            float(end) if "." in end else int(end) if end else None for end in span.groups()
        )
        return key._replace(ge=low, le=high)
    match rule:
        case "any-case":
            return key._replace(any_case=True)
        case "not-empty":
            return key._replace(not_empty=True)
        case "internal":
            return key._replace(internal=True)
    return key._replace(one_of=tuple(rule.split("|")))
