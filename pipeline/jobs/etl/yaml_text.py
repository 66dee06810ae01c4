"""Parses YAML, with the line of each key.

Types are those of YAML 1.2. PyYAML would parse `no` as false, `10:30` as 630 and 2024-02-29 as a
date. A duplicate key is an error here; PyYAML ignores it.
"""

import re
from typing import Any, NamedTuple

import yaml

from odradek.pipeline.jobs import JobError

from .environment import KeyPath

_IMPLICIT_TYPES = (
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
        list("-+.0123456789"),
    ),
    ("tag:yaml.org,2002:merge", r"<<", ["<"]),
)


class YamlText(NamedTuple):
    """The parsed value, and the line of each path of keys, from 1."""

    value: Any
    lines: dict[KeyPath, int]


def read_yaml(text: str, name: str) -> YamlText:
    """Parse one document. Raises JobError, which contains `name` and the line."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise JobError(f"{name} is empty")
            lines: dict[KeyPath, int] = {}
            _record_lines(node, (), lines)
            return YamlText(loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        message = " ".join(filter(None, (error.context, error.problem)))
        if mark is not None and "${" in "".join(text.splitlines()[mark.line : mark.line + 1]):
            message += " (inside { } or [ ], ${NAME} needs quotes)"
        raise JobError(f"{name}{place}: invalid YAML: {message}") from error
    except RecursionError:
        raise JobError(f"{name}: an alias (*) refers to a value that contains it") from None
    except yaml.YAMLError as error:  # an invalid character
        raise JobError(f"{name}: invalid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """Recognises the types above, and no others."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 # PyYAML's, copied by the first add


for _tag, _pattern, _first in _IMPLICIT_TYPES:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), _first)


def _record_lines(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _check_unique(key, seen)
                lines[*path, key.value] = key.start_mark.line + 1
                _record_lines(value, (*path, key.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            _record_lines(each, (*path, index), lines)


def _check_unique(key: yaml.ScalarNode, seen: set[str]) -> None:
    if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
        message = f"duplicate key '{key.value}'"
        raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
    seen.add(key.value)
